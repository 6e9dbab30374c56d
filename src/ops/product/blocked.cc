// Products by blocks of rows, columns and steps. Longer than most files: the loops around one kernel.
#include "ops/product/blocked.h"

#include <cstring>
#include <type_traits>

#include "ops/numbers/convert_rows.h"
#include "ops/product/blocking.h"
#include "ops/product/panel_rows.h"
#include "ops/product/product_tiles.h"

namespace anydml {
namespace {

using namespace blocking;  // NOLINT(google-build-using-namespace)

// If kernels read A's rows in place, nothing is packed for them, and long vectors (whose machines also have
// large caches) take more rows at a time: a panel of B in a distant cache is then read less often.
constexpr uint64_t kLongVector = 16, kShortVector = 8;
constexpr uint64_t kFewWords = 32;  // for bytes, with short vectors
constexpr uint64_t kFloatsInPlace = uint64_t{1} << 18;
// Rows that are pages apart evict each other from the caches: fewer are taken at a time, or they are copied
// next to each other, each shifted by a cache line, if there are enough columns to pay for that and B is not
// packed yet.
constexpr uint64_t kFloatsOfPages = uint64_t{1} << 17;
constexpr uint64_t kFloatsOfPage = 1024;
constexpr uint64_t kColumnsOfCopies = 256;
// With packed FLOAT16, more rows than these convert it once for all of them.
constexpr uint64_t kMostRowsOfHalves = 256;

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
               part.few_steps               ? kNearSteps
               : kIntegers && !kernel.bytes ? kMaxExactSteps
                                            : kMaxSteps,
               part.many_steps),
        scratch_a_(scratch.data()),
        scratch_b_(scratch_a_ + block_.FloatsOfRows()),
        own_sums_(reinterpret_cast<Sum*>(scratch_b_ + block_.deep * block_.columns)),
        stride_(!in_scratch_                       ? part.sums_stride
                : part.columns % kernel.lanes == 0 ? std::min(block_.columns, part.columns)
                                                   : block_.columns),
        packs_once_(part.rows <= block_.rows && block_.deep == part.k),
        columns_(block_.columns),
        deep_(block_.deep),
        rows_(block_.rows) {
    if (kIntegers || kernel.in_place[0][0] == nullptr || part.k == 0) return;
    FindRows();
    FindSteps();
    FindColumns();
    const bool b_waits = b.packed != nullptr || steps_of_b_.first != nullptr;  // B needs no panels ahead of
                                                                               // the product
    if (in_place_.first != nullptr && !copies_ && !in_scratch_) {
      // Scratch does not limit operands that are neither packed nor kept there.
      if (b_waits) deep_ = std::min(part.k, kDeepSteps / block_.steps * block_.steps);
      const uint64_t floats = pages_apart_ ? kFloatsOfPages : kFloatsInPlace;
      if (kernel.lanes >= kLongVector) rows_ = std::max(rows_, floats / deep_);
    } else if (steps_of_b_.first != nullptr) {
      const uint64_t floats =
          scratch.size() - block_.steps * kernel.columns - (in_scratch_ ? block_.rows_of_sums * columns_ : 0);
      const uint64_t most = (floats / rows_ - kLine) / block_.steps * block_.steps;
      deep_ = std::min(part.k, std::max(deep_, std::min(kDeepSteps / block_.steps * block_.steps, most)));
      if (!in_scratch_ && kernel.lanes >= kLongVector) {
        const uint64_t most_rows = std::min(kFloatsInPlace / deep_, floats / (deep_ + kLine));
        rows_ = std::max(rows_, most_rows / kernel.rows * kernel.rows);
      }
    }
    const uint64_t blocks = (part.rows + rows_ - 1) / rows_;
    rows_ = RoundUp((part.rows + blocks - 1) / blocks, kernel.rows);
    if (steps_of_b_.first != nullptr) {
      if (!in_scratch_ && sink == nullptr)
        columns_ = part.columns;  // otherwise sums are finished while they are in a cache
      scratch_b_ = scratch.data();
      own_sums_ = reinterpret_cast<Sum*>(scratch_b_ + block_.steps * kernel.columns);
      scratch_a_ = reinterpret_cast<float*>(own_sums_ + (in_scratch_ ? block_.rows_of_sums * columns_ : 0));
    }
    packs_once_ = part.rows <= rows_ && deep_ == part.k;
  }

