#include "ops/gemm/cpu/blocked.h"

#include <bit>
#include <type_traits>

#include "ops/element/cpu/rows.h"

namespace anydml {
namespace {

// A panel of B (a tile's columns) with some steps stays in the first-level cache, as do the sums of its
// tiles; a block of A, or of B where rows are few, in the second; a block of B in what comes behind it.
constexpr uint64_t kPanelFloats = 6144;
constexpr uint64_t kMaxSteps = 512;
constexpr uint64_t kMaxExactSteps = 256;  // 256 products of numbers up to 255 are exact as FLOAT32
constexpr uint64_t kWholeSteps = 16;
constexpr uint64_t kRowsAtATime = 128;
constexpr uint64_t kColumnsAtATime = 1024;
constexpr uint64_t kColumnsOfFewRows = 384;
constexpr uint64_t kColumnsOfAllRows = 512;
constexpr uint64_t kFewColumns = 256;
constexpr uint64_t kNearFloats = uint64_t{3} << 17;
constexpr uint64_t kDeepFloats = uint64_t{1} << 20, kDeepSteps = 1024;
// Packing a row of A takes as long as multiplying it with some of these.
constexpr uint64_t kColumnsInPlace = 256;

constexpr uint64_t RoundUp(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

struct Blocking {
  uint64_t steps, rows, columns;
  uint64_t deep;          // steps that are packed at a time: some times `steps`, or all
  uint64_t rows_of_sums;  // that are kept at a time

  Blocking(const MicroKernel& kernel, uint64_t m, uint64_t n, uint64_t k, bool sums_in_scratch,
           uint64_t max_steps = kMaxSteps) {
    // Kernels that take several steps at a time take up to kWholeSteps; only the last block may have
    // others.
    steps = std::min(
        k, std::clamp<uint64_t>(kPanelFloats / kernel.columns, 64, max_steps) / kWholeSteps * kWholeSteps);
    rows = std::min(RoundUp(m, kernel.rows), RoundUp(kRowsAtATime, kernel.rows));
    const auto set_columns = [&](uint64_t most) {
      columns = std::min(RoundUp(n, kernel.columns), RoundUp(most, kernel.columns));
    };
    deep = steps;
    set_columns(kColumnsAtATime);
    if (m <= rows) {
      if (k * (rows + kColumnsOfFewRows) <= kNearFloats) {
        deep = k;
        set_columns(kColumnsOfFewRows);
      }
    } else if (n > kFewColumns) {
      const auto set_deep = [&] {
        const uint64_t most = std::min(kDeepSteps, kDeepFloats / columns);
        deep = std::min(k, std::max<uint64_t>(1, most / steps) * steps);
      };
      set_deep();
      if (sums_in_scratch && deep < k) {  // sums of all rows are kept; of fewer columns, then
        set_columns(kColumnsOfAllRows);
        set_deep();
      }
    }
    rows_of_sums = deep < k ? m : std::min(m, rows);
  }

  uint64_t Floats(bool sums_in_scratch) const {
    return deep * (rows + columns) + (sums_in_scratch ? rows_of_sums * columns : 0);
  }
};

// Wraps.
void Add(int32_t sum, bool accumulate, int32_t* to) {
  const uint32_t before = accumulate ? static_cast<uint32_t>(*to) : 0;
  *to = static_cast<int32_t>(before + static_cast<uint32_t>(sum));
}
void Add(float sum, bool accumulate, float* to) { *to = accumulate ? *to + sum : sum; }

// A tile's rows of A: packed, or where they lie.
struct RowsOfTile {
  const float* first;
  uint64_t stride;  // from one to the next; 0: packed
};

// One tile; at the borders of a part, or where sums are converted, through memory of a whole one.
template <typename Sum>
void RunTile(const MicroKernel& kernel, const RowsOfTile& a, const float* b, uint64_t steps, uint64_t rows,
             uint64_t columns, Sum* to, uint64_t stride, bool accumulate) {
  constexpr bool kIntegers = !std::is_same_v<Sum, float>;
  const bool converts = kIntegers && !kernel.bytes;
  const uint64_t vectors = (columns + kernel.lanes - 1) / kernel.lanes;
  const auto run = [&](float* sums, uint64_t sums_stride, bool adds) {
    if (a.stride != 0) {
      kernel.in_place[vectors - 1](a.first, a.stride, b, kernel.columns, steps, sums, sums_stride, adds);
      return;
    }
    const auto packed = vectors * kernel.lanes == kernel.columns ? kernel.run : kernel.narrow[vectors - 1];
    packed(a.first, b, kernel.columns, steps, sums, sums_stride, adds);
  };
  if (!converts && rows == kernel.rows && columns == vectors * kernel.lanes) {
    run(reinterpret_cast<float*>(to), stride, accumulate);
    return;
  }
  alignas(64) float whole[kMaxTileRows * kMaxTileColumns];
  run(whole, kernel.columns, false);
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
  float* const scratch_b = scratch_a + block.deep * block.rows;
  auto* const own_sums = reinterpret_cast<Sum*>(scratch_b + block.deep * block.columns);
  const uint64_t stride = in_scratch ? block.columns : part.sums_stride;

  // Whole tiles of rows may be read where they lie.
  RowsOfTile in_place = {};
  if (std::is_same_v<Sum, float> && kernel.in_place[0] != nullptr && a.source != nullptr &&
      part.columns <= kColumnsInPlace) {
    in_place.first = a.source->FindRows(part.row, &in_place.stride);
  }

  // Panels of A are the same for all columns where they are all.
  const bool packs_once = part.rows <= block.rows && block.deep == part.k;
  Panels panels_a = {};

  // Steps [begin, end), for which there are panels of B, of some rows.
  const auto add = [&](uint64_t row, uint64_t rows, uint64_t columns, const Panels& panels_b, uint64_t begin,
                       uint64_t end, Sum* sums) {
    const uint64_t lie = in_place.first == nullptr ? 0 : rows / kernel.rows * kernel.rows;
    if (lie < rows && (panels_a.first == nullptr || !packs_once)) {
      const PanelRange range = {part.row + row + lie, rows - lie, begin, end - begin, part.k};
      panels_a = Find(a, range, kernel.rows, scratch_a);
    }
    const float* panel_b = panels_b.first;
    for (uint64_t j = 0; j < columns; j += kernel.columns, panel_b += panels_b.stride) {
      for (uint64_t step = begin; step < end; step += block.steps) {
        const uint64_t steps = std::min(block.steps, end - step), done = step - begin;
        for (uint64_t i = 0; i < rows; i += kernel.rows) {
          RowsOfTile tile = {in_place.first + (row + i) * in_place.stride + step, in_place.stride};
          if (i >= lie) {
            const uint64_t panel = (i - lie) / kernel.rows;
            tile = {panels_a.first + panel * panels_a.stride + done * kernel.rows, 0};
          }
          RunTile(kernel, tile, panel_b + done * kernel.columns, steps,
                  std::min<uint64_t>(kernel.rows, rows - i), std::min<uint64_t>(kernel.columns, columns - j),
                  sums + i * stride + j, stride, step != 0);
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
        Sum* sums = own_sums;
        if (!in_scratch) {
          sums = part.sums + row * stride + column;
        } else if (block.rows_of_sums == part.rows) {
          sums += row * stride;
        }
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
