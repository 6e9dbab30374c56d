#include "ops/gemm/cpu/blocked.h"

#include <bit>
#include <cstring>
#include <type_traits>

#include "ops/element/cpu/rows.h"

namespace anydml {
namespace {

// A panel of B (a tile's columns) with some steps stays in the first-level cache, as do the sums of its
// tiles; a block of A, or of B where rows are few, in the second; a block of B in what comes behind it.
constexpr uint64_t kPanelFloats = 6144;
constexpr uint64_t kLeastSteps = 256;  // or sums are read and written too often; of bytes fewer will do
constexpr uint64_t kLeastWords = 64;
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
// Of rows of A that lie in memory as kernels take them, which nothing is packed for, more are done at a time
// where vectors are long, as are caches there; of a panel of B that is far away less is read again.
constexpr uint64_t kLongVector = 16;
constexpr uint64_t kFloatsInPlace = uint64_t{1} << 18;
// Rows that are pages apart push each other out of caches: they are copied, each a line behind the other,
// where columns are worth it.
constexpr uint64_t kFloatsOfPage = 1024;
constexpr uint64_t kColumnsOfCopies = 256;
// Fewer tiles than these do not last until what comes next is there.
constexpr uint64_t kTilesToAsk = 3;
constexpr uint64_t kLine = 16;  // floats

constexpr uint64_t RoundUp(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

struct Blocking {
  uint64_t steps, rows, columns;
  uint64_t deep;          // steps that are packed at a time: some times `steps`, or all
  uint64_t rows_of_sums;  // that are kept at a time

  // What fits into `floats` of scratch; with one block of steps at a time it does for any part that is not
  // larger in m, n or k than what ProductScratch was asked for.
  Blocking(const MicroKernel& kernel, uint64_t m, uint64_t n, uint64_t k, bool sums_in_scratch,
           uint64_t floats, uint64_t max_steps) {
    // Kernels that take several steps at a time take up to kWholeSteps; only the last block may have
    // others.
    const uint64_t least = kernel.bytes ? kLeastWords : kLeastSteps;
    steps =
        std::min(k, std::clamp(kPanelFloats / kernel.columns, least, max_steps) / kWholeSteps * kWholeSteps);
    rows = std::min(RoundUp(m, kernel.rows), RoundUp(kRowsAtATime, kernel.rows));
    const auto set_columns = [&](uint64_t most) {
      columns = std::min(RoundUp(n, kernel.columns), RoundUp(most, kernel.columns));
    };
    const auto set_deep = [&](uint64_t value) {
      deep = value;
      rows_of_sums = deep < k ? m : std::min(m, rows);
    };
    set_columns(kColumnsAtATime);
    set_deep(steps);
    const Blocking shallow = *this;
    if (m <= rows) {
      if (k * (rows + kColumnsOfFewRows) <= kNearFloats) {
        set_columns(kColumnsOfFewRows);
        set_deep(k);
      }
    } else if (n > kFewColumns) {
      const auto most_steps = [&] {
        const uint64_t most = std::min(kDeepSteps, kDeepFloats / columns);
        return std::min(k, std::max<uint64_t>(1, most / steps) * steps);
      };
      set_deep(most_steps());
      if (sums_in_scratch && deep < k) {  // sums of all rows are kept; of fewer columns, then
        set_columns(kColumnsOfAllRows);
        set_deep(most_steps());
      }
    }
    if (Floats(sums_in_scratch) > floats) *this = shallow;
  }

  uint64_t FloatsOfRows() const { return (deep + kLine) * rows; }
  uint64_t Floats(bool sums_in_scratch) const {
    return FloatsOfRows() + deep * columns + (sums_in_scratch ? rows_of_sums * columns : 0);
  }
};

// Wraps.
void Add(int32_t sum, bool accumulate, int32_t* to) {
  const uint32_t before = accumulate ? static_cast<uint32_t>(*to) : 0;
  *to = static_cast<int32_t>(before + static_cast<uint32_t>(sum));
}
void Add(float sum, bool accumulate, float* to) { *to = accumulate ? *to + sum : sum; }

// One tile, of rows of A that are packed (a stride of 0) or where they lie; at the borders of a part, or
// where sums are converted, through memory of a whole one.
template <typename Sum>
void RunTile(const MicroKernel& kernel, const MicroKernel::Rows& a, const float* b, uint64_t steps,
             uint64_t rows, uint64_t columns, Sum* to, uint64_t stride, bool accumulate,
             const MicroKernel::Ahead& ahead) {
  constexpr bool kIntegers = !std::is_same_v<Sum, float>;
  const bool converts = kIntegers && !kernel.bytes;
  const uint64_t vectors = (columns + kernel.lanes - 1) / kernel.lanes;
  const auto run = [&](float* sums, uint64_t sums_stride, bool adds) {
    if (a.stride != 0) {
      kernel.in_place[rows - 1][vectors - 1](a, b, kernel.columns, steps, sums, sums_stride, adds, ahead);
      return;
    }
    const auto packed = vectors * kernel.lanes == kernel.columns ? kernel.run : kernel.narrow[vectors - 1];
    packed(a.first, b, kernel.columns, steps, sums, sums_stride, adds, ahead);
  };
  if (!converts && (rows == kernel.rows || a.stride != 0) && columns == vectors * kernel.lanes) {
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

// What is read after some tiles. Each of them asks for a share.
struct Next {
  const float* first;
  uint64_t floats;

  MicroKernel::Ahead OfTile(uint64_t tile, uint64_t tiles, uint64_t steps) const {
    if (tiles < kTilesToAsk) return {first, 0};
    const uint64_t of_step = std::min(kLine, (floats + tiles * steps - 1) / (tiles * steps));
    const uint64_t done = tile * steps * of_step;
    return done < floats ? MicroKernel::Ahead{first + done, of_step} : MicroKernel::Ahead{first, 0};
  }
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

template <typename Sum>
class BlockedProduct {
 public:
  BlockedProduct(const PartOf<Sum>& part, const ProductOperand& a, const ProductOperand& b,
                 const SumSink<Sum>* sink, std::span<float> scratch, const MicroKernel& kernel)
      : part_(part),
        a_(a),
        b_(b),
        sink_(sink),
        kernel_(kernel),
        in_scratch_(part.sums == nullptr),
        block_(kernel, part.rows, part.columns, part.k, in_scratch_, scratch.size(),
               kIntegers && !kernel.bytes ? kMaxExactSteps : kMaxSteps),
        scratch_a_(scratch.data()),
        scratch_b_(scratch_a_ + block_.FloatsOfRows()),
        own_sums_(reinterpret_cast<Sum*>(scratch_b_ + block_.deep * block_.columns)),
        stride_(in_scratch_ ? block_.columns : part.sums_stride),
        packs_once_(part.rows <= block_.rows && block_.deep == part.k),
        deep_(block_.deep),
        rows_(block_.rows) {
    if (kIntegers || kernel.in_place[0][0] == nullptr || a.source == nullptr) return;
    in_place_.first = a.source->FindRows(part.row, &in_place_.stride);
    if (in_place_.first == nullptr) return;
    copies_ = in_place_.stride % kFloatsOfPage == 0 && part.columns > kColumnsOfCopies;
    if (copies_ || in_scratch_) return;
    // Scratch does not limit what is neither packed nor kept there.
    if (b.packed != nullptr) deep_ = std::min(part.k, kDeepSteps / block_.steps * block_.steps);
    if (kernel.lanes < kLongVector) return;
    const uint64_t most = std::max(rows_, kFloatsInPlace / deep_);
    const uint64_t blocks = (part.rows + most - 1) / most;
    rows_ = RoundUp((part.rows + blocks - 1) / blocks, kernel.rows);
  }

  void Run() {
    for (uint64_t column = 0; column < part_.columns; column += block_.columns) {
      for (uint64_t step = 0; step < part_.k; step += deep_) {
        RunColumns(column, std::min(block_.columns, part_.columns - column), step,
                   std::min(step + deep_, part_.k));
      }
    }
  }

 private:
  static constexpr bool kIntegers = !std::is_same_v<Sum, float>;

  // Steps [begin, end) of all rows.
  void RunColumns(uint64_t column, uint64_t columns, uint64_t begin, uint64_t end) {
    const Panels panels_b =
        Find(b_, {part_.column + column, columns, begin, end - begin, part_.k}, kernel_.columns, scratch_b_);
    for (uint64_t row = 0; row < part_.rows; row += rows_) {
      const uint64_t rows = std::min(rows_, part_.rows - row);
      Sum* sums = own_sums_;
      if (!in_scratch_) {
        sums = part_.sums + row * stride_ + column;
      } else if (block_.rows_of_sums == part_.rows) {
        sums += row * stride_;
      }
      AddSteps(row, rows, columns, panels_b, begin, end, sums);
      if (sink_ == nullptr || end < part_.k) continue;
      for (uint64_t i = 0; i < rows; ++i) {
        sink_->Finish(part_.row + row + i, part_.column + column, columns, sums + i * stride_);
      }
    }
  }

  // Of some rows.
  void AddSteps(uint64_t row, uint64_t rows, uint64_t columns, const Panels& panels_b, uint64_t begin,
                uint64_t end, Sum* sums) {
    MicroKernel::Rows lie = in_place_;
    if (lie.first != nullptr) lie.first += row * lie.stride + begin;
    if (copies_) {
      if (!packs_once_ || !is_copied_) CopyRows(lie, rows, end - begin);
      is_copied_ = true;
      lie = {scratch_a_, end - begin + kLine};
    } else if (in_place_.first == nullptr && (panels_a_.first == nullptr || !packs_once_)) {
      panels_a_ = Find(a_, {part_.row + row, rows, begin, end - begin, part_.k}, kernel_.rows, scratch_a_);
    }
    const uint64_t width = kernel_.columns;
    const float* panel_b = panels_b.first;
    for (uint64_t j = 0; j < columns; j += width, panel_b += panels_b.stride) {
      for (uint64_t step = begin; step < end; step += block_.steps) {
        const uint64_t steps = std::min(block_.steps, end - step), done = step - begin;
        const float* const b = panel_b + done * width;
        // The next steps of this panel, or the first ones of the next.
        Next next = {b, 0};
        if (step + steps < end) {
          next = {b + steps * width, std::min(block_.steps, end - step - steps) * width};
        } else if (j + width < columns) {
          next = {panel_b + panels_b.stride, std::min(block_.steps, end - begin) * width};
        }
        for (uint64_t i = 0; i < rows; i += kernel_.rows) {
          const MicroKernel::Rows tile =
              in_place_.first != nullptr
                  ? MicroKernel::Rows{lie.first + i * lie.stride + done, lie.stride}
                  : MicroKernel::Rows{
                        panels_a_.first + i / kernel_.rows * panels_a_.stride + done * kernel_.rows, 0};
          RunTile(kernel_, tile, b, steps, std::min<uint64_t>(kernel_.rows, rows - i),
                  std::min(width, columns - j), sums + i * stride_ + j, stride_, step != 0,
                  next.OfTile(i / kernel_.rows, (rows + kernel_.rows - 1) / kernel_.rows, steps));
        }
      }
    }
  }

  void CopyRows(const MicroKernel::Rows& from, uint64_t rows, uint64_t steps) {
    for (uint64_t i = 0; i < rows; ++i) {
      std::memcpy(scratch_a_ + i * (steps + kLine), from.first + i * from.stride, steps * sizeof(float));
    }
  }

  const PartOf<Sum>& part_;
  const ProductOperand &a_, &b_;
  const SumSink<Sum>* sink_;
  const MicroKernel& kernel_;
  bool in_scratch_;
  Blocking block_;
  float *scratch_a_, *scratch_b_;
  Sum* own_sums_;
  uint64_t stride_;       // of sums
  bool packs_once_;       // panels of A are the same for all columns
  uint64_t deep_, rows_;  // at a time
  Panels panels_a_ = {};
  MicroKernel::Rows in_place_ = {};  // A where it lies; null: it is packed
  bool copies_ = false, is_copied_ = false;
};

}  // namespace

uint64_t ProductScratch(uint64_t rows, uint64_t columns, uint64_t k, bool sums_in_scratch,
                        const MicroKernel& kernel) {
  uint64_t most = 0;
  for (const uint64_t max_steps : {kMaxSteps, kMaxExactSteps}) {
    for (const uint64_t floats : {uint64_t{0}, ~uint64_t{0}}) {
      const Blocking block(kernel, rows, columns, k, sums_in_scratch, floats, max_steps);
      most = std::max(most, block.Floats(sums_in_scratch));
    }
  }
  return RoundUp(most, 16);
}

template <typename Sum>
void RunProduct(const PartOf<Sum>& part, const ProductOperand& a, const ProductOperand& b,
                const SumSink<Sum>* sink, std::span<float> scratch, const MicroKernel& kernel) {
  static_assert(sizeof(Sum) == sizeof(float));
  BlockedProduct<Sum>(part, a, b, sink, scratch, kernel).Run();
}

template void RunProduct(const PartOf<float>&, const ProductOperand&, const ProductOperand&,
                         const SumSink<float>*, std::span<float>, const MicroKernel&);
template void RunProduct(const PartOf<int32_t>&, const ProductOperand&, const ProductOperand&,
                         const SumSink<int32_t>*, std::span<float>, const MicroKernel&);

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