  void Run() {
    for (uint64_t column = 0; column < part_.columns; column += columns_) {
      for (uint64_t step = 0; step < part_.k; step += deep_) {
        RunColumns(column, std::min(columns_, part_.columns - column), step, std::min(step + deep_, part_.k));
      }
    }
  }

 private:
  static constexpr bool kIntegers = !std::is_same_v<Sum, float>;

  // Finds rows of A that can be read in place.
  void FindRows() {
    if (a_.source == nullptr) return;
    rows_of_a_ = a_.source->FindRows(part_.row);
    if (rows_of_a_.first == nullptr) return;
    in_place_ = {reinterpret_cast<const float*>(rows_of_a_.first), rows_of_a_.stride};
    pages_apart_ = rows_of_a_.stride % kFloatsOfPage == 0;
    copies_ = rows_of_a_.halves || (pages_apart_ && part_.columns > kColumnsOfCopies && b_.packed == nullptr);
  }

  // Finds steps of B that can be read in place, or packed FLOAT16, for the case that the first tile of a
  // panel packs it for the others.
  void FindSteps() {
    if (part_.rows > (b_.packed_halves != nullptr ? kMostRowsOfHalves : kMostRowsOfSteps)) return;
    if (b_.packed_halves != nullptr && kernel_.packing[1][0] != nullptr) {
      steps_of_b_ = {reinterpret_cast<const std::byte*>(b_.packed_halves + part_.column * part_.k),
                     kernel_.columns, true};
      column_of_b_ = part_.k;
    } else if (b_.source != nullptr && kernel_.packing[0][0] != nullptr) {
      steps_of_b_ = b_.source->FindSteps(part_.column);
    }
  }

  // Finds contiguous columns of B. Each panel of them is packed separately while tiles prefetch the next
  // one's columns.
  void FindColumns() {
    if (steps_of_b_.first != nullptr || b_.source == nullptr || part_.rows > rows_ || deep_ != part_.k)
      return;
    const PanelSource::Place place = b_.source->FindRows(part_.column);
    if (place.stride != part_.k) return;
    columns_of_b_ = place;
    columns_ = kernel_.columns;
  }

  // What `tiles` tiles prefetch: the next steps of this panel, or the first ones of the next.
  Next AfterSteps(const Panels& panels, uint64_t column, uint64_t columns, uint64_t step, uint64_t all,
                  uint64_t tiles) const {
    const uint64_t width = kernel_.columns, steps = std::min(block_.steps, all - step);
    const float* behind = panels.first + column / width * panels.stride + (step + steps) * width;
    uint64_t steps_behind = std::min(block_.steps, all - step - steps);
    if (steps_behind == 0 && column + width < columns) {
      behind = panels.first + (column / width + 1) * panels.stride;
      steps_behind = std::min(block_.steps, all);
    }
    return {behind, steps_behind * width, tiles, steps};
  }

  // What tiles of a panel prefetch: the columns of B in the next one.
  Next AfterPanel(uint64_t column, uint64_t tiles) const {
    const uint64_t some =
        column < part_.columns ? std::min<uint64_t>(kernel_.columns, part_.columns - column) : 0;
    const uint64_t bytes = columns_of_b_.halves ? sizeof(uint16_t) : sizeof(float);
    const uint64_t blocks = (part_.k + block_.steps - 1) / block_.steps;
    return {reinterpret_cast<const float*>(columns_of_b_.first + column * part_.k * bytes),
            some * part_.k * bytes / sizeof(float), tiles * blocks, block_.steps};
  }

  // The tiles of a panel of B.
  struct Tiles {
    uint64_t rows, columns;
    uint64_t done, steps;  // in the panels of A
    Sum* sums;
    uint64_t stride;  // of sums
    bool accumulate;
  };

