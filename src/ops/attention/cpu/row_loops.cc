#include "ops/attention/cpu/row_loops.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/common/nest_parts.h"
#include "ops/numbers/convert_rows.h"
#include "ops/numbers/softmax_loops.h"
#include "ops/product/few_rows.h"

namespace anydml {
namespace {

constexpr uint64_t kRun = 512;  // elements at a time, as FLOAT32

template <typename Bits>
void MoveAs(const std::byte* from, uint64_t at, uint64_t stride, uint64_t count, std::byte* to,
            uint64_t to_at, uint64_t to_stride) {
  const auto* const source = reinterpret_cast<const Bits*>(from) + at;
  auto* const target = reinterpret_cast<Bits*>(to) + to_at;
  if (stride == 1 && to_stride == 1) {
    std::memcpy(target, source, count * sizeof(Bits));
    return;
  }
  for (uint64_t i = 0; i < count; ++i) target[i * to_stride] = source[i * stride];
}

void MoveElements(DataType type, const std::byte* from, uint64_t at, uint64_t stride, uint64_t count,
                  std::byte* to, uint64_t to_at, uint64_t to_stride) {
  const auto move = type == DataType::kFloat16 ? MoveAs<uint16_t> : MoveAs<uint32_t>;
  move(from, at, stride, count, to, to_at, to_stride);
}

void MakeNansAlike(float* numbers, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    numbers[i] = std::isnan(numbers[i]) ? std::numeric_limits<float>::quiet_NaN() : numbers[i];
  }
}

void AddTo(float* x, uint64_t count, float value) {
  for (uint64_t i = 0; i < count; ++i) x[i] += value;
}

// Adds the mask's value to hidden logits.
void Hide(const AttentionWeights& weights, const int32_t* numbers, uint64_t b, uint64_t h, uint64_t q,
          uint64_t keys, float* x) {
  const AttentionMask& mask = weights.mask;
  if (mask.type != MultiheadAttentionMaskType::kBoolean) {
    const auto end = static_cast<int64_t>(keys);
    const AttentionWindow window = WindowOf(mask, numbers, b, weights.batch);
    if (!window.ShowsAny(static_cast<int64_t>(q), end)) return;
    const auto first = static_cast<uint64_t>(std::clamp<int64_t>(window.begin, 0, end));
    const auto last = static_cast<uint64_t>(std::clamp<int64_t>(window.end, 0, end));
    AddTo(x, first, mask.value);
    AddTo(x + last, keys - last, mask.value);
    return;
  }
  const int32_t* const shown = numbers + mask.view.At(b, h, q);
  const uint64_t stride = mask.view.column;
  bool any = false;
  for (uint64_t k = 0; k < keys && !any; ++k) any = shown[k * stride] != 0;
  if (!any) return;
  for (uint64_t k = 0; k < keys; ++k) x[k] += shown[k * stride] != 0 ? 0.0f : mask.value;
}

}  // namespace

bool HasNan(const float* numbers, uint64_t count) {
  uint32_t any = 0;
  for (uint64_t i = 0; i < count; ++i) any |= std::isnan(numbers[i]) ? 1 : 0;
  return any != 0;
}

AttentionRowLoops::AttentionRowLoops(DataType type, uint32_t threads)
    : type_(type),
      threads_(threads),
      load_(FindLoad(type, Class::kF32)),
      store_(FindStore(Class::kF32, type)) {}

void AttentionRowLoops::Join(const AttentionJoin& join, const AttentionJoinMemory& memory,
                             Executor* executor) const {
  const uint64_t rows = join.AllRows();
  const uint64_t bytes = rows * join.columns * sizeof(float);
  const auto parts = static_cast<uint32_t>(std::min<uint64_t>(rows, PartsForBytes(bytes, threads_)));
  ParallelFor(executor, parts, [&](uint32_t part) {
    const uint64_t end = PartBegin(rows, part + 1, parts);
    for (uint64_t number = PartBegin(rows, part, parts); number < end; ++number) {
      const uint64_t head = number / join.rows;
      JoinRow(join, memory, head / join.heads, head % join.heads, number % join.rows);
    }
  });
}

void AttentionRowLoops::JoinRow(const AttentionJoin& join, const AttentionJoinMemory& memory, uint64_t b,
                                uint64_t h, uint64_t r) const {
  const uint64_t copy_at = ((b * join.heads + h) * join.rows + r) * join.columns;
  const uint64_t present_at = join.present.At(b, h, r);
  const AttentionRowPlace place = PlaceOf(join, memory.lengths, b, r);
  if (place.source == AttentionRowSource::kNone) {
    const uint64_t width = join.copy_is_half ? sizeof(uint16_t) : sizeof(float);
    if (join.has_copy) std::memset(memory.copy + copy_at * width, 0, join.columns * width);
    return;
  }
  const bool is_past = place.source == AttentionRowSource::kPast;
  const AttentionView& view = is_past ? join.past_view : join.fresh_view;
  const std::byte* const from = is_past ? memory.past : memory.fresh;
  const uint64_t at = view.At(b, h, place.row);
  if (!is_past && join.bias.exists) {
    AddBias(join, memory, at, join.bias.At(b, h, 0), copy_at, present_at);
    return;
  }
  if (join.present.exists && !(is_past && join.lengths.exists)) {
    MoveElements(type_, from, at, view.column, join.columns, memory.present, present_at, join.present.column);
  }
  if (join.has_copy) MoveRow(join, from, at, view.column, memory, copy_at);
}

