// What a command list recorded: written between Reset and Close, immutable and
// shared with submissions afterwards, so that the list may be reset while it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "d3d12/command_allocator.h"
#include "d3d12/interop.h"

namespace anydml::d3d12 {

struct RecordedList {
  std::vector<std::shared_ptr<const Command>> commands;
  std::vector<uint32_t> resolvable;  // commands of other layers, which want to be asked at submission
  std::vector<std::shared_ptr<ResourceState>> resources;  // each once; complete after Finish
  std::shared_ptr<AllocatorState> allocator;
  uint64_t allocator_generation = 0;

  void Finish();
};

}  // namespace anydml::d3d12
