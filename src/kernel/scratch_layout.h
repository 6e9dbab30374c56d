// The layout of a kernel's temporary or persistent memory: pieces, one after the other.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernel/kernel.h"

namespace anydml {

// Sums that overflow 64 bits saturate: no memory is that large.
constexpr uint64_t SaturatingAdd(uint64_t a, uint64_t b) { return a + b < a ? ~uint64_t{0} : a + b; }
constexpr uint64_t SaturatingAlignUp(uint64_t bytes, uint64_t alignment) {
  const uint64_t rounded = SaturatingAdd(bytes, alignment - 1);
  return rounded == ~uint64_t{0} ? rounded : rounded / alignment * alignment;
}

class ScratchLayout {
 public:
  struct Piece {
    uint64_t offset = 0;
    uint64_t bytes = 0;

    Buffer In(const Buffer& memory) const { return {memory.data + offset, bytes}; }
    template <typename T>
    T* In(const Buffer& memory) const {
      return reinterpret_cast<T*>(memory.data + offset);
    }
  };

  // `alignment` is a power of two, relative to the beginning of the memory.
  Piece Add(std::string name, uint64_t bytes, uint64_t alignment = 16) {
    const Piece piece = {SaturatingAlignUp(bytes_, alignment), bytes};
    bytes_ = SaturatingAdd(piece.offset, bytes);
    names_.push_back(std::move(name));
    pieces_.push_back(piece);
    return piece;
  }

  uint64_t bytes() const { return bytes_; }

  // "keys: 0 to 4096; indices: 4096 to 8192", for diagnostics.
  std::string ToString() const {
    std::string text;
    for (size_t i = 0; i < pieces_.size(); ++i) {
      text += StrCat(text.empty() ? "" : "; ", names_[i], ": ", pieces_[i].offset, " to ",
                     SaturatingAdd(pieces_[i].offset, pieces_[i].bytes));
    }
    return text;
  }

 private:
  std::vector<std::string> names_;
  std::vector<Piece> pieces_;
  uint64_t bytes_ = 0;
};

}  // namespace anydml