  // Steps [begin, end) of all rows.
  void RunColumns(uint64_t column, uint64_t columns, uint64_t begin, uint64_t end) {
    Panels panels_b = {};
    if (steps_of_b_.first == nullptr) {
      panels_b = Find(b_, {part_.column + column, columns, begin, end - begin, part_.k}, kernel_.columns,
                      scratch_b_);
    }
    for (uint64_t row = 0; row < part_.rows; row += rows_) {
      const uint64_t rows = std::min(rows_, part_.rows - row);
      Sum* sums = own_sums_;
      if (!in_scratch_) {
        sums = part_.sums + row * stride_ + column;
      } else if (block_.rows_of_sums == part_.rows) {
        sums += row * stride_;
      }
      AddSteps(row, rows, column, columns, panels_b, begin, end, sums);
      if (sink_ == nullptr || end < part_.k) continue;
      sink_->FinishRows(part_.row + row, rows, part_.column + column, columns, sums, stride_);
    }
  }

  // The same, for a group of rows.
  void AddSteps(uint64_t row, uint64_t rows, uint64_t column, uint64_t columns, const Panels& panels_b,
                uint64_t begin, uint64_t end, Sum* sums) {
    FindA(row, rows, begin, end);
    const uint64_t width = kernel_.columns;
    if (steps_of_b_.first != nullptr) {
      const bool ends = row + rows == part_.rows && column + columns == part_.columns && end == part_.k;
      for (uint64_t j = 0; j < columns; j += width) {
        const NextSteps next = j + width < columns ? AfterThese(column + j + width, begin)
                               : ends              ? OfNextProduct()
                                                   : NextSteps();
        PackAndAddSteps({rows, std::min(width, columns - j), 0, 0, sums + j, stride_, false}, column + j,
                        begin, end, next);
      }
      return;
    }
    if (kernel_.bytes && kernel_.lanes < kShortVector && end - begin <= kFewWords) {
      return AddFewSteps({rows, columns, 0, end - begin, sums, stride_, begin != 0}, panels_b);
    }
    for (uint64_t j = 0; j < columns; j += width) {
      for (uint64_t step = begin; step < end; step += block_.steps) {
        const uint64_t steps = std::min(block_.steps, end - step);
        const Tiles tiles = {rows,     std::min(width, columns - j), step - begin, steps, sums + j, stride_,
                             step != 0};
        const float* const b = panels_b.first + j / width * panels_b.stride + (step - begin) * width;
        const uint64_t count = (rows + kernel_.rows - 1) / kernel_.rows;
        const bool asks_for_source = columns_of_b_.first != nullptr;
        const uint64_t before = asks_for_source ? (step - begin) / block_.steps * count : 0;
        const Next next = asks_for_source
                              ? AfterPanel(column + width, count)
                              : AfterSteps(panels_b, j, columns, step - begin, end - begin, count);
        RunTiles(tiles, b, 0, [&](uint64_t tile) { return next.OfTile(before + tile); });
      }
    }
  }

  // Runs all panels of B for one tile's rows before the next rows: with few steps most memory traffic is
  // sums, and this order writes their rows contiguously.
  void AddFewSteps(const Tiles& tiles, const Panels& panels_b) {
    const uint64_t width = kernel_.columns;
    for (uint64_t i = 0; i < tiles.rows; i += kernel_.rows) {
      const MicroKernel::Rows a = RowsOf(i / kernel_.rows, 0);
      const uint64_t rows = std::min<uint64_t>(kernel_.rows, tiles.rows - i);
      const uint64_t whole = rows == kernel_.rows ? tiles.columns / width * width : 0;
      const float* b = panels_b.first;
      Sum* const sums = tiles.sums + i * tiles.stride;
      for (uint64_t j = 0; j < tiles.columns; j += width, b += panels_b.stride) {
        if (j < whole) {
          kernel_.run(a.first, b, width, tiles.steps, reinterpret_cast<float*>(sums + j), tiles.stride,
                      tiles.accumulate, {b, 0});
          continue;
        }
        const uint64_t columns = std::min(width, tiles.columns - j);
        const ProductTile tile = {a,    b,       tiles.steps,
                                  rows, columns, (columns + kernel_.lanes - 1) / kernel_.lanes};
        RunTile(kernel_, tile, sums + j, tiles.stride, tiles.accumulate, {b, 0});
      }
    }
  }

