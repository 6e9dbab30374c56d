// Memory between guards: reading or writing a byte outside it crashes, or is detected afterwards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernel/kernel.h"

namespace anydml::testing {

using Bytes = std::vector<uint8_t>;

inline constexpr uint8_t kGap = 0xA5;

// `size` bytes of kGap between two inaccessible pages. They begin at the first one or, with `at_end`, end at
// the second one, as far as the alignment of elements allows. The rest of the pages in between is filled, and
// checked by GuardsIntact.
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
