// The instructions of a program as cpu.tiles runs them, with what is found out about each of them when the
// kernel is made.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ops/element/cpu/blocks.h"
#include "ops/element/cpu/loops.h"
#include "ops/element/problem.h"

namespace anydml {

struct ElementStep {
  Instruction instruction;
  ElementLoop loop = {};
  LoadBlock load = nullptr;
  StoreBlock store = nullptr;
  uint32_t operand = 0;            // of a load or store, among all operands
  uint32_t bytes = 0;              // of its elements, where they have whole ones
  bool same_bytes = false;         // of a load or store: no conversion
  bool to_halves = false;          // of a store: FLOAT32 to FLOAT16
  std::optional<Storage> storage;  // as which loops can read what is loaded, or write what is stored
  bool whole = false;              // the result is not only read by loops that convert: a register of numbers
  bool once = false;               // the same for all tiles: done for the first one
  bool uniform = false;            // the same for all elements
  bool rounds = false;             // the result is kept as FLOAT16
  bool last = false;               // the program's only store follows: may write into the tensor
};

std::vector<ElementStep> ElementSteps(const ElementProblem& problem);

}  // namespace anydml
