// Memory that ends where it says: a byte read or written outside is a crash, or found afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

namespace anydml::testing {

using Bytes = std::vector<uint8_t>;

inline constexpr uint8_t kGap = 0xA5;

// `size` bytes of kGap between pages that nobody may touch. It lies against the one before it or,
// where `at_end`, against the one behind it, as far as the alignment of elements allows. What is
// left of its own pages is filled, and looked at by GuardsIntact.
class GuardedBuffer {
 public:
  GuardedBuffer(size_t size, bool at_end);
  GuardedBuffer(const Bytes& content, bool at_end);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  uint8_t* data() const { return data_; }
  Buffer buffer() const { return {reinterpret_cast<std::byte*>(data_), size_}; }
  Buffer with_guards() const { return {reinterpret_cast<std::byte*>(pages_), pages_size_}; }
  Bytes content() const { return Bytes(data_, data_ + size_); }
  bool GuardsIntact() const;

 private:
  const size_t size_;
  const size_t pages_size_;
  uint8_t* const pages_;
  uint8_t* const data_;
};

}  // namespace anydml::testing
