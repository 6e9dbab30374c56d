// The places of attention's elements: heads of a tensor, and tensors within a stacked one, are strides.
#pragma once

#include <cstdint>

namespace anydml {

// POD, since kernels of devices take it as it is. Strides are in elements; for a dimension of one element
// they are 0 (1 for columns).
struct AttentionView {
  bool exists = false;
  uint32_t binding = 0;  // index of the input or output that contains it
  uint64_t offset = 0;   // of its first element
  uint64_t batch = 0, head = 0, row = 0, column = 1;

  constexpr uint64_t At(uint64_t b, uint64_t h, uint64_t r) const {
    return offset + b * batch + h * head + r * row;
  }
  constexpr uint64_t At(uint64_t b, uint64_t h, uint64_t r, uint64_t c) const {
    return At(b, h, r) + c * column;
  }
};

// How many keys each batch has before the call (PastSequenceLengths): the present outputs are read up to
// there, new rows follow, and a query sees the keys up to its own.
struct AttentionLengths {
  bool exists = false;
  uint64_t stride = 0;  // from batch to batch
  uint64_t most = 0;    // the capacity besides the new keys

  // Invalid numbers are clamped to valid ones.
  constexpr uint64_t Of(const int32_t* numbers, uint64_t b) const {
    const int32_t number = numbers[b * stride];
    if (number < 0) return 0;
    return static_cast<uint64_t>(number) < most ? static_cast<uint64_t>(number) : most;
  }
};

}  // namespace anydml
