// Keys of elements: signed numbers in the requested order, so that vectors of them compare fast on every
// machine.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "ops/top_k/candidate.h"

namespace anydml {

// 32 bits for elements of up to 32 bits.
template <typename T>
using KeyOf = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;

template <typename T>
inline constexpr UnsignedOf<sizeof(T)> kAllOnes = static_cast<UnsignedOf<sizeof(T)>>(~uint64_t{0});

// Larger is better. Only the width of T is used: kWorstKey + [0, kAllOnes].
template <typename T>
inline constexpr KeyOf<T> kWorstKey = std::numeric_limits<KeyOf<T>>::min();
template <typename T>
inline constexpr KeyOf<T> kBestKey =
    static_cast<KeyOf<T>>(static_cast<std::make_unsigned_t<KeyOf<T>>>(kWorstKey<T>) ^ kAllOnes<T>);

template <typename T, bool kLargest>
constexpr KeyOf<T> KeyOfBits(UnsignedOf<sizeof(T)> bits) {
  using Unsigned = std::make_unsigned_t<KeyOf<T>>;
  // For the smallest elements the order is reversed.
  const UnsignedOf<sizeof(T)> ordered = OrderedBits<T>(bits) ^ (kLargest ? 0 : kAllOnes<T>);
  return static_cast<KeyOf<T>>(Unsigned{ordered} ^ static_cast<Unsigned>(kWorstKey<T>));
}

}  // namespace anydml
