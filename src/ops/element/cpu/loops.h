// Running one instruction over many elements.
#pragma once

#include <cstdint>

#include "ops/element/program.h"

namespace anydml {

struct LoopArguments {
  const void* sources[3];
  void* target;  // may be a source
  uint64_t count;
  const Instruction* instruction;
};

using ElementLoop = void (*)(const LoopArguments& arguments);

// Of a function that has a body for the class.
ElementLoop FindElementLoop(ElementFunction function, Class type);

// The groups of FindElementLoop, each in a file of its own; `row` counts within the group.
ElementLoop FindArithmeticLoop(uint32_t row, Class type);
ElementLoop FindLogicalLoop(uint32_t row, Class type);
ElementLoop FindTranscendentalLoop(uint32_t row, Class type);

}  // namespace anydml
