#include "ops/top_k/cpu/sort_words.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

namespace anydml {
namespace {

// Merges [a, b) and [b, end) from both ends at once: two independent chains of branch-free steps. No bounds
// checks are needed while each end has taken at most as many as the shorter input has.
void Merge(const uint64_t* a, const uint64_t* b, const uint64_t* end, uint64_t* out) {
  const uint64_t* front_a = a;
  const uint64_t* front_b = b;
  const uint64_t* back_a = b;  // one past the end
  const uint64_t* back_b = end;
  uint64_t* front = out;
  uint64_t* back = out + (end - a);
  while (true) {
    const auto left_a = back_a - front_a;
    const auto left_b = back_b - front_b;
    const auto steps = std::min(left_a, left_b) / 2;
    if (steps == 0) break;
    for (auto i = steps; i > 0; --i) {
      const uint64_t x = *front_a, y = *front_b;
      const std::ptrdiff_t take_a = x > y;
      *front++ = std::max(x, y);
      front_a += take_a;
      front_b += 1 - take_a;
      const uint64_t u = back_a[-1], v = back_b[-1];
      const std::ptrdiff_t take_b = v < u;
      *--back = std::min(u, v);
      back_b -= take_b;
      back_a -= 1 - take_b;
    }
  }
  while (front_a < back_a && front_b < back_b) *front++ = *front_a > *front_b ? *front_a++ : *front_b++;
  front = std::copy(front_a, back_a, front);
  std::copy(front_b, back_b, front);
}

}  // namespace

uint64_t* MergeBlocks(uint64_t* words, uint32_t count, uint64_t* other) {
  for (uint64_t width = kSortedBlock; width < count; width *= 2) {
    for (uint64_t at = 0; at < count; at += 2 * width) {
      const uint64_t middle = std::min<uint64_t>(at + width, count);
      const uint64_t end = std::min<uint64_t>(at + 2 * width, count);
      Merge(words + at, words + middle, words + end, other + at);
    }
    std::swap(words, other);
  }
  return words;
}

uint64_t* RadixSortWords(uint64_t* words, uint32_t count, uint64_t* other) {
  // With more bits the ends of all buckets do not fit into L1.
  constexpr int kBits = 9;
  constexpr uint32_t kDigits = 1u << kBits;
  constexpr int kMaxPasses = (32 + kBits - 1) / kBits;
  const auto key = [](uint64_t word) { return static_cast<uint32_t>(word >> 32); };
  uint32_t best = 0, worst = ~0u;
  for (uint32_t i = 0; i < count; ++i) {
    best = std::max(best, key(words[i]));
    worst = std::min(worst, key(words[i]));
  }
  const auto digit = [&](uint64_t word, int pass) {
    return ((best - key(word)) >> (pass * kBits)) & (kDigits - 1);
  };
  // Candidates for few places have similar keys: only the bits in which they differ are sorted.
  const int passes = (static_cast<int>(std::bit_width(best - worst)) + kBits - 1) / kBits;
  uint32_t offsets[kMaxPasses][kDigits] = {};
  for (uint32_t i = 0; i < count; ++i) {
    for (int pass = 0; pass < passes; ++pass) ++offsets[pass][digit(words[i], pass)];
  }
  for (int pass = 0; pass < passes; ++pass) {
    uint32_t sum = 0;
    for (uint32_t& offset : offsets[pass]) sum += std::exchange(offset, sum);
    for (uint32_t i = 0; i < count; ++i) other[offsets[pass][digit(words[i], pass)]++] = words[i];
    std::swap(words, other);
  }
  return words;
}

}  // namespace anydml
