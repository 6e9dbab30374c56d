// Keys and candidates on the device.
//
// A key is an unsigned number of the element's width, larger for the better element. A word is a
// key above the complement of the index: all words of a sequence differ, the larger one is the
// better candidate, and equal elements are ordered by index without anyone caring about ties.
#pragma once

#include <cstdint>

#include "base/data_type.h"
#include "ops/top_k/candidate.h"

namespace anydml {

// Made on the host, so that kernels are compiled per width and not per type and direction.
struct KeyOrder {
  bool is_float = false;
  uint64_t flip = 0;  // toggled in every key; repeated to fill 64 bits
};

inline KeyOrder KeyOrderOf(DataType type, bool largest) {
  const bool is_float =
      type == DataType::kFloat16 || type == DataType::kFloat32 || type == DataType::kFloat64;
  const bool is_signed = type == DataType::kInt8 || type == DataType::kInt16 || type == DataType::kInt32 ||
                         type == DataType::kInt64;
  KeyOrder order{is_float, largest ? 0 : ~uint64_t{0}};
  if (is_signed) {
    for (uint32_t bit = BitSize(type); bit <= 64; bit += BitSize(type))
      order.flip ^= uint64_t{1} << (bit - 1);
  }
  return order;
}

// 16 bytes of a sequence: elements as loaded, or their keys.
template <int kBytes>
struct KeyVector {
  static constexpr int kElements = 16 / kBytes;
  using Key = UnsignedOf<kBytes>;

  uint32_t words[4];

  // `e` is known to the compiler wherever this is used: no array leaves the registers.
  __device__ Key operator[](int e) const {
    if constexpr (kBytes == 8) {
      return uint64_t{words[2 * e + 1]} << 32 | words[2 * e];
    } else {
      return static_cast<Key>(words[e * kBytes / 4] >> (8 * (e * kBytes % 4)));
    }
  }

  __device__ Key Max() const {
    const auto max_of = [](uint32_t a, uint32_t b) {
      return kBytes == 1 ? __vmaxu4(a, b) : kBytes == 2 ? __vmaxu2(a, b) : max(a, b);
    };
    if constexpr (kBytes == 8) {
      return max((*this)[0], (*this)[1]);
    } else {
      // Lane by lane, then the lanes of one word.
      KeyVector lanes{{max_of(max_of(words[0], words[1]), max_of(words[2], words[3]))}};
      Key best = lanes[0];
#pragma unroll
      for (int e = 1; e < 4 / kBytes; ++e) best = max(best, lanes[e]);
      return best;
    }
  }

  __device__ void Set(int e, Key key) {
    if constexpr (kBytes == 8) {
      words[2 * e] = static_cast<uint32_t>(key);
      words[2 * e + 1] = static_cast<uint32_t>(key >> 32);
    } else {
      const int shift = 8 * (e * kBytes % 4);
      uint32_t& word = words[e * kBytes / 4];
      word = (word & ~(uint32_t{static_cast<Key>(~Key{0})} << shift)) | uint32_t{key} << shift;
    }
  }
};

// Elements to keys, as OrderedBits does. Adding +0 makes +0 of -0 and the one canonical,
// positive NaN of every NaN, on another pipe than the one that compares.
template <int kBytes>
__device__ void ElementsToKeys(const KeyOrder& order, KeyVector<kBytes>* vector) {
  const uint32_t flip[2] = {static_cast<uint32_t>(order.flip), static_cast<uint32_t>(order.flip >> 32)};
  if constexpr (kBytes == 8) {
    if (order.is_float) {
#pragma unroll
      for (int e = 0; e < 2; ++e) vector->Set(e, OrderedBits<double>((*vector)[e]));
    }
  } else if constexpr (kBytes == 4) {
    if (order.is_float) {
#pragma unroll
      for (uint32_t& word : vector->words) {
        const uint32_t bits = __float_as_uint(__fadd_rn(__uint_as_float(word), 0.0f));
        word = bits ^ (static_cast<uint32_t>(static_cast<int32_t>(bits) >> 31) | 0x80000000u);
      }
    }
  } else if constexpr (kBytes == 2) {
    if (order.is_float) {
#pragma unroll
      for (uint32_t& word : vector->words) {
        uint32_t bits;
        asm("add.rn.f16x2 %0, %1, %2;" : "=r"(bits) : "r"(word), "r"(0));
        uint32_t negative;  // the sign of each half, repeated (__byte_perm cannot)
        asm("prmt.b32 %0, %1, %1, 0xBB99;" : "=r"(negative) : "r"(bits));
        word = bits ^ (negative | 0x80008000u);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) vector->words[i] ^= flip[i % 2];
}

template <int kBytes>
__device__ UnsignedOf<kBytes> ElementToKey(const KeyOrder& order, UnsignedOf<kBytes> element) {
  KeyVector<kBytes> vector{};
  vector.Set(0, element);
  ElementsToKeys(order, &vector);
  return vector[0];
}

// The element behind a key; false where several have it (zeros, NaNs).
template <int kBytes>
__device__ bool KeyToElement(const KeyOrder& order, UnsignedOf<kBytes> key, UnsignedOf<kBytes>* element) {
  using Key = UnsignedOf<kBytes>;
  constexpr Key kSign = Key{1} << (8 * kBytes - 1);
  constexpr Key kOnes = static_cast<Key>(~Key{0});
  const Key ordered = key ^ static_cast<Key>(order.flip);
  if (!order.is_float) {
    *element = ordered;
    return true;
  }
  *element = static_cast<Key>(ordered ^ (ordered & kSign ? kSign : kOnes));
  return ordered != kSign && ordered != kOnes;
}

template <int kBytes>
struct WordOf {
  using Type = uint64_t;
};
template <>
struct WordOf<8> {
  using Type = unsigned __int128;
};
template <int kBytes>
using WordFor = typename WordOf<kBytes>::Type;

template <int kBytes>
__device__ WordFor<kBytes> MakeWord(UnsignedOf<kBytes> key, uint32_t index) {
  return WordFor<kBytes>{key} << 32 | static_cast<uint32_t>(~index);
}
template <typename Word>
__device__ uint32_t IndexOfWord(Word word) {
  return ~static_cast<uint32_t>(word);
}

}  // namespace anydml
