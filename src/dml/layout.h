// The bindings of a dispatchable as one flat list of descriptor slots. The binding table, the recorder and
// volatile commands all use it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <DirectML.h>

#include "dml/program.h"

namespace anydml::dml {

enum class SlotRole { kInput, kOutput, kTemporary, kPersistent };

enum class SlotNeed {
  kRequired,
  kAbsent,    // an optional tensor that the description omits: nothing may be bound
  kOwned,     // OWNED_BY_DML, at execution: nothing may be bound
  kNotOwned,  // not OWNED_BY_DML, at initialisation: nothing may be bound
  kIgnored,   // a graph's input or output without an edge: a binding has no effect
  kUnneeded,  // an initializer's output for an operator without a persistent resource
};

struct Slot {
  SlotRole role;
  SlotNeed need;
  std::string name;  // "IndicesTensor of SCATTER_ND"
  uint64_t bytes;
  uint32_t alignment;
  bool upload_heap;            // may be in an upload heap
  uint32_t element_bytes = 1;  // alignment of the address, in the application's memory, too
};

// Immutable. Slots: inputs, outputs, temporary (if any), persistent (if any). An initializer's inputs are
// those of all its operators one after the other, its outputs their persistent resources; the operators share
// its temporary resource.
struct Layout {
  bool initializer = false;
  std::string name;                                // "TOP_K1", "the initializer of TOP_K1"
  std::vector<std::shared_ptr<Program>> programs;  // exactly one for a compiled operator
  std::vector<Slot> slots;
  uint32_t input_slots = 0;
  uint32_t output_slots = 0;
  int temporary_slot = -1;
  int persistent_slot = -1;

  DML_BINDING_PROPERTIES properties() const;
};

std::shared_ptr<const Layout> MakeExecuteLayout(std::shared_ptr<Program> program);
std::shared_ptr<const Layout> MakeInitializeLayout(std::vector<std::shared_ptr<Program>> programs);

}  // namespace anydml::dml
