// The building blocks of compiled programs (ptx_functions.h): the bodies of the element functions and the
// conversions of elements, by name, on 32-bit words. Only this file's PTX is used.
#include "ops/device/cuda/convert.cuh"
#include "ops/device/cuda/element_functions.cuh"

namespace anydml::element_cuda {
namespace {

template <typename Row, Class kClass>
__device__ __forceinline__ uint32_t CallRow(uint32_t a, uint32_t b, uint32_t c, uint32_t parameter0,
                                            uint32_t parameter1) {
  using T = Number<kClass>;
  using lane::detail::Cast;
  if constexpr (Row::Has(kClass)) {
    const Instruction instruction = {{}, {}, {}, 0, {0, 0, 0}, {parameter0, parameter1}};
    return Cast<uint32_t>(Row::template Call<kClass>(Cast<T>(a), Cast<T>(b), Cast<T>(c), instruction));
  } else {
    return a;
  }
}

__device__ __forceinline__ __half2 AsHalves(uint32_t word) { return lane::detail::Cast<__half2>(word); }
__device__ __forceinline__ uint32_t AsWord(__half2 halves) { return lane::detail::Cast<uint32_t>(halves); }

}  // namespace

#define ANYDML_WORDS(name) extern "C" __device__ uint32_t anydml_##name

#define ANYDML_CLASS(name, type)                                                   \
  ANYDML_WORDS(name##_##type)                                                      \
  (uint32_t a, uint32_t b, uint32_t c, uint32_t parameter0, uint32_t parameter1) { \
    return CallRow<rows::name, Class::type>(a, b, c, parameter0, parameter1);      \
  }
#define ANYDML_CLASSES(name, ...) \
  ANYDML_CLASS(name, kF32)        \
  ANYDML_CLASS(name, kI32)        \
  ANYDML_CLASS(name, kU32)
ANYDML_ELEMENT_FUNCTIONS(ANYDML_CLASSES)

// Extracts the element that begins at bit `shift` of a word, as a number.
#define ANYDML_FETCH(name) ANYDML_WORDS(Fetch##name)(uint32_t word, uint32_t shift)
ANYDML_FETCH(HalfToFloat) { return AsBits(HalfToFloat(static_cast<uint16_t>(word >> shift))); }
ANYDML_FETCH(Int8) { return static_cast<uint32_t>(static_cast<int8_t>(word >> shift)); }
ANYDML_FETCH(UInt8) { return static_cast<uint8_t>(word >> shift); }
ANYDML_FETCH(Int16) { return static_cast<uint32_t>(static_cast<int16_t>(word >> shift)); }
ANYDML_FETCH(UInt16) { return static_cast<uint16_t>(word >> shift); }
ANYDML_FETCH(Int8ToFloat) { return AsBits(static_cast<float>(static_cast<int8_t>(word >> shift))); }
ANYDML_FETCH(UInt8ToFloat) { return AsBits(static_cast<float>(static_cast<uint8_t>(word >> shift))); }
ANYDML_FETCH(Int16ToFloat) { return AsBits(static_cast<float>(static_cast<int16_t>(word >> shift))); }
ANYDML_FETCH(UInt16ToFloat) { return AsBits(static_cast<float>(static_cast<uint16_t>(word >> shift))); }
ANYDML_FETCH(Int32ToFloat) { return AsBits(static_cast<float>(static_cast<int32_t>(word))); }
ANYDML_FETCH(UInt32ToFloat) { return AsBits(static_cast<float>(word)); }

// Converts numbers to elements.
ANYDML_WORDS(WithOneNan)(uint32_t a) { return WithOneNan(a); }
ANYDML_WORDS(FloatsToHalves)(uint32_t low, uint32_t high) {
  return FloatsToHalves(AsFloat(low), AsFloat(high));
}
ANYDML_WORDS(FloatToUInt32)(uint32_t a) { return FloatToUInt32(AsFloat(a)); }
ANYDML_WORDS(FloatToInteger)(uint32_t a, uint32_t low, uint32_t high) {
  return FloatToInteger(AsFloat(a), {static_cast<int32_t>(low), static_cast<int32_t>(high)});
}
ANYDML_WORDS(Pack16)(uint32_t a, uint32_t b) { return (a & 0xFFFFu) | b << 16; }
ANYDML_WORDS(Pack8)(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return (a & 0xFFu) | (b & 0xFFu) << 8 | (c & 0xFFu) << 16 | d << 24;
}

// Two halves at a time, if that gives the bits of the FLOAT32 function followed by rounding: for sums and
// products of halves it does, since FLOAT32 has more than twice as many digits as a half, plus two.
ANYDML_WORDS(HalvesOfFloats)(uint32_t low, uint32_t high) {
  return AsWord(__floats2half2_rn(AsFloat(low), AsFloat(high)));
}
ANYDML_WORDS(HalvesWithOneNan)(uint32_t a) {
  const uint32_t nans = __hneu2_mask(AsHalves(a), AsHalves(a));
  return (a & ~nans) | (0x7E007E00u & nans);
}
ANYDML_WORDS(HalvesAdd)(uint32_t a, uint32_t b) { return AsWord(__hadd2_rn(AsHalves(a), AsHalves(b))); }
ANYDML_WORDS(HalvesSubtract)(uint32_t a, uint32_t b) { return AsWord(__hsub2_rn(AsHalves(a), AsHalves(b))); }
ANYDML_WORDS(HalvesMultiply)(uint32_t a, uint32_t b) { return AsWord(__hmul2_rn(AsHalves(a), AsHalves(b))); }
ANYDML_WORDS(HalvesMaximum)(uint32_t a, uint32_t b) { return AsWord(__hmax2_nan(AsHalves(a), AsHalves(b))); }
ANYDML_WORDS(HalvesMinimum)(uint32_t a, uint32_t b) { return AsWord(__hmin2_nan(AsHalves(a), AsHalves(b))); }
ANYDML_WORDS(HalvesAbs)(uint32_t a) { return a & 0x7FFF7FFFu; }

}  // namespace anydml::element_cuda
