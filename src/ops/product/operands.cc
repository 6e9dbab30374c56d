#include "ops/product/operands.h"

#include <algorithm>
#include <cstring>

#include "base/half.h"
#include "ops/common/coordinates.h"
#include "ops/common/transpose_block.h"
#include "ops/numbers/convert_rows.h"
#include "ops/numbers/load_store.h"
#include "ops/product/panel_copies.h"
#include "ops/product/panel_rows.h"

namespace anydml {
namespace {

// A panel of elements whose steps are contiguous, in blocks of steps that stay in L1.
constexpr uint64_t kSteps = 64;

void PackAcross(const float* from, uint64_t element_stride, uint64_t count, uint64_t steps, uint32_t width,
                float* to) {
  constexpr uint64_t kLine = 64 / sizeof(float);
  for (uint64_t step = 0; step < steps; step += kSteps) {
    const uint64_t now = std::min(kSteps, steps - step);
    for (uint64_t e = 0; e < count; ++e) {  // prefetches the next block
      for (uint64_t s = 0; s < now; s += kLine)
        __builtin_prefetch(from + e * element_stride + step + now + s);
    }
    TransposeBlock(reinterpret_cast<const uint32_t*>(from + step), static_cast<int64_t>(element_stride), now,
                   count, reinterpret_cast<uint32_t*>(to + step * width), width, TransposeTo::kTile);
  }
}

void PackAcross(const uint16_t* from, uint64_t element_stride, uint64_t count, uint64_t steps, uint32_t width,
                float* to) {
  alignas(64) uint16_t halves[kSteps * kMaxTileColumns];
  for (uint64_t step = 0; step < steps; step += kSteps) {
    const uint64_t now = std::min(kSteps, steps - step);
    TransposeBlock(from + step, static_cast<int64_t>(element_stride), now, count, halves,
                   static_cast<int64_t>(count), TransposeTo::kTile);
    if (count == width) {
      HalvesToFloats(halves, to + step * width, now * width);
      continue;
    }
    for (uint64_t s = 0; s < now; ++s) HalvesToFloats(halves + s * count, to + (step + s) * width, count);
  }
}

}  // namespace

void LoadNumbers(const std::byte* data, DataType type, uint64_t stride, uint64_t count, float* to) {
  if (type == DataType::kFloat32 && stride == 1) {
    std::memcpy(to, data, count * sizeof(float));
  } else if (type == DataType::kFloat16 && stride == 1) {
    HalvesToFloats(reinterpret_cast<const uint16_t*>(data), to, count);
  } else if (type == DataType::kFloat32 && stride == 2) {  // with vectors, as below
    const auto* const numbers = reinterpret_cast<const float*>(data);
    for (uint64_t i = 0; i < count; ++i) to[i] = numbers[2 * i];
  } else if (type == DataType::kFloat16 && stride == 2) {
    constexpr uint64_t kSome = 64;
    uint16_t halves[kSome];
    for (uint64_t done = 0; done < count; done += kSome) {
      const uint64_t some = std::min(kSome, count - done);
      const auto* const numbers = reinterpret_cast<const uint16_t*>(data) + 2 * done;
      for (uint64_t i = 0; i < some; ++i) halves[i] = numbers[2 * i];
      HalvesToFloats(halves, to + done, some);
    }
  } else {
    FindLoad(type, Class::kF32)(data, {.columns = count, .column_stride = stride}, to);
  }
}

void StridedPanels::Pack(uint64_t first, uint64_t count, uint64_t step, uint64_t steps, uint32_t width,
                         float* to) const {
  const uint64_t at = first * element_stride_ + step * step_stride_;
  if (step_stride_ == 1 && element_stride_ != 1 && IsFloatOrHalf()) {
    ClearLastPanel(count, steps, width, to);
    for (uint64_t e = 0; e < count; e += width) {
      const uint64_t some = std::min<uint64_t>(width, count - e), first = at + e * element_stride_;
      float* const panel = to + e * steps;
      if (type_ == DataType::kFloat32) {
        PackAcross(reinterpret_cast<const float*>(data_) + first, element_stride_, some, steps, width, panel);
      } else {
        PackAcross(reinterpret_cast<const uint16_t*>(data_) + first, element_stride_, some, steps, width,
                   panel);
      }
    }
    return;
  }
  if (element_stride_ == 1 && type_ == DataType::kFloat32) {
    constexpr uint64_t kRows = 8;
    ClearLastPanel(count, steps, width, to);
    for (uint64_t s = 0; s < steps; s += kRows) {
      CutRows(reinterpret_cast<const float*>(data_) + at + s * step_stride_, step_stride_,
              std::min(kRows, steps - s), count, width, steps * width, to + s * width);
    }
    return;
  }
  const auto copy_halves = FindPanelCopies().half_rows;
  if (element_stride_ == 1 && type_ == DataType::kFloat16 && copy_halves != nullptr) {
    constexpr uint64_t kRows = 8;
    ClearLastPanel(count, steps, width, to);
    for (uint64_t s = 0; s < steps; s += kRows) {
      const auto* const from = reinterpret_cast<const uint16_t*>(data_) + at + s * step_stride_;
      for (uint64_t e = 0; e < count; e += width) {
        copy_halves(from + e, step_stride_, std::min(kRows, steps - s),
                    static_cast<uint32_t>(std::min<uint64_t>(width, count - e)), width,
                    to + e * steps + s * width);
      }
    }
    return;
  }
  PackRows(
      count, steps, width, to, [](uint64_t, uint64_t) {},
      [&](uint64_t element, uint64_t some, uint64_t s, float* row) {
        const uint64_t from = at + s * step_stride_ + element * element_stride_;
        LoadNumbers(data_ + from * (BitSize(type_) / 8), type_, element_stride_, some, row);
      });
}

bool StridedPanels::PackHalves(uint64_t first, uint64_t count, uint64_t step, uint64_t steps, uint32_t width,
                               uint16_t* to) const {
  if (type_ != DataType::kFloat16 || (element_stride_ != 1 && step_stride_ != 1)) return false;
  const auto* const from =
      reinterpret_cast<const uint16_t*>(data_) + first * element_stride_ + step * step_stride_;
  if (count % width != 0) {
    std::memset(to + count / width * width * steps, 0, steps * width * sizeof(uint16_t));
  }
  for (uint64_t e = 0; e < count; e += width) {
    const uint64_t some = std::min<uint64_t>(width, count - e);
    uint16_t* const panel = to + e * steps;
    if (element_stride_ == 1) {
      for (uint64_t s = 0; s < steps; ++s) CopyShortRow(from + s * step_stride_ + e, some, panel + s * width);
    } else {
      TransposeBlock(from + e * element_stride_, static_cast<int64_t>(element_stride_), steps, some, panel,
                     width, TransposeTo::kTile);
    }
  }
  return true;
}

PanelSource::Place StridedPanels::FindRows(uint64_t first) const {
  if (!IsFloatOrHalf() || step_stride_ != 1 || element_stride_ == 0) return {};
  return At(first * element_stride_, element_stride_);
}

PanelSource::Place StridedPanels::FindSteps(uint64_t first) const {
  if (!IsFloatOrHalf() || element_stride_ != 1) return {};
  return At(first, step_stride_);
}

void GemmSink::Finish(uint64_t row, uint64_t column, uint64_t count, float* sums) const {
  const GemmProblem& p = problem_;
  if (p.alpha != 1) {
    for (uint64_t j = 0; j < count; ++j) sums[j] *= p.alpha;
  }
  if (p.c) {
    const uint64_t at = row * p.c->row + column * p.c->column;
    constexpr uint64_t kSome = 256;
    float numbers[kSome];
    for (uint64_t j = 0; j < count; j += kSome) {
      const uint64_t some = std::min(kSome, count - j);
      const Block block = {.columns = some, .column_stride = p.c->column, .offset = at + j * p.c->column};
      const bool lies = p.type == DataType::kFloat32 && p.c->column == 1;
      if (!lies) FindLoad(p.type, Class::kF32)(c_, block, numbers);
      const float* const from = lies ? reinterpret_cast<const float*>(c_) + at + j : numbers;
      for (uint64_t i = 0; i < some; ++i) sums[j + i] += p.beta * from[i];
    }
  }
  epilogue_.Apply(sums, count);
  const uint64_t at = row * p.output.row + column * p.output.column;
  if (p.output_type == DataType::kFloat32 && p.output.column == 1) {
    float* const target = reinterpret_cast<float*>(output_) + at;
    if (target != sums) std::memcpy(target, sums, count * sizeof(float));
    return;
  }
  if (p.output_type == DataType::kFloat16 && p.output.column == 1) {
    FloatsToHalves(sums, reinterpret_cast<uint16_t*>(output_) + at, count);
    return;
  }
  const Block block = {.columns = count, .column_stride = p.output.column, .offset = at};
  FindStore(Class::kF32, p.output_type)(sums, block, output_);
}

void GemmSink::FinishRows(uint64_t row, uint64_t rows, uint64_t column, uint64_t count, float* sums,
                          uint64_t stride) const {
  const GemmProblem& p = problem_;
  if (!IsPlain(p) || p.output_type != DataType::kFloat16 || p.output.column != 1) {
    for (uint64_t i = 0; i < rows; ++i) Finish(row + i, column, count, sums + i * stride);
    return;
  }
  auto* to = reinterpret_cast<uint16_t*>(output_) + row * p.output.row + column;
  if (stride == count && p.output.row == count) {  // all rows as one
    FloatsToHalves(sums, to, rows * count);
    return;
  }
  for (uint64_t i = 0; i < rows; ++i) FloatsToHalves(sums + i * stride, to + i * p.output.row, count);
}

}  // namespace anydml
