// Turns bytes, a fuzzer's or random ones, into decisions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

namespace anydml::testing {

// Takes numbers from the front of the input, and zeros when it is used up. Small ranges take a single byte,
// so that a mutation of the input changes one decision.
class ByteSource {
 public:
  ByteSource(const uint8_t* data, size_t size) : rest_(data, size) {}

  bool empty() const { return rest_.empty(); }

  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const uint8_t byte = rest_.front();
    rest_ = rest_.subspan(1);
    return byte;
  }

  uint32_t Word() {
    uint32_t word = 0;
    for (int i = 0; i < 4; ++i) word |= uint32_t{Byte()} << (8 * i);
    return word;
  }

  uint64_t LongWord() {
    const uint64_t low = Word();
    return low | uint64_t{Word()} << 32;
  }

  // In [low, high].
  uint32_t Between(uint32_t low, uint32_t high) {
    const uint64_t range = uint64_t{high} - low + 1;
    return low + static_cast<uint32_t>((range <= 256 ? Byte() : Word()) % range);
  }

  // True once in `n` inputs; never when the input is used up.
  bool OneIn(uint32_t n) { return Between(0, n - 1) == n - 1; }

  template <typename List>
  auto Any(const List& list) {
    return list[Between(0, static_cast<uint32_t>(std::size(list)) - 1)];
  }

  std::span<const uint8_t> Take(size_t count) {
    const auto taken = rest_.first(std::min(count, rest_.size()));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const uint8_t> rest_;
};

}  // namespace anydml::testing
