// The loops of a group of functions for every SIMD target, or for one lane without Highway. A file defines
// ANYDML_GROUP (a table of function.h), ANYDML_GROUP_FILE (itself), ANYDML_FIND_LOOP (its export),
// ANYDML_GROUP_STORES_BYTES (whether loops can store bytes; others can store FLOAT16) and
// ANYDML_GROUP_ASKS_AHEAD (whether streaming loops prefetch), then includes this file, which has no include
// guard.
#include <algorithm>
#include <type_traits>

#include "base/half.h"
#include "ops/numbers/element_loops.h"

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE ANYDML_GROUP_FILE
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include "ops/numbers/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anydml {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
#undef ANYDML_BODY
#define ANYDML_BODY HWY_INLINE

namespace fn {
namespace math = anydml::HWY_NAMESPACE;
#include "ops/element/functions-inl.h"
#include "ops/element/transcendental_functions-inl.h"
}  // namespace fn

#include "ops/numbers/half_vectors-inl.h"
#include "ops/numbers/store_pairs-inl.h"

// The low bytes.
#if HWY_ARCH_ARM
// Packs two vectors of words into one of half-words.
template <class D, class V>
HWY_INLINE auto LowHalves(D, V first, V second) {
  const hn::Repartition<uint16_t, D> dh;
  return hn::ConcatEven(dh, hn::BitCast(dh, second), hn::BitCast(dh, first));
}
template <class D, class V>
HWY_INLINE void WriteBytes(D d, V first, V second, bool, uint8_t* to) {
  const hn::Rebind<uint8_t, hn::Repartition<uint16_t, D>> both;
  hn::StoreU(hn::TruncateTo(both, LowHalves(d, first, second)), both, to);
}
template <class D, class V>
HWY_INLINE void WriteBytes(D d, V v0, V v1, V v2, V v3, bool, uint8_t* to) {
  const hn::Repartition<uint8_t, D> all;
  const auto first = hn::BitCast(all, LowHalves(d, v0, v1)), second = hn::BitCast(all, LowHalves(d, v2, v3));
  hn::StoreU(hn::ConcatEven(all, second, first), all, to);
}
#else
template <class D, class V>
HWY_INLINE auto LowBytes(D, V words) {
  return hn::TruncateTo(hn::Rebind<uint8_t, D>(), hn::BitCast(hn::RebindToUnsigned<D>(), words));
}
template <class D, class V>
HWY_INLINE void WriteBytes(D d, V first, V second, bool streams, uint8_t* to) {
  StoreTogether(hn::Rebind<uint8_t, D>(), LowBytes(d, first), LowBytes(d, second), streams, to);
}
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
template <class D, class V>
HWY_INLINE void WriteBytes(D d, V v0, V v1, V v2, V v3, bool streams, uint8_t* to) {
  const hn::Twice<hn::Rebind<uint8_t, D>> half;
  const auto first = hn::Combine(half, LowBytes(d, v1), LowBytes(d, v0));
  StoreTogether(half, first, hn::Combine(half, LowBytes(d, v3), LowBytes(d, v2)), streams, to);
}
#endif
#endif
// Whether storing the bytes of four vectors at a time is faster: with 512-bit vectors they are a whole cache
// line, which goes to memory as one. A comparison of 128 MiB takes 2.9 ms on two threads of a Xeon this way,
// and 4.6 in half lines.
inline constexpr bool kHasByteFours = ANYDML_GROUP_STORES_BYTES && HWY_TARGET != HWY_SCALAR &&
                                      HWY_TARGET != HWY_EMU128 && (HWY_ARCH_ARM || HWY_ARCH_X86);

#include "ops/numbers/bare_functions-inl.h"
#include "ops/numbers/usual_functions-inl.h"
#include "ops/numbers/element_loops-inl.h"

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace anydml
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anydml {
namespace {
HWY_EXPORT(FindInGroup);
}  // namespace

ElementLoop ANYDML_FIND_LOOP(uint32_t row, Class type) {
  return HWY_DYNAMIC_DISPATCH(FindInGroup)(row, static_cast<uint32_t>(type));
}
}  // namespace anydml
#endif

#else  // without Highway
#include "ops/element/lane_functions.h"

namespace anydml {
namespace {

// Vectors of one lane.
namespace hn {
using namespace lane;  // NOLINT(google-build-using-namespace)
template <typename T>
using ScalableTag = Tag<T>;
template <class D>
constexpr size_t Lanes(D) {
  return 1;
}
template <class D>
constexpr size_t MaxLanes(D) {
  return 1;
}
template <class D>
Vec<D> LoadU(D, const Vec<D>* from) {
  return *from;
}
template <class D>
void StoreU(Vec<D> value, D, Vec<D>* to) {
  *to = value;
}
}  // namespace hn
namespace fn = lane_functions;
#define ANYDML_BODY inline

inline float LoadHalves(hn::Tag<float>, const uint16_t* from) { return ToFloat(Half{*from}); }
inline void WriteHalves(hn::Tag<float>, float first, float second, bool, uint16_t* to) {
  to[0] = ToHalf(first).bits;
  to[1] = ToHalf(second).bits;
}
inline constexpr bool kHasByteFours = false;
template <typename T>
void WriteBytes(hn::Tag<T>, T first, T second, bool, uint8_t* to) {
  to[0] = static_cast<uint8_t>(std::bit_cast<uint32_t>(first));
  to[1] = static_cast<uint8_t>(std::bit_cast<uint32_t>(second));
}
template <typename T>
void StreamPair(hn::Tag<T>, T first, T second, T* to) {
  to[0] = first;
  to[1] = second;
}

#include "ops/numbers/bare_functions-inl.h"
#include "ops/numbers/usual_functions-inl.h"
#include "ops/numbers/element_loops-inl.h"

}  // namespace

ElementLoop ANYDML_FIND_LOOP(uint32_t row, Class type) {
  return FindInGroup(row, static_cast<uint32_t>(type));
}

}  // namespace anydml
#endif
