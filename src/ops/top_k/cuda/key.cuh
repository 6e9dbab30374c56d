// Keys and candidates on the device.
//
// A key is an unsigned number of the element's width, larger for the better element. A word is a key above
// the complement of the index: all words of a sequence are distinct, the larger one is the better candidate,
// and equal elements are ordered by index without any code for ties.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/top_k/candidate.h"
#include "ops/top_k/plan.h"

namespace anydml {

// 16 bytes of a sequence: elements as loaded, or their keys.
template <int kBytes>
struct KeyVector {
  static constexpr int kElements = 16 / kBytes;
  using Key = UnsignedOf<kBytes>;

  uint32_t words[4];

  // `e` is a compile-time constant wherever this is used, so that no array leaves the registers.
  __device__ Key operator[](int e) const {
    if constexpr (kBytes == 8) {
      return uint64_t{words[2 * e + 1]} << 32 | words[2 * e];
    } else {
      return static_cast<Key>(words[e * kBytes / 4] >> (8 * (e * kBytes % 4)));
    }
  }

  // The same for any `e`.
  __device__ Key Select(int e) const {
    const int w = e * kBytes / 4;
    const uint32_t word = w < 2 ? (w == 0 ? words[0] : words[1]) : (w == 2 ? words[2] : words[3]);
    if constexpr (kBytes == 8) {
      return uint64_t{w == 0 ? words[1] : words[3]} << 32 | word;
    } else {
      return static_cast<Key>(word >> (8 * (e * kBytes % 4)));
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

// Elements to keys, as OrderedBits. Adding +0 turns -0 into +0 and every NaN into the canonical positive one,
// on another pipeline than that of comparisons.
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

// How to compare packed elements without converting them to keys first.
enum class BetterBy {
  kKey,     // after toggling bits, as unsigned integers
  kMaxNan,  // as floating-point numbers, with NaN above all
  kMin,     // as floating-point numbers, with NaN worse than all
};

// Calls f.operator()<kBetterBy>() with the method for the order: once around a loop, not inside it.
template <int kBytes, typename F>
__device__ auto DispatchByOrder(const KeyOrder& order, F&& f) {
  if constexpr (kBytes == 2 || kBytes == 4) {
    if (order.is_float) {
      return order.flip == 0 ? f.template operator()<BetterBy::kMaxNan>()
                             : f.template operator()<BetterBy::kMin>();
    }
  }
  return f.template operator()<BetterBy::kKey>();
}

// The element of a key; false if several elements have it (zeros, NaNs).
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

// The best elements of vectors, in little more than one instruction per word. The result is packed as the
// elements are: the best of several lanes.
template <int kBytes, BetterBy kBetterBy>
struct PackedBest {
  using Key = UnsignedOf<kBytes>;
  using Packed = std::conditional_t<kBytes == 8, uint64_t, uint32_t>;

  // Not better than any element.
  static constexpr Packed kWorst = kBetterBy == BetterBy::kKey      ? 0
                                   : kBetterBy == BetterBy::kMaxNan ? (kBytes == 2 ? 0xFC00FC00 : 0xFF800000)
                                                                    : (kBytes == 2 ? 0x7FFF7FFF : 0x7FFFFFFF);

  static __device__ Packed Of(const KeyOrder& order, KeyVector<kBytes> vector) {
    if constexpr (kBytes == 8) {
      ElementsToKeys(order, &vector);
      return max(vector[0], vector[1]);
    } else {
#pragma unroll
      for (uint32_t& word : vector.words) {
        if constexpr (kBetterBy == BetterBy::kKey) word ^= static_cast<uint32_t>(order.flip);
        // For bytes, the upper ones of 16 bits are compared: once as they are, once shifted there. The lower
        // ones decide only between equal ones.
        if constexpr (kBytes == 1) word = __vmaxu2(word, word << 8);
      }
      const uint32_t(&words)[4] = vector.words;
      return Better(Better(words[0], words[1]), Better(words[2], words[3]));
    }
  }

  static __device__ Packed Better(Packed a, Packed b) {
    Packed better;
    if constexpr (kBetterBy == BetterBy::kKey) {
      better = kBytes >= 4 ? max(a, b) : __vmaxu2(a, b);
    } else if constexpr (kBetterBy == BetterBy::kMaxNan && kBytes == 4) {
      asm("max.NaN.f32 %0, %1, %2;" : "=r"(better) : "r"(a), "r"(b));
    } else if constexpr (kBetterBy == BetterBy::kMaxNan) {
      asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(better) : "r"(a), "r"(b));
    } else if constexpr (kBytes == 4) {
      asm("min.f32 %0, %1, %2;" : "=r"(better) : "r"(a), "r"(b));
    } else {
      asm("min.f16x2 %0, %1, %2;" : "=r"(better) : "r"(a), "r"(b));
    }
    return better;
  }

  static __device__ Key KeyOf(const KeyOrder& order, Packed best) {
    if constexpr (kBytes == 4 && kBetterBy != BetterBy::kKey) {
      return ElementToKey<kBytes>(order, best);
    } else if constexpr (kBytes == 2) {
      best = Better(best, best >> 16);
      return kBetterBy == BetterBy::kKey ? best : ElementToKey<kBytes>(order, best);
    } else if constexpr (kBytes == 1) {
      return max(best >> 24, best >> 8 & 0xFF);
    } else {
      return best;
    }
  }

  // Whether an element has the key `least` or a better one; also true if NaN leaves doubt.
  static __device__ bool Reaches(const KeyOrder& order, Packed best, Key least) {
    if constexpr (kBytes == 4 && kBetterBy != BetterBy::kKey) {
      Key bound;
      KeyToElement<kBytes>(order, least, &bound);
      const bool worse = kBetterBy == BetterBy::kMaxNan ? __uint_as_float(best) < __uint_as_float(bound)
                                                        : __uint_as_float(best) > __uint_as_float(bound);
      return !worse;
    } else if constexpr (kBytes == 2 && kBetterBy != BetterBy::kKey) {
      Key bound;
      KeyToElement<kBytes>(order, least, &bound);
      uint32_t worse;  // both halves
      const uint32_t bounds = bound * 0x10001u;
      if constexpr (kBetterBy == BetterBy::kMaxNan) {
        asm("{.reg .pred a, b; setp.lt.f16x2 a|b, %1, %2; and.pred a, a, b; selp.u32 %0, 1, 0, a;}"
            : "=r"(worse)
            : "r"(best), "r"(bounds));
      } else {
        asm("{.reg .pred a, b; setp.gt.f16x2 a|b, %1, %2; and.pred a, a, b; selp.u32 %0, 1, 0, a;}"
            : "=r"(worse)
            : "r"(best), "r"(bounds));
      }
      return worse == 0;
    } else {
      return KeyOf(order, best) >= least;
    }
  }
};

// An element that is not better than any other.
template <int kBytes>
__device__ UnsignedOf<kBytes> WorstElement(const KeyOrder& order) {
  using Key = UnsignedOf<kBytes>;
  constexpr uint64_t kMinusInfinity = kBytes == 2 ? 0xFC00 : kBytes == 4 ? 0xFF800000 : 0xFFF0000000000000;
  if (order.is_float && order.flip == 0) return static_cast<Key>(kMinusInfinity);
  Key element;
  KeyToElement<kBytes>(order, 0, &element);
  return element;
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

template <int kBytes>
struct LongWords {
  using Key = UnsignedOf<kBytes>;
  using Word = WordFor<kBytes>;
  static constexpr int kKeyBytes = kBytes;

  static __device__ Key KeyOf(Word word) { return static_cast<Key>(word >> 32); }
};

// Words of sequences so short that narrow keys and indices fit into 32 bits.
template <int kBytes>
struct ShortWords {
  using Key = UnsignedOf<kBytes>;
  using Word = std::conditional_t<kBytes <= 2, uint32_t, WordFor<kBytes>>;

  static constexpr int kKeyBytes = kBytes;
  static constexpr int kIndexBits = kBytes <= 2 ? 32 - 8 * kBytes : 32;
  static constexpr uint32_t kIndexMask = ~0u >> (32 - kIndexBits);

  static __device__ Word Make(Key key, uint32_t index) { return Worst(key) | (~index & kIndexMask); }
  static __device__ Word Worst(Key key) { return Word{key} << kIndexBits; }  // with this key
  static __device__ Word Best(Key key) { return Worst(key) | kIndexMask; }
  static __device__ Key KeyOf(Word word) { return static_cast<Key>(word >> kIndexBits); }
  static __device__ uint32_t IndexOf(Word word) { return ~static_cast<uint32_t>(word) & kIndexMask; }
};

}  // namespace anydml
