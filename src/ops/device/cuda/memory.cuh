// Accesses of several bytes at once, and asynchronous copies to shared memory, complete after WaitForCopies.
// Also compiled for hosts, so that tests can do what a block does.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include "ops/numbers/math/lane.h"

// Loop unrolling: full, so that arrays indexed in the loop are in registers, or none.
#ifdef __CUDA_ARCH__
#define ANYDML_UNROLL _Pragma("unroll")
#define ANYDML_LOOP _Pragma("unroll 1")
#else
#define ANYDML_UNROLL
#define ANYDML_LOOP
#endif

namespace anydml::element_cuda {

// f.template operator()<Unsigned>() for elements of `bytes`.
template <typename F>
ANYDML_LANE void ForWidth(uint32_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    default:
      return f.template operator()<uint64_t>();
  }
}

namespace detail {
template <uint32_t kBytes>
struct UnitOf;
template <>
struct UnitOf<1> {
  using Type = uint8_t;
};
template <>
struct UnitOf<2> {
  using Type = uint16_t;
};
template <>
struct UnitOf<4> {
  using Type = uint32_t;
};
template <>
struct UnitOf<8> {
  using Type = uint2;
};
template <>
struct UnitOf<16> {
  using Type = uint4;
};
}  // namespace detail
template <uint32_t kBytes>
using Unit = typename detail::UnitOf<kBytes>::Type;

// Elements in registers that move as one.
template <typename T, uint32_t kCount>
struct alignas(sizeof(T) * kCount > 16 ? 16 : sizeof(T) * kCount) Pack {
  T elements[kCount];
};

// Part `kPart` of `kParts`.
template <uint32_t kPart, uint32_t kParts, typename T, uint32_t kCount>
ANYDML_LANE Pack<T, kCount / kParts> PartOf(const Pack<T, kCount>& pack) {
  Pack<T, kCount / kParts> part;
  ANYDML_UNROLL
  for (uint32_t i = 0; i < kCount / kParts; ++i)
    part.elements[i] = pack.elements[kPart * (kCount / kParts) + i];
  return part;
}

// At most 16 bytes, aligned to their size.
template <typename T, uint32_t kCount>
ANYDML_LANE void Write(std::byte* to, const Pack<T, kCount>& pack) {
  using Bytes = Unit<sizeof(pack)>;
  Bytes unit;
  memcpy(&unit, &pack, sizeof(unit));
  *reinterpret_cast<Bytes*>(to) = unit;
}

template <typename T, uint32_t kCount>
ANYDML_LANE void Read(const std::byte* from, Pack<T, kCount>* pack) {
  using Bytes = Unit<sizeof(*pack)>;
  const Bytes unit = *reinterpret_cast<const Bytes*>(from);
  memcpy(pack, &unit, sizeof(unit));
}

#ifdef __CUDA_ARCH__
// Copies 4, 8 or 16 bytes, aligned to their size, from global to shared memory.
__device__ __forceinline__ void StartCopy(std::byte* to, const std::byte* from, uint32_t bytes) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  if (bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(from) : "memory");
  } else if (bytes == 8) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(address), "l"(from) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from) : "memory");
  }
}
// Waits for the calling thread's copies.
__device__ __forceinline__ void WaitForCopies() { asm volatile("cp.async.wait_all;" ::: "memory"); }
__device__ __forceinline__ void ClearBits(uint32_t* word, uint32_t bits) { atomicAnd(word, ~bits); }
__device__ __forceinline__ void SetBits(uint32_t* word, uint32_t bits) { atomicOr(word, bits); }
#else
inline void StartCopy(std::byte* to, const std::byte* from, uint32_t bytes) { memcpy(to, from, bytes); }
inline void WaitForCopies() {}
inline void ClearBits(uint32_t* word, uint32_t bits) { *word &= ~bits; }
inline void SetBits(uint32_t* word, uint32_t bits) { *word |= bits; }
#endif

}  // namespace anydml::element_cuda
