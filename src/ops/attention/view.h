// Where the elements of attention's tensors are: heads of a tensor, or of one tensor of several, are strides.
#pragma once

#include <cstdint>

namespace anydml {

// POD: a device's kernel takes it as it is. Strides are in elements; that of a dimension of one element is 0
// (of columns 1).
struct AttentionView {
  bool exists = false;
  uint32_t binding = 0;  // which input or output it is in
  uint64_t offset = 0;   // of the first element there
  uint64_t batch = 0, head = 0, row = 0, column = 1;

  constexpr uint64_t At(uint64_t b, uint64_t h, uint64_t r) const {
    return offset + b * batch + h * head + r * row;
  }
  constexpr uint64_t At(uint64_t b, uint64_t h, uint64_t r, uint64_t c) const {
    return At(b, h, r) + c * column;
  }
};

// How many keys of each batch are there before the call (PastSequenceLengths): the rows of the present
// outputs up to there are read, the new ones come behind them, and a query sees the keys up to its own.
struct AttentionLengths {
  bool exists = false;
  uint64_t stride = 0;  // from batch to batch
  uint64_t most = 0;    // for which there is room beside the new ones

  // Numbers that cannot be are the nearest that can.
  constexpr uint64_t Of(const int32_t* numbers, uint64_t b) const {
    const int32_t number = numbers[b * stride];
    if (number < 0) return 0;
    return static_cast<uint64_t>(number) < most ? static_cast<uint64_t>(number) : most;
  }
};

}  // namespace anydml
