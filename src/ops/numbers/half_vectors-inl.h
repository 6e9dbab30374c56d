// FLOAT16 in memory as vectors of FLOAT32. Included inside a namespace of a Highway target, where `hn` is
// defined.
//
// Without a conversion instruction, Highway's emulation ignores infinities and NaNs and rounds toward zero;
// this file then converts as base/half.h does.
#undef ANYDML_CONVERTS_HALVES
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR || \
    (HWY_ARCH_X86 && (HWY_TARGET >= HWY_SSE4 || defined(HWY_DISABLE_F16C)))
#define ANYDML_CONVERTS_HALVES 0
#else
#define ANYDML_CONVERTS_HALVES 1
#endif

template <class D>
HWY_INLINE hn::Vec<D> LoadHalves(D d, const uint16_t* from) {
#if ANYDML_CONVERTS_HALVES
  const hn::Rebind<hwy::float16_t, D> dh;
  return hn::PromoteTo(d, hn::LoadU(dh, reinterpret_cast<const hwy::float16_t*>(from)));
#else
  const hn::Rebind<uint16_t, D> dh;
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  const auto bits = hn::PromoteTo(du, hn::LoadU(dh, from));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
  const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7FFFu)));
  const auto number = hn::BitCast(du, hn::Mul(hn::BitCast(d, magnitude), hn::Set(d, 0x1p112f)));
  const auto special = hn::RebindMask(du, hn::Gt(hn::BitCast(di, magnitude), hn::Set(di, 0x0F7FFFFF)));
  const auto unsigned_bits = hn::IfThenElse(special, hn::Or(magnitude, hn::Set(du, 0x7F800000u)), number);
  return hn::BitCast(d, hn::Or(sign, unsigned_bits));
#endif
}

// Numbers of either type.
template <class D>
HWY_INLINE hn::Vec<D> LoadNumbers(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadNumbers(D d, const uint16_t* from) {
  return LoadHalves(d, from);
}

// The bits, rounded to nearest even. NaNs keep the part of their payload that fits.
template <class D, class V>
HWY_INLINE hn::Vec<hn::Rebind<uint16_t, D>> ToHalves([[maybe_unused]] D d, V numbers) {
  const hn::Rebind<uint16_t, D> dh;
#if ANYDML_CONVERTS_HALVES
  return hn::BitCast(dh, hn::DemoteTo(hn::Rebind<hwy::float16_t, D>(), numbers));
#else
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, numbers);
  const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(di, 0x8000));
  const auto magnitude = hn::And(bits, hn::Set(di, 0x7FFFFFFF));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(di, 1));
  auto half = hn::ShiftRight<13>(hn::Add(hn::Sub(magnitude, hn::Set(di, 0x38000000 - 0xFFF)), odd));
  const auto shifted = hn::BitCast(di, hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5f)));
  const auto subnormal = hn::Sub(shifted, hn::Set(di, 0x3F000000));
  half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(di, 0x38800000)), subnormal, half);
  half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x477FEFFF)), hn::Set(di, 0x7C00), half);
  const auto payload = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(di, 0x3FF));
  const auto nan = hn::Or(payload, hn::Set(di, 0x7E00));
  half = hn::IfThenElse(hn::Gt(magnitude, hn::Set(di, 0x7F800000)), nan, half);
  return hn::DemoteTo(dh, hn::Or(half, sign));
#endif
}
