#include "ops/integer_product/cpu/requantize.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "ops/numbers/load_store.h"
#include "ops/numbers/math/saturate.h"

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/integer_product/cpu/requantize.cc"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE auto LoadSums(hn::ScalableTag<int32_t> d, const int32_t* from) { return hn::LoadU(d, from); }
HWY_INLINE auto LoadSums(hn::ScalableTag<int32_t> d, const float* from) {
  return hn::ConvertTo(d, hn::LoadU(hn::RebindToFloat<decltype(d)>(), from));
}

// Limits are integers, so rounding before or after them gives the same.
template <typename Sum, typename T>
HWY_INLINE uint64_t WholeVectors([[maybe_unused]] const Sum* from, [[maybe_unused]] uint64_t count,
                                 [[maybe_unused]] const RowScale& row, [[maybe_unused]] T* to) {
#if HWY_TARGET == HWY_SCALAR
  return 0;
#else
  const hn::ScalableTag<int32_t> d;
  const hn::RebindToFloat<decltype(d)> df;
  const hn::Rebind<int16_t, decltype(d)> ds;
  const hn::Twice<decltype(ds)> d2s;
  const hn::Rebind<T, decltype(d2s)> db;
  const uint64_t lanes = hn::Lanes(d);
  const auto scale = hn::Set(df, row.scale), low = hn::Set(df, row.low), high = hn::Set(df, row.high);
  const auto bias = hn::Set(d, static_cast<int32_t>(row.bias)), zero = hn::Set(d, row.zero);
  const auto numbers = [&](const Sum* sums) HWY_ATTR {
    const auto scaled = hn::Mul(hn::ConvertTo(df, hn::Add(LoadSums(d, sums), bias)), scale);
    return hn::DemoteTo(ds, hn::Add(hn::NearestInt(hn::Min(hn::Max(scaled, low), high)), zero));
  };
  uint64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto first = numbers(from + i), second = numbers(from + i + lanes);
    hn::StoreU(hn::DemoteTo(db, hn::Combine(d2s, second, first)), db, to + i);
  }
  return i;
#endif
}

uint64_t IntegersToInt8(const int32_t* from, uint64_t count, const RowScale& row, int8_t* to) {
  return WholeVectors(from, count, row, to);
}
uint64_t IntegersToUInt8(const int32_t* from, uint64_t count, const RowScale& row, uint8_t* to) {
  return WholeVectors(from, count, row, to);
}
uint64_t FloatsToInt8(const float* from, uint64_t count, const RowScale& row, int8_t* to) {
  return WholeVectors(from, count, row, to);
}
uint64_t FloatsToUInt8(const float* from, uint64_t count, const RowScale& row, uint8_t* to) {
  return WholeVectors(from, count, row, to);
}

}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();
#endif

