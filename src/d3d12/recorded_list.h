// What a command list recorded: written between Reset and Close, immutable and
// shared with submissions afterwards, so that the list may be reset while it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
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

  // All commands. A list that comes again and again is replayed where the backend can.
  Status Execute(Stream& stream) const;

 private:
  Status ExecuteCommands(Stream& stream) const;

  bool repeatable_ = false;  // after Finish
  mutable std::mutex mutex_;
  mutable uint32_t executions_ = 0;               // before there was a recording, or it was refused
  mutable std::unique_ptr<Recording> recording_;  // never changed once it is there
};

}  // namespace anydml::d3d12