// Moves a row to the copy.
void AttentionRowLoops::MoveRow(const AttentionJoin& join, const std::byte* from, uint64_t at,
                                uint64_t stride, const AttentionJoinMemory& memory, uint64_t copy_at) const {
  if (type_ == DataType::kFloat16 && !join.copy_is_half) {
    const Block block = {.columns = join.columns, .column_stride = stride, .offset = at};
    load_(from, block, reinterpret_cast<float*>(memory.copy) + copy_at);
  } else {
    MoveElements(type_, from, at, stride, join.columns, memory.copy, copy_at, 1);
  }
}

// A copy with a bias is FLOAT32.
void AttentionRowLoops::AddBias(const AttentionJoin& join, const AttentionJoinMemory& memory, uint64_t from,
                                uint64_t bias_at, uint64_t copy_at, uint64_t present_at) const {
  float sums[kRun], bias[kRun];
  for (uint64_t at = 0; at < join.columns; at += kRun) {
    const uint64_t count = std::min(kRun, join.columns - at);
    const auto load = [&](const std::byte* data, const AttentionView& view, uint64_t first, float* to) {
      load_(data, Block{.columns = count, .column_stride = view.column, .offset = first + at * view.column},
            to);
    };
    load(memory.fresh, join.fresh_view, from, sums);
    load(memory.bias, join.bias, bias_at, bias);
    for (uint64_t i = 0; i < count; ++i) sums[i] += bias[i];
    if (join.has_copy) {
      std::memcpy(reinterpret_cast<float*>(memory.copy) + copy_at + at, sums, count * sizeof(float));
    }
    if (join.present.exists) {
      StoreRow(sums, count, present_at + at * join.present.column, join.present.column, memory.present);
    }
  }
}

void AttentionRowLoops::StoreRow(float* numbers, uint64_t count, uint64_t at, uint64_t stride,
                                 std::byte* to) const {
  constexpr float kMost = std::numeric_limits<float>::infinity();
  if (stride == 1 && type_ == DataType::kFloat32) {
    return AddAndClip(numbers, reinterpret_cast<float*>(to) + at, count, -0.0f, -kMost, kMost);
  }
  if (stride == 1 && type_ == DataType::kFloat16) {
    return AddAndClipToHalves(numbers, reinterpret_cast<uint16_t*>(to) + at, count, -0.0f, -kMost, kMost);
  }
  MakeNansAlike(numbers, count);
  store_(numbers, Block{.columns = count, .column_stride = stride, .offset = at}, to);
}

void AttentionRowLoops::ReplaceNans(const float* weights, uint64_t keys, const float* values,
                                    uint64_t values_stride, uint64_t count, uint64_t at, uint64_t stride,
                                    std::byte* to) const {
  const FewRows few = FindFewRows(DataType::kFloat32);
  float numbers[kRun];
  for (uint64_t first = 0; first < count; first += kRun) {
    const uint64_t some = std::min(kRun, count - first), begin = at + first * stride;
    load_(to, Block{.columns = some, .column_stride = stride, .offset = begin}, numbers);
    if (!HasNan(numbers, some)) continue;
    float sums[kRun] = {};
    for (uint64_t k = 0; k < keys; k += kFewAtATime) {
      few.add(weights + k, values + k * values_stride + first, values_stride,
              static_cast<uint32_t>(std::min<uint64_t>(kFewAtATime, keys - k)), some, sums, 0);
    }
    for (uint64_t i = 0; i < some; ++i) numbers[i] = std::isnan(numbers[i]) ? sums[i] : numbers[i];
    StoreRow(numbers, some, begin, stride, to);
  }
}

void AttentionRowLoops::Weigh(const AttentionWeights& weights, const AttentionWeightsMemory& memory,
                              uint64_t b, uint64_t h, uint64_t q, float scale, uint64_t count,
                              float* x) const {
  const uint64_t keys = KeysOf(weights, memory.lengths, b, q);
  const bool adds = weights.position_bias.exists || weights.mask.view.exists;
  if (adds && scale != 1) ScaleRow(x, keys, scale, x);
  if (weights.position_bias.exists) {
    const AttentionView& view = weights.position_bias;
    const uint64_t from = view.At(b, h, q);
    float bias[kRun];
    for (uint64_t at = 0; at < keys; at += kRun) {
      const uint64_t some = std::min(kRun, keys - at);
      const Block block = {.columns = some, .column_stride = view.column, .offset = from + at * view.column};
      load_(memory.position_bias, block, bias);
      for (uint64_t i = 0; i < some; ++i) x[at + i] += bias[i];
    }
  }
  if (weights.mask.view.exists) Hide(weights, memory.mask, b, h, q, keys, x);
  SoftmaxOfRow(x, keys, adds ? 1 : scale);
  std::fill(x + keys, x + count, 0.0f);
}

}  // namespace anydml
