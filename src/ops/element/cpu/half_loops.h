// Functions of FLOAT16 by instructions that compute with it, where the processor has them: a sum or product
// that is rounded to FLOAT32 and then to FLOAT16 is the one that is rounded at once (24 >= 2 * 11 + 2 bits).
// Included by a file that is compiled for more than the others: nothing of the standard library's but types.
#pragma once

#include <cstdint>

#include "ops/element/cpu/loop_piece.h"

namespace anydml {

enum class HalfFunction : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kMaximum,
  kMinimum,
  kClip,
  kRelu,
  // Their results are bytes.
  kEqual,
  kGreater,
  kLess,
  kGreaterOrEqual,
  kLessOrEqual,
};

using HalfLoop = void (*)(const LoopPiece& piece);

// Null where the processor has no such instructions, or takes more elements at a time.
HalfLoop FindHalfLoop(HalfFunction function, uint32_t granule);

}  // namespace anydml
