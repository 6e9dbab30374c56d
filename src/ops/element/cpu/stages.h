// Stages: functions that each apply one instruction to a block of vectors, which stays in registers from
// stage to stage. A stage ends with a call of the next one, which compilers turn into a jump. Included by a
// file that is compiled for a newer processor than the others: nothing of the standard library but types.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/element/function.h"
#include "ops/numbers/half_loops.h"
#include "ops/numbers/loop_piece.h"

namespace anydml {

// The memory operands of stages.
struct StageOperand {
  std::byte* data;
  uint64_t mask;  // applied to the offset: all ones, or 0 if every block is the first one
  Storage storage;
  bool streams;  // with non-temporal stores; aligned to 64 bytes
};

using StageCode = void (*)();  // a function with its set's signature; null: there is no such stage

struct Stage {
  StageCode code = nullptr;
  uint8_t operands[2] = {0, 0};  // the second and third source, or the operand of a load or store
  const Instruction* instruction = nullptr;
  float low = 0, high = 0;  // for `limit` and FLOAT16
};

// Stages that work together. Stages of functions do not canonicalise NaNs; `canonical` does, before NaNs
// become visible.
struct StageSet {
  uint32_t block = 0;  // elements per block
  // Runs the stages over consecutive blocks. Operands with a bit in `ahead` are prefetched.
  void (*run)(const Stage* first, const StageOperand* operands, uint32_t ahead, uint64_t blocks) = nullptr;
  StageCode load = nullptr;
  StageCode store = nullptr;
  StageCode canonical = nullptr;
  StageCode round = nullptr;  // to FLOAT16
  StageCode limit = nullptr;  // to [low, high], which satisfy CompareAsLimits
  StageCode end = nullptr;
};

// Prefetches for a set: hardware prefetchers stop at the end of a page.
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

// For 32-bit registers. Long functions have no stage, because they would gain nothing.
const StageSet* FindStages();  // null: not available
StageCode FindStage(ElementFunction function, Class type);

// For FLOAT16, rounded by each function, if the processor computes in FLOAT16.
inline constexpr uint32_t kMaxStageBlock = 256;
const StageSet* FindHalfStages();
StageCode FindHalfStage(HalfFunction function);

}  // namespace anydml
