// Programs of one function with a contiguous output, whose inputs are laid out as the output is, or are rows
// that are repeated, strided, or of one element each. A thread processes 16 bytes, and the function is a
// template parameter.
#pragma once

#include "ops/device/cuda/convert.cuh"
#include "ops/device/cuda/element_functions.cuh"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/cuda/memory.cuh"
#include "ops/device/nest.h"

namespace anydml::element_cuda {

inline constexpr uint32_t kFlatThreads = 256;
inline constexpr uint32_t kMaxFlatSources = 3;

// A source that is the same for all elements, or a constant (then `data` is null).
struct UniformSource {
  const std::byte* data = nullptr;
  DataType type = DataType::kUnknown;
  uint32_t bits = 0;  // of the constant
};

// A varying input. For rows: their stride in elements, and whether a row is one element.
struct VaryingSource {
  const std::byte* data = nullptr;
  uint64_t row_stride = 0;
  bool one_per_row = false;
};

// Row lengths are multiples of this, so that no thread has parts of two rows.
inline constexpr uint32_t kRowMultiple = 16;

// A kernel's parameters.
struct Flat {
  uint64_t elements = 0;
  FastDivisor row_length;   // 1: no rows, all inputs are laid out as the output; else two of them vary
  VaryingSource inputs[2];  // of the first sources
  UniformSource uniform[kMaxFlatSources - 1];  // of the others
  std::byte* output = nullptr;
  bool aligned = false;  // to 16 bytes
  Instruction instruction = {};
};

using FlatLaunch = void(const Flat& flat, void* stream);

// The kernel of a function of FLOAT32 registers with `varying` sources of element type `from`; null if there
// is none.
FlatLaunch* FindFlatArithmetic(ElementFunction function, uint32_t varying, DataType from, DataType to);
FlatLaunch* FindFlatTranscendental(ElementFunction function, uint32_t varying, DataType from, DataType to);
// As above, for kQuantize with FLOAT16 elements and a uniform scale and zero point.
FlatLaunch* FindFlatQuantizeOfHalf(DataType to);
// (x - zero point) * scale, with a uniform scale and zero point.
FlatLaunch* FindFlatDequantize(DataType from, DataType to);

ANYDML_LANE float NumberOfElement(float x) { return x; }
ANYDML_LANE float NumberOfElement(Half x) { return HalfToFloat(x.bits); }
ANYDML_LANE float NumberOfElement(int8_t x) { return static_cast<float>(x); }
ANYDML_LANE float NumberOfElement(uint8_t x) { return static_cast<float>(x); }

ANYDML_LANE float ReadUniform(const UniformSource& source) {
  const std::byte* const data = source.data;
  switch (data == nullptr ? DataType::kUnknown : source.type) {
    case DataType::kFloat32:
      return *reinterpret_cast<const float*>(data);
    case DataType::kFloat16:
      return HalfToFloat(*reinterpret_cast<const uint16_t*>(data));
    case DataType::kInt8:
      return *reinterpret_cast<const int8_t*>(data);
    case DataType::kUInt8:
      return *reinterpret_cast<const uint8_t*>(data);
    default:
      return AsFloat(source.bits);
  }
}

// Results as elements, in pairs, since one instruction converts two halves.
ANYDML_LANE void ToElements(float x, float y, float* to) {
  to[0] = AsFloat(WithOneNan(AsBits(x)));
  to[1] = AsFloat(WithOneNan(AsBits(y)));
}
ANYDML_LANE void ToElements(float x, float y, Half* to) {
  const uint32_t both = FloatsToHalves(x, y);
  to[0] = {static_cast<uint16_t>(both)};
  to[1] = {static_cast<uint16_t>(both >> 16)};
}
ANYDML_LANE void ToElements(float x, float y, int8_t* to) {
  to[0] = static_cast<int8_t>(FloatToInteger(x, RangeOf(DataType::kInt8)));
  to[1] = static_cast<int8_t>(FloatToInteger(y, RangeOf(DataType::kInt8)));
}
ANYDML_LANE void ToElements(float x, float y, uint8_t* to) {
  to[0] = static_cast<uint8_t>(FloatToInteger(x, RangeOf(DataType::kUInt8)));
  to[1] = static_cast<uint8_t>(FloatToInteger(y, RangeOf(DataType::kUInt8)));
}
// The bits of a comparison's result.
struct Truth {
  uint8_t value;
};
ANYDML_LANE void ToElements(float x, float y, Truth* to) {
  to[0] = {static_cast<uint8_t>(AsBits(x))};
  to[1] = {static_cast<uint8_t>(AsBits(y))};
}

// Adapts a row of the table of functions.
template <typename Row>
struct RowBody {
  static ANYDML_LANE float Call(float a, float b, float c, const Instruction& instruction) {
    return Row::template Call<Class::kF32>(a, b, c, instruction);
  }
};
// Differences of 8-bit numbers are exact in FLOAT32, too.
struct DequantizeBody {
  static ANYDML_LANE float Call(float a, float scale, float zero_point, const Instruction&) {
    return lane::Mul(lane::Sub(a, zero_point), scale);
  }
};

// The elements that a thread moves at once.
template <typename From, typename To>
inline constexpr uint32_t kFlatCount = 16 / (sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To));