  void FindA(uint64_t row, uint64_t rows, uint64_t begin, uint64_t end) {
    if (copies_) {
      if (!packs_once_ || !is_copied_) CopyRows(row, rows, begin, end - begin);
      is_copied_ = true;
    } else if (in_place_.first != nullptr) {
      now_ = {in_place_.first + row * in_place_.stride + begin, in_place_.stride};
    } else if (panels_a_.first == nullptr || !packs_once_) {
      panels_a_ = Find(a_, {part_.row + row, rows, begin, end - begin, part_.k}, kernel_.rows, scratch_a_);
    }
  }

  // From tile `first` on. There are no divisions per tile, since small tiles take little time.
  template <typename Ahead>
  void RunTiles(const Tiles& tiles, const float* b, uint64_t first, Ahead&& ahead) {
    const uint64_t vectors = (tiles.columns + kernel_.lanes - 1) / kernel_.lanes;
    uint64_t tile = first, i = first * kernel_.rows;
    if constexpr (!kIntegers) {
      const bool finds_room = in_place_.first != nullptr && now_.stride % kFloatsOfPage != 0;  // without
                                                                                               // cache
                                                                                               // conflicts
      if (kernel_.tall != nullptr && finds_room && tiles.columns == kernel_.lanes) {
        for (; i + 2 * kernel_.rows <= tiles.rows; i += 2 * kernel_.rows, tile += 2) {
          kernel_.tall(RowsOf(tile, tiles.done), b, kernel_.columns, tiles.steps,
                       tiles.sums + i * tiles.stride, tiles.stride, tiles.accumulate, ahead(tile));
        }
      }
    }
    for (; i < tiles.rows; i += kernel_.rows, ++tile) {
      const ProductTile now = {RowsOf(tile, tiles.done),
                               b,
                               tiles.steps,
                               std::min<uint64_t>(kernel_.rows, tiles.rows - i),
                               tiles.columns,
                               vectors};
      RunTile(kernel_, now, tiles.sums + i * tiles.stride, tiles.stride, tiles.accumulate, ahead(tile));
    }
  }

  MicroKernel::Rows RowsOf(uint64_t tile, uint64_t done) const {
    if (in_place_.first != nullptr)
      return {now_.first + tile * kernel_.rows * now_.stride + done, now_.stride};
    return {panels_a_.first + tile * panels_a_.stride + done * kernel_.rows, 0};
  }

  const std::byte* StepOfB(uint64_t column, uint64_t step) const {
    return steps_of_b_.first + (step * steps_of_b_.stride + column * column_of_b_) * BytesOfB();
  }
  uint64_t BytesOfB() const { return steps_of_b_.halves ? sizeof(uint16_t) : sizeof(float); }
  NextSteps AfterThese(uint64_t column, uint64_t step) const {
    return {StepOfB(column, step), steps_of_b_.stride * BytesOfB(), kernel_.columns * BytesOfB()};
  }
  NextSteps OfNextProduct() const {
    NextSteps next = AfterThese(0, 0);
    next.first = part_.next_b;
    const uint64_t bytes = rows_of_a_.halves ? sizeof(uint16_t) : sizeof(float);
    if (rows_of_a_.stride == part_.k)
      next.rows = part_.next_a, next.bytes_of_rows = part_.rows * part_.k * bytes;
    return next;
  }

  // Steps of one panel.
  void PackAndAddSteps(Tiles tiles, uint64_t column, uint64_t begin, uint64_t end, const NextSteps& next) {
    for (uint64_t step = begin; step < end; step += block_.steps) {
      tiles.done = step - begin;
      tiles.steps = std::min(block_.steps, end - step);
      tiles.accumulate = step != 0;
      const bool is_last = step + tiles.steps == end;
      PackAndRun(tiles, column, step, is_last ? next : AfterThese(column, step + tiles.steps));
    }
  }

