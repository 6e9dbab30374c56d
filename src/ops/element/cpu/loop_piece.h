// What a loop over neighbouring elements is given. Included by a file that is compiled for more than the
// others: nothing of the standard library's but types.
#pragma once

#include <cstddef>
#include <cstdint>

namespace anydml {

struct Instruction;

// How the elements of a source or of a target lie in memory.
enum class Storage : uint8_t {
  kRegister,  // as numbers of a register's class
  kHalf,      // FLOAT16, of a register of FLOAT32
  kByte,      // the low byte, of targets of the functions of logic
};

// Some multiple of a loop's granule of elements.
struct LoopPiece {
  const std::byte* sources[3];
  uint32_t
      steps[3];  // bytes from an element to the next; 0: every vector is the first one, which is all there is
  bool halves[3];     // Storage::kHalf
  bool repeats[3];    // the row is the same for all rows, of which this piece may be one
  std::byte* target;  // may be a source
  Storage target_storage;
  bool streams;  // past the caches; the target is aligned to 64 bytes
  uint64_t count;
  const Instruction* instruction;
  // Several such rows, so many bytes apart.
  uint64_t rows;
  uint64_t row_steps[3], target_row_step;
  float low, high;  // limits, of loops of halves that clip
};

}  // namespace anydml
