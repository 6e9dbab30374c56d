// The parameters of a loop over contiguous elements. Included by a file that is compiled for a newer
// processor than the others: nothing of the standard library but types.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anydml {

struct Instruction;

// The format of a source's or target's elements in memory.
enum class Storage : uint8_t {
  kRegister,  // numbers of a register's class
  kHalf,      // FLOAT16, for a register of FLOAT32
  kByte,      // the low byte, for targets of logic functions
};

// A multiple of the loop's granule of elements.
struct LoopPiece {
  const std::byte* sources[3];
  uint32_t steps[3];  // bytes from an element to the next; 0: one vector of memory, repeated
  bool halves[3];     // Storage::kHalf
  bool repeats[3];    // the row is the same for all rows, of which this piece may be one
  std::byte* target;  // may equal a source
  Storage target_storage;
  bool streams;  // with non-temporal stores; the target is aligned to 64 bytes
  uint64_t count;
  const Instruction* instruction;
  // Several such rows and their strides in bytes.
  uint64_t rows;
  uint64_t row_steps[3], target_row_step;
  float low, high;  // limits, for FLOAT16 loops that clip
};

}  // namespace anydml
