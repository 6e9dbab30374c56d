// The instructions of a program as cpu.tiles runs them, with the properties that are determined when the
// kernel is made.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ops/element/problem.h"
#include "ops/numbers/element_loops.h"
#include "ops/numbers/load_store.h"

namespace anydml {

struct ElementStep {
  Instruction instruction;
  ElementLoop loop = {};
  LoadBlock load = nullptr;
  StoreBlock store = nullptr;
  uint32_t operand = 0;            // index among all operands, for loads and stores
  uint32_t bytes = 0;              // per element, if elements are whole bytes
  bool same_bytes = false;         // for loads and stores: no conversion
  bool to_halves = false;          // for stores: FLOAT32 to FLOAT16
  std::optional<Storage> storage;  // how loops can read the loaded elements, or write the stored ones
  bool whole = false;              // some reader cannot convert: the result must be a register of numbers
  bool once = false;               // the same for all tiles: done for the first one
  bool uniform = false;            // the same for all elements
  bool rounds = false;             // the result is kept as FLOAT16
  bool last = false;               // the program's only store follows, so the result may be written to the
                                   // tensor
};

std::vector<ElementStep> ElementSteps(const ElementProblem& problem);

}  // namespace anydml
