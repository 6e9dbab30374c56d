// Four tiles of sums of byte products in AMX registers, or in a test's stand-ins for them. For files that are
// compiled for AMX: nothing here is shared with others.
//
// T, the registers: Zero<n>(), Load<n>(from, stride), Store<n>(to, stride), strides in bytes, and Dot<sums,
// a, b>(): 16 x 16 sums, from 16 rows of 16 words with signed bytes and 16 steps of 16 words with unsigned
// ones.
#pragma once

#include <cstdint>

#include "ops/integer_product/cpu/dot_kernel.h"

namespace anydml {
namespace {

constexpr uint32_t kAmxSide = 16;  // rows and columns of a register

// As MicroKernel::Run, with the first kUsed registers of columns. A panel of A has two registers' rows.
template <class T, uint32_t kUsed>
void RunAmxTile(const float* a, const float* b, uint64_t b_stride, uint64_t steps, float* to,
                uint64_t to_stride, bool accumulate, const MicroKernel::Ahead& /*ahead*/) {
  constexpr uint64_t kWordBytes = sizeof(float), kTile = kAmxSide * kAmxSide;
  const uint64_t stride = to_stride * kWordBytes;
  float* const second = to + kAmxSide * to_stride;
  if (accumulate) {  // wraps
    T::template Load<0>(to, stride);
    T::template Load<2>(second, stride);
    if (kUsed > 1) T::template Load<1>(to + kAmxSide, stride);
    if (kUsed > 1) T::template Load<3>(second + kAmxSide, stride);
  } else {
    T::template Zero<0>();
    T::template Zero<2>();
    if (kUsed > 1) T::template Zero<1>();
    if (kUsed > 1) T::template Zero<3>();
  }
  for (uint64_t step = 0; step < steps; step += kAmxSide, a += 2 * kTile, b += kAmxSide * b_stride) {
    T::template Load<6>(b, b_stride * kWordBytes);
    T::template Load<4>(a, kAmxSide * kWordBytes);
    T::template Dot<0, 4, 6>();
    T::template Load<5>(a + kTile, kAmxSide * kWordBytes);
    T::template Dot<2, 5, 6>();
    if (kUsed > 1) {
      T::template Load<7>(b + kAmxSide, b_stride * kWordBytes);
      T::template Dot<1, 4, 7>();
      T::template Dot<3, 5, 7>();
    }
  }
  T::template Store<0>(to, stride);
  T::template Store<2>(second, stride);
  if (kUsed > 1) T::template Store<1>(to + kAmxSide, stride);
  if (kUsed > 1) T::template Store<3>(second + kAmxSide, stride);
}

template <class T>
constexpr DotTile AmxTileOf(void (*begin)(), void (*end)()) {
  return {{2 * kAmxSide,
           2 * kAmxSide,
           kAmxSide,
           &RunAmxTile<T, 2>,
           {&RunAmxTile<T, 1>, nullptr},
           /*bytes=*/true},
          /*row_words=*/kAmxSide,
          /*column_words=*/1,
          begin,
          end};
}

}  // namespace
}  // namespace anydml
