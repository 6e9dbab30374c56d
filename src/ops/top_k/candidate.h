// A candidate for the top K: a key whose unsigned order is the requested order, and the element's index, so
// that one comparison decides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/half.h"

namespace anydml {

template <size_t kBytes>
using UnsignedOf = std::conditional_t<
    kBytes == 1, uint8_t,
    std::conditional_t<kBytes == 2, uint16_t, std::conditional_t<kBytes == 4, uint32_t, uint64_t>>>;

template <typename T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T> || std::is_same_v<T, Half>;

// Maps an element's bits to an unsigned number of the same width that is larger for elements that rank
// higher.
template <typename T>
constexpr UnsignedOf<sizeof(T)> OrderedBits(UnsignedOf<sizeof(T)> bits) {
  using Bits = UnsignedOf<sizeof(T)>;
  constexpr Bits kSign = Bits{1} << (8 * sizeof(T) - 1);
  if constexpr (kIsFloat<T>) {
    constexpr int kMantissa = sizeof(T) == 2 ? 10 : sizeof(T) == 4 ? 23 : 52;
    constexpr Bits kInfinity = static_cast<Bits>((kSign - 1) >> kMantissa << kMantissa);
    // Selections, not branches, so that loops are vectorised.
    constexpr Bits kOnes = static_cast<Bits>(~Bits{0});
    const Bits magnitude = bits & static_cast<Bits>(~kSign);
    Bits ordered = static_cast<Bits>(bits ^ (bits & kSign ? kOnes : kSign));
    ordered = magnitude == 0 ? kSign : ordered;      // both zeros
    return magnitude > kInfinity ? kOnes : ordered;  // every NaN ranks highest
  } else if constexpr (std::is_signed_v<T>) {
    return bits ^ kSign;
  } else {
    return bits;
  }
}

// Up to 32 bits of key share a word with the complement of the index: the larger word is the better
// candidate, and among equal keys the lower index wins.
struct NarrowCandidate {
  using Key = uint32_t;

  NarrowCandidate() = default;
  NarrowCandidate(Key key, uint32_t index) : word(uint64_t{key} << 32 | static_cast<uint32_t>(~index)) {}

  Key key() const { return static_cast<Key>(word >> 32); }
  uint32_t index() const { return ~static_cast<uint32_t>(word); }
  bool BetterThan(NarrowCandidate other) const { return word > other.word; }

  uint64_t word;
};

struct WideCandidate {
  using Key = uint64_t;

  WideCandidate() = default;
  WideCandidate(Key key, uint32_t index) : key_(key), index_(index) {}

  Key key() const { return key_; }
  uint32_t index() const { return index_; }
  bool BetterThan(const WideCandidate& other) const {
    return key_ != other.key_ ? key_ > other.key_ : index_ < other.index_;
  }

  uint64_t key_;
  uint32_t index_;
};

template <size_t kBytes>
using Candidate = std::conditional_t<kBytes == 8, WideCandidate, NarrowCandidate>;

}  // namespace anydml
