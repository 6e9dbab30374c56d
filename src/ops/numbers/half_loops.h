// Functions of FLOAT16 with instructions that compute in FLOAT16, if the processor has them. A sum or product
// that is rounded to FLOAT32 and then to FLOAT16 equals the one that is rounded once (24 >= 2 * 11 + 2 bits).
// Included by a file that is compiled for a newer processor than the others: nothing of the standard library
// but types.
#pragma once

#include <cstdint>

#include "ops/numbers/loop_piece.h"

namespace anydml {

enum class HalfFunction : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kMaximum,
  kMinimum,
  kClip,
  kRelu,
  // These return bytes.
  kEqual,
  kGreater,
  kLess,
  kGreaterOrEqual,
  kLessOrEqual,
};

using HalfLoop = void (*)(const LoopPiece& piece);

// Null if the processor lacks such instructions or uses a larger granule.
HalfLoop FindHalfLoop(HalfFunction function, uint32_t granule);

}  // namespace anydml