#if !ANYDML_HAVE_HIGHWAY || HWY_ONCE
namespace anydml {
namespace {

#if ANYDML_HAVE_HIGHWAY
HWY_EXPORT(IntegersToInt8);
HWY_EXPORT(IntegersToUInt8);
HWY_EXPORT(FloatsToInt8);
HWY_EXPORT(FloatsToUInt8);
// Processes as many elements as fill whole vectors; returns their number.
#define ANYDML_ROW(function) HWY_DYNAMIC_DISPATCH(function)(from, count, row, to)
#else
#define ANYDML_ROW(function) 0
#endif

uint64_t BeginRow([[maybe_unused]] const int32_t* from, [[maybe_unused]] uint64_t count,
                  [[maybe_unused]] const RowScale& row, [[maybe_unused]] int8_t* to) {
  return ANYDML_ROW(IntegersToInt8);
}
uint64_t BeginRow([[maybe_unused]] const int32_t* from, [[maybe_unused]] uint64_t count,
                  [[maybe_unused]] const RowScale& row, [[maybe_unused]] uint8_t* to) {
  return ANYDML_ROW(IntegersToUInt8);
}
uint64_t BeginRow([[maybe_unused]] const float* from, [[maybe_unused]] uint64_t count,
                  [[maybe_unused]] const RowScale& row, [[maybe_unused]] int8_t* to) {
  return ANYDML_ROW(FloatsToInt8);
}
uint64_t BeginRow([[maybe_unused]] const float* from, [[maybe_unused]] uint64_t count,
                  [[maybe_unused]] const RowScale& row, [[maybe_unused]] uint8_t* to) {
  return ANYDML_ROW(FloatsToUInt8);
}

template <typename Sum>
float NumberOf(Sum sum, uint32_t bias) {
  return static_cast<float>(static_cast<int32_t>(static_cast<uint32_t>(static_cast<int32_t>(sum)) + bias));
}

template <typename Sum, typename T>
void RequantizeRow(const Sum* from, uint64_t count, const RowScale& row, T* to) {
  if (!std::isfinite(row.scale)) {
    const auto zero = static_cast<float>(row.zero);
    for (uint64_t i = 0; i < count; ++i) {
      const T element = Saturate<T>(std::nearbyint(NumberOf(from[i], row.bias) * row.scale) + zero);
      to[i] = static_cast<T>(std::clamp<int32_t>(element, static_cast<int32_t>(row.low + zero),
                                                 static_cast<int32_t>(row.high + zero)));
    }
    return;
  }
  for (uint64_t i = BeginRow(from, count, row, to); i < count; ++i) {
    const float scaled = std::clamp(NumberOf(from[i], row.bias) * row.scale, row.low, row.high);
    to[i] = static_cast<T>(static_cast<int32_t>(std::nearbyint(scaled)) + row.zero);
  }
}

template <typename Number>
Number Load(const KernelArguments& arguments, const RowNumbers& numbers, DataType type, Class as,
            uint64_t row, uint64_t group) {
  Number number;
  FindLoad(type, as)(arguments.inputs[numbers.input].data,
                     {.offset = row * numbers.stride + group * numbers.group}, &number);
  return number;
}

}  // namespace

RowRequantizer::RowRequantizer(const Requantization& problem, const ConvolutionShape& shape)
    : problem_(problem) {
  uint64_t expected = 1;
  contiguous_ = true;
  for (uint32_t d = kMaxSpatial; d-- > 0; expected *= sizes_[d]) {
    sizes_[d] = shape.windows[d].output;
    contiguous_ = contiguous_ && (sizes_[d] == 1 || problem.output.spatial[d] == expected);
  }
}

template <typename Sum>
void RowRequantizer::PutAny(const KernelArguments& arguments, const BatchIndex& index, uint64_t row,
                            uint64_t column, uint64_t count, const Sum* sums) const {
  const auto number = [&](const RowNumbers& numbers) {
    return Load<float>(arguments, numbers, DataType::kFloat32, Class::kF32, row, index[1]);
  };
  RowScale scale;
  scale.scale = number(problem_.scale) * number(problem_.other_scale) / number(problem_.output_scale);
  scale.bias = problem_.bias
                   ? Load<uint32_t>(arguments, *problem_.bias, DataType::kUInt32, Class::kU32, row, index[1])
                   : 0;
  scale.zero = problem_.output_zero ? Load<int32_t>(arguments, *problem_.output_zero, problem_.type,
                                                    Class::kI32, row, index[1])
                                    : 0;
  const bool is_signed = problem_.type == DataType::kInt8;
  const int32_t least = is_signed ? -128 : 0;
  scale.low = static_cast<float>(std::max(problem_.limits.low, least) - scale.zero);
  scale.high = static_cast<float>(std::min(problem_.limits.high, least + 255) - scale.zero);

  auto* const output = reinterpret_cast<uint8_t*>(arguments.outputs[0].data) +
                       problem_.output.Matrix(index[0], index[1]) + row * problem_.output.channel;
  const auto requantize = [&](const Sum* from, uint64_t some, uint8_t* to) {
    if (is_signed) {
      RequantizeRow(from, some, scale, reinterpret_cast<int8_t*>(to));
    } else {
      RequantizeRow(from, some, scale, to);
    }
  };
  if (contiguous_) return requantize(sums, count, output + column);
  constexpr uint64_t kSome = 256;
  uint8_t bytes[kSome];
  for (uint64_t done = 0; done < count; done += kSome) {
    const uint64_t some = std::min(kSome, count - done);
    requantize(sums + done, some, bytes);
    // Along the last dimension, to the end of a row.
    constexpr uint32_t kLast = kMaxSpatial - 1;
    for (uint64_t i = 0, run = 0; i < some; i += run) {
      uint64_t at = 0, position = column + done + i;
      run = std::min(some - i, sizes_[kLast] - position % sizes_[kLast]);
      for (uint32_t d = kMaxSpatial; d-- > 0; position /= sizes_[d]) {
        at += position % sizes_[d] * problem_.output.spatial[d];
      }
      for (uint64_t x = 0; x < run; ++x) output[at + x * problem_.output.spatial[kLast]] = bytes[i + x];
    }
  }
}

template void RowRequantizer::PutAny(const KernelArguments&, const BatchIndex&, uint64_t, uint64_t, uint64_t,
                                     const int32_t*) const;
template void RowRequantizer::PutAny(const KernelArguments&, const BatchIndex&, uint64_t, uint64_t, uint64_t,
                                     const float*) const;

}  // namespace anydml
#endif
