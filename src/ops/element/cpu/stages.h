// Stages: functions that each do one instruction for a block of some vectors, which stay in the processor's
// registers from stage to stage. A stage ends with a call of the next one, which compilers make a jump.
// Included by a file that is compiled for more than the others: nothing of the standard library's but types.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/element/cpu/half_loops.h"
#include "ops/element/cpu/loop_piece.h"
#include "ops/element/function.h"

namespace anydml {

// What stages read and write besides the block.
struct StageOperand {
  std::byte* data;
  uint64_t mask;  // of the offset: all ones, or 0 where every block is the first one
  Storage storage;
  bool streams;  // past the caches; aligned to 64 bytes
};

using StageCode = void (*)();  // a function with arguments of its set's; none: there is no such stage

struct Stage {
  StageCode code = nullptr;
  uint8_t operands[2] = {0, 0};  // the second and third source, or what is loaded or stored
  const Instruction* instruction = nullptr;
  float low = 0, high = 0;  // of `limit`, and of FLOAT16
};

// Stages that go together. Stages of functions leave NaNs what they are: `canonical` makes them the usual one
// where somebody sees them.
struct StageSet {
  uint32_t block = 0;  // elements of a block
  // Blocks one after the other, from the first stage to one that ends. Of operands with a bit in `ahead`,
  // later blocks are asked for.
  void (*run)(const Stage* first, const StageOperand* operands, uint32_t ahead, uint64_t blocks) = nullptr;
  StageCode load = nullptr;
  StageCode store = nullptr;
  StageCode canonical = nullptr;
  StageCode round = nullptr;  // to FLOAT16
  StageCode limit = nullptr;  // to `low` and `high`, which CompareAsLimits
  StageCode end = nullptr;
};

// For sets: machines look no further ahead than a page.
static inline void AskAhead(const StageOperand* operands, uint32_t which, uint64_t offset, uint64_t bytes) {
#if defined(__x86_64__)
  constexpr uint64_t kAhead = 4096;
  for (; which != 0; which >>= 1, ++operands) {
    if ((which & 1) == 0) continue;
    const std::byte* const from = operands->data + offset + kAhead;
    for (uint64_t at = 0; at < bytes; at += 64) __builtin_prefetch(from + at);
  }
#else
  (void)operands, (void)which, (void)offset, (void)bytes;
#endif
}

// Of registers of 32 bits. Functions that are long have no stage: they gain nothing.
const StageSet* FindStages();  // null: there are none
StageCode FindStage(ElementFunction function, Class type);

// Of FLOAT16, rounded by each function, where the processor computes with it.
inline constexpr uint32_t kMaxStageBlock = 256;
const StageSet* FindHalfStages();
StageCode FindHalfStage(HalfFunction function);

}  // namespace anydml
