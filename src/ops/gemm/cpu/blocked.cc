#include "ops/gemm/cpu/blocked.h"

#include <bit>
#include <type_traits>

#include "ops/element/cpu/rows.h"

namespace anydml {
namespace {

// A panel of B (a tile's columns) stays in the first-level cache, a block of A and the sums of its rows in
// the second, a block of B in what comes behind it.
constexpr uint64_t kPanelFloats = 6144;
constexpr uint64_t kMaxSteps = 512;
constexpr uint64_t kMaxExactSteps = 256;  // 256 products of numbers up to 255 are exact as FLOAT32
constexpr uint64_t kWholeSteps = 16;
constexpr uint64_t kRowsAtATime = 128;
constexpr uint64_t kColumnsAtATime = 1024;
constexpr uint64_t kColumnsOfAllRows = 512;
constexpr uint64_t kDeepFloats = uint64_t{1} << 20;

constexpr uint64_t RoundUp(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

struct Blocking {
  uint64_t steps, rows, columns;
  uint64_t deep;          // steps of a block of B: some times `steps`, or all
  uint64_t rows_of_sums;  // that are kept at a time

  Blocking(const MicroKernel& kernel, uint64_t m, uint64_t n, uint64_t k, bool sums_in_scratch,
           uint64_t max_steps = kMaxSteps) {
    // Kernels that take several steps at a time take up to kWholeSteps; only the last block may have
    // others.
    steps = std::min(
        k, std::clamp<uint64_t>(kPanelFloats / kernel.columns, 64, max_steps) / kWholeSteps * kWholeSteps);
    rows = std::min(RoundUp(m, kernel.rows), RoundUp(kRowsAtATime, kernel.rows));
    columns = std::min(RoundUp(n, kernel.columns), RoundUp(kColumnsAtATime, kernel.columns));
    deep = Deep(m, k);
    // Rows whose steps are not all done in one go keep their sums; less of each, then.
    if (sums_in_scratch && deep < k && m > rows) {
      columns = std::min(columns, RoundUp(kColumnsOfAllRows, kernel.columns));
      deep = Deep(m, k);
    }
    rows_of_sums = deep < k ? m : std::min(m, rows);
  }

  uint64_t Floats(bool sums_in_scratch) const {
    return steps * rows + deep * columns + (sums_in_scratch ? rows_of_sums * columns : 0);
  }

 private:
  // A block of B that is used once is used while it is near.
  uint64_t Deep(uint64_t m, uint64_t k) const {
    if (m <= rows) return steps;
    return std::min(k, std::max<uint64_t>(1, kDeepFloats / columns / steps) * steps);
  }
};

// Wraps.
void Add(int32_t sum, bool accumulate, int32_t* to) {
  const uint32_t before = accumulate ? static_cast<uint32_t>(*to) : 0;
  *to = static_cast<int32_t>(before + static_cast<uint32_t>(sum));
}
void Add(float sum, bool accumulate, float* to) { *to = accumulate ? *to + sum : sum; }

// One tile; at the borders of a part, or where sums are converted, through memory of a whole one.
template <typename Sum>
void RunTile(const MicroKernel& kernel, const float* a, const float* b, uint64_t steps, uint64_t rows,
             uint64_t columns, Sum* to, uint64_t stride, bool accumulate) {
  constexpr bool kIntegers = !std::is_same_v<Sum, float>;
  const bool converts = kIntegers && !kernel.bytes;
  const uint64_t vectors = (columns + kernel.lanes - 1) / kernel.lanes;
  const auto run = vectors * kernel.lanes == kernel.columns ? kernel.run : kernel.narrow[vectors - 1];
  if (!converts && rows == kernel.rows && columns == vectors * kernel.lanes) {
    run(a, b, kernel.columns, steps, reinterpret_cast<float*>(to), stride, accumulate);
    return;
  }
  alignas(64) float whole[kMaxTileRows * kMaxTileColumns];
  run(a, b, kernel.columns, steps, whole, kernel.columns, false);
  for (uint64_t i = 0; i < rows; ++i) {
    for (uint64_t j = 0; j < columns; ++j) {
      const float sum = whole[i * kernel.columns + j];
      if constexpr (kIntegers) {
        // Sums of floats are whole numbers.
        Add(converts ? static_cast<int32_t>(sum) : std::bit_cast<int32_t>(sum), accumulate,
            &to[i * stride + j]);
      } else {
        Add(sum, accumulate, &to[i * stride + j]);
      }
    }
  }
}

// Some panels with some of their steps.
struct Panels {
  const float* first;
  uint64_t stride;  // from one to the next
};

struct PanelRange {
  uint64_t first, count;  // elements
  uint64_t step, steps;
  uint64_t k;  // steps of all
};

Panels Find(const ProductOperand& operand, const PanelRange& range, uint32_t width, float* scratch) {
  if (operand.packed != nullptr) {
    return {operand.packed + range.first * range.k + range.step * width, range.k * width};
  }
  if (operand.packed_halves != nullptr) {
    const uint64_t some = range.steps * width;
    for (uint64_t e = 0; e < range.count; e += width) {
      const uint16_t* const panel = operand.packed_halves + (range.first + e) * range.k + range.step * width;
      HalvesToFloats(panel, scratch + e * range.steps, some);
    }
    return {scratch, some};
  }
  operand.source->Pack(range.first, range.count, range.step, range.steps, width, scratch);
  return {scratch, range.steps * width};
}

}  // namespace

uint64_t ProductScratch(uint64_t rows, uint64_t columns, uint64_t k, bool sums_in_scratch,
                        const MicroKernel& kernel) {
  const Blocking block(kernel, rows, columns, k, sums_in_scratch);
  const Blocking exact(kernel, rows, columns, k, sums_in_scratch, kMaxExactSteps);
  return RoundUp(std::max(block.Floats(sums_in_scratch), exact.Floats(sums_in_scratch)), 16);
}

template <typename Sum>
void RunProduct(const PartOf<Sum>& part, const ProductOperand& a, const ProductOperand& b,
                const SumSink<Sum>* sink, float* scratch, const MicroKernel& kernel) {
  static_assert(sizeof(Sum) == sizeof(float));
  const bool in_scratch = part.sums == nullptr;
  const bool exact_floats = !std::is_same_v<Sum, float> && !kernel.bytes;
  const Blocking block(kernel, part.rows, part.columns, part.k, in_scratch,
                       exact_floats ? kMaxExactSteps : kMaxSteps);
  float* const scratch_a = scratch;
  float* const scratch_b = scratch_a + block.steps * block.rows;
  auto* const own_sums = reinterpret_cast<Sum*>(scratch_b + block.deep * block.columns);
  const uint64_t stride = in_scratch ? block.columns : part.sums_stride;

  // Steps [begin, end), for which there are panels of B, of some rows.
  const auto add = [&](uint64_t row, uint64_t rows, uint64_t columns, const Panels& panels_b, uint64_t begin,
                       uint64_t end, Sum* sums) {
    for (uint64_t step = begin; step < end; step += block.steps) {
      const uint64_t steps = std::min(block.steps, end - step);
      const Panels panels_a = Find(a, {part.row + row, rows, step, steps, part.k}, kernel.rows, scratch_a);
      const float* panel_b = panels_b.first + (step - begin) * kernel.columns;
      for (uint64_t j = 0; j < columns; j += kernel.columns, panel_b += panels_b.stride) {
        const float* panel_a = panels_a.first;
        for (uint64_t i = 0; i < rows; i += kernel.rows, panel_a += panels_a.stride) {
          RunTile(kernel, panel_a, panel_b, steps, std::min<uint64_t>(kernel.rows, rows - i),
                  std::min<uint64_t>(kernel.columns, columns - j), sums + i * stride + j, stride, step != 0);
        }
      }
    }
  };

  for (uint64_t column = 0; column < part.columns; column += block.columns) {
    const uint64_t columns = std::min(block.columns, part.columns - column);
    for (uint64_t step = 0; step < part.k; step += block.deep) {
      const uint64_t end = std::min(step + block.deep, part.k);
      const Panels panels_b =
          Find(b, {part.column + column, columns, step, end - step, part.k}, kernel.columns, scratch_b);
      for (uint64_t row = 0; row < part.rows; row += block.rows) {
        const uint64_t rows = std::min(block.rows, part.rows - row);
        Sum* const sums = !in_scratch                       ? part.sums + row * stride + column
                          : block.rows_of_sums == part.rows ? own_sums + row * stride
                                                            : own_sums;
        add(row, rows, columns, panels_b, step, end, sums);
        if (sink == nullptr || end < part.k) continue;
        for (uint64_t i = 0; i < rows; ++i) {
          sink->Finish(part.row + row + i, part.column + column, columns, sums + i * stride);
        }
      }
    }
  }
}

template void RunProduct(const PartOf<float>&, const ProductOperand&, const ProductOperand&,
                         const SumSink<float>*, float*, const MicroKernel&);
template void RunProduct(const PartOf<int32_t>&, const ProductOperand&, const ProductOperand&,
                         const SumSink<int32_t>*, float*, const MicroKernel&);

ProductGrid CutProduct(uint64_t m, uint64_t n, uint32_t parts, const MicroKernel& kernel) {
  ProductGrid best;
  uint64_t least = ~uint64_t{0};
  for (uint32_t rows = 1; rows <= parts; ++rows) {
    const uint32_t columns = parts / rows;
    ProductGrid grid;
    grid.row_step = RoundUp((m + rows - 1) / rows, kernel.rows);
    grid.column_step = RoundUp((n + columns - 1) / columns, kernel.columns);
    grid.rows = static_cast<uint32_t>((m + grid.row_step - 1) / grid.row_step);
    grid.columns = static_cast<uint32_t>((n + grid.column_step - 1) / grid.column_step);
    // The largest part's work, and what it packs.
    const uint64_t cost = grid.row_step * grid.column_step + 4 * (grid.row_step + grid.column_step);
    if (cost < least) {
      least = cost;
      best = grid;
    }
  }
  return best;
}

}  // namespace anydml