  // The first of several tiles packs whole vectors for the others; a single tile reads B in place.
  void PackAndRun(const Tiles& tiles, uint64_t column, uint64_t step, const NextSteps& next) {
    const auto ahead = [&](uint64_t tile) { return next.OfTile(tile, tiles.steps); };
    if constexpr (!kIntegers) {
      const uint64_t vectors = tiles.columns / kernel_.lanes;
      const bool whole = tiles.columns % kernel_.lanes == 0;
      MicroKernel::Rows a = RowsOf(0, tiles.done);
      const std::byte* const b = StepOfB(column, step);
      if (whole && tiles.rows <= kernel_.rows && a.stride != 0 && !steps_of_b_.halves) {
        kernel_.in_place[tiles.rows - 1][vectors - 1](a, reinterpret_cast<const float*>(b),
                                                      steps_of_b_.stride, tiles.steps, tiles.sums,
                                                      tiles.stride, tiles.accumulate, ahead(0));
        return;
      }
      if (whole && tiles.rows >= kernel_.rows) {
        const uint64_t a_step = a.stride == 0 ? kernel_.rows : 1;
        if (a.stride == 0) a.stride = 1;
        kernel_.packing[steps_of_b_.halves][vectors - 1](a, a_step, {b, steps_of_b_.stride}, tiles.steps,
                                                         scratch_b_, tiles.sums, tiles.stride,
                                                         tiles.accumulate, ahead(0));
        RunTiles(tiles, scratch_b_, 1, ahead);
        return;
      }
    }
    Find(b_, {part_.column + column, tiles.columns, step, tiles.steps, part_.k}, kernel_.columns, scratch_b_);
    RunTiles(tiles, scratch_b_, 0, ahead);
  }

  // Prefetches the beginning of a row on a page of its own, which hardware does not.
  static void AskForRow(const std::byte* row, uint64_t bytes) {
    constexpr uint64_t kLineBytes = kLine * sizeof(float), kSome = 8 * kLineBytes;
    for (uint64_t i = 0; i < std::min(bytes, kSome); i += kLineBytes) __builtin_prefetch(row + i);
  }

  void CopyRows(uint64_t row, uint64_t rows, uint64_t step, uint64_t steps) {
    const uint64_t at = row * rows_of_a_.stride + step;
    const auto* const halves = reinterpret_cast<const uint16_t*>(rows_of_a_.first) + at;
    if (rows_of_a_.halves && rows_of_a_.stride == steps && steps % kFloatsOfPage != 0) {
      now_ = {scratch_a_, steps};
      HalvesToFloats(halves, scratch_a_, rows * steps);
      return;
    }
    now_ = {scratch_a_, steps + kLine};
    const uint64_t bytes = rows_of_a_.halves ? sizeof(uint16_t) : sizeof(float);
    for (uint64_t i = 0; i < rows; ++i) {
      AskForRow(rows_of_a_.first + (at + (i + 1) * rows_of_a_.stride) * bytes, steps * bytes);
      float* const to = scratch_a_ + i * now_.stride;
      if (rows_of_a_.halves) {
        HalvesToFloats(halves + i * rows_of_a_.stride, to, steps);
      } else {
        std::memcpy(to, in_place_.first + at + i * rows_of_a_.stride, steps * sizeof(float));
      }
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
  uint64_t stride_;                 // of sums
  bool packs_once_;                 // panels of A are packed once for all columns
  uint64_t columns_, deep_, rows_;  // block sizes
  Panels panels_a_ = {};
  PanelSource::Place rows_of_a_ = {}, steps_of_b_ = {};  // for reading in place; null: they are packed
  PanelSource::Place columns_of_b_ = {};                 // likewise
  uint64_t column_of_b_ = 1;                             // stride between columns there
  MicroKernel::Rows in_place_ = {};                      // A, if it is not packed
  MicroKernel::Rows now_ = {};                           // the current rows of it, or copies of them
  bool pages_apart_ = false, copies_ = false, is_copied_ = false;
};

}  // namespace

uint64_t ProductScratch(uint64_t rows, uint64_t columns, uint64_t k, bool sums_in_scratch,
                        const MicroKernel& kernel) {
  uint64_t most = 0;
  for (const uint64_t max_steps : {kMaxSteps, kMaxExactSteps, kNearSteps}) {
    for (const uint64_t floats : {uint64_t{0}, ~uint64_t{0}}) {
      for (const bool many_steps : {false, true}) {
        const Blocking block(kernel, rows, columns, k, sums_in_scratch, floats, max_steps, many_steps);
        most = std::max(most, block.Floats(sums_in_scratch));
      }
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

}  // namespace anydml