template <uint32_t kVarying, typename From, uint32_t kCount>
struct FlatUnit {
  uint64_t first;  // element
  bool whole;      // all exist and may move at once
  Pack<From, kCount> inputs[kVarying];

  __device__ FlatUnit(const Flat& flat, uint64_t number) : first(number * kCount) {
    whole = flat.aligned && first + kCount <= flat.elements;
    const bool has_rows = kVarying == 2 && flat.row_length.divisor() > 1;
    uint32_t row = 0, column = 0;
    if (has_rows) row = flat.row_length.Divide(static_cast<uint32_t>(first), &column);
#pragma unroll
    for (uint32_t i = 0; i < kVarying; ++i) {
      const VaryingSource& source = flat.inputs[i];
      const bool one = kVarying == 2 && source.one_per_row;
      const uint64_t at = has_rows ? row * source.row_stride + (one ? 0 : column) : first;
      const auto* const data = reinterpret_cast<const From*>(source.data) + at;
      if (whole && !one) {
        using Bytes = Unit<sizeof(inputs[i])>;
        // Not read again, unless rows are repeated.
        const auto* const from = reinterpret_cast<const Bytes*>(data);
        const Bytes unit = has_rows ? *from : __ldcs(from);
        memcpy(&inputs[i], &unit, sizeof(unit));
      } else {
#pragma unroll
        for (uint32_t e = 0; e < kCount; ++e)
          inputs[i].elements[e] = first + e < flat.elements ? data[one ? 0 : e] : From{};
      }
    }
  }

  template <typename To>
  __device__ void Store(const Flat& flat, const Pack<To, kCount>& output) const {
    auto* const data = reinterpret_cast<To*>(flat.output);
    if (whole) {
      Write(reinterpret_cast<std::byte*>(data + first), output);
    } else {
#pragma unroll
      for (uint32_t e = 0; e < kCount; ++e) {
        if (first + e < flat.elements) data[first + e] = output.elements[e];
      }
    }
  }
};

// For functions that take long: a thread has loads of two units in flight while it computes.
template <typename Body, uint32_t kVarying, typename From, typename To, uint32_t kUnits>
__global__ void __launch_bounds__(kFlatThreads) FlatKernel(const __grid_constant__ Flat flat) {
  WaitForPrevious();
  LetNextStart();
  constexpr uint32_t kCount = kFlatCount<From, To>;
  using ThisUnit = FlatUnit<kVarying, From, kCount>;
  const auto number = [](uint32_t u) {
    return (uint64_t{blockIdx.x} * kUnits + u) * kFlatThreads + threadIdx.x;
  };
  const ThisUnit first(flat, number(0));
  const ThisUnit other = kUnits == 2 ? ThisUnit(flat, number(1)) : first;
  const float last = kVarying == 1 ? ReadUniform(flat.uniform[1]) : 0;
  const float second = kVarying == 1 ? ReadUniform(flat.uniform[0]) : 0;
#pragma unroll
  for (uint32_t u = 0; u < kUnits; ++u) {
    const ThisUnit& unit = u == 0 ? first : other;
    float results[kCount];
#pragma unroll
    for (uint32_t e = 0; e < kCount; ++e) {
      const float b = kVarying == 2 ? NumberOfElement(unit.inputs[kVarying - 1].elements[e]) : second;
      results[e] = Body::Call(NumberOfElement(unit.inputs[0].elements[e]), b, last, flat.instruction);
    }
    Pack<To, kCount> output;
#pragma unroll
    for (uint32_t e = 0; e < kCount; e += 2) ToElements(results[e], results[e + 1], output.elements + e);
    unit.Store(flat, output);
  }
}

template <typename Body, uint32_t kVarying, typename From, typename To, uint32_t kUnits = 1>
void LaunchFlat(const Flat& flat, void* stream) {
  if constexpr (kUnits == 2) {
    constexpr uint64_t kEnoughForAll = uint64_t{1} << 21;  // the threads of the largest GPUs
    if (flat.elements < kEnoughForAll) return LaunchFlat<Body, kVarying, From, To, 1>(flat, stream);
  }
  constexpr uint64_t kBlock = uint64_t{kFlatThreads} * kUnits * kFlatCount<From, To>;
  const auto blocks = static_cast<uint32_t>((flat.elements + kBlock - 1) / kBlock);
  // An error stays the thread's last CUDA error, where the backend finds it.
  KernelChain(stream, /*all_wait=*/true)
      .Launch(FlatKernel<Body, kVarying, From, To, kUnits>, blocks, kFlatThreads, flat);
}

// For the same type on both sides, FLOAT32 or FLOAT16.
template <typename Row, uint32_t kVarying, uint32_t kUnits = 1>
FlatLaunch* FlatOfFloats(DataType from, DataType to) {
  if (from != to) return nullptr;
  if (from == DataType::kFloat32) return LaunchFlat<RowBody<Row>, kVarying, float, float, kUnits>;
  if (from == DataType::kFloat16) return LaunchFlat<RowBody<Row>, kVarying, Half, Half, kUnits>;
  return nullptr;
}

}  // namespace anydml::element_cuda
