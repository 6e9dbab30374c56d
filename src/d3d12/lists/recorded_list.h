// The contents of a command list: written between Reset and Close, then immutable and shared with
// submissions, so that the list may be reset while it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "d3d12/interop.h"
#include "d3d12/lists/command_allocator.h"

namespace anydml::d3d12 {

// The result of Resolve for one of a list's commands at a submission.
struct Replacement {
  uint32_t index;
  std::shared_ptr<const Command> command;
};
// Ordered by index; null: none. Made on the application's thread, so that execution allocates nothing.
using Replacements = std::shared_ptr<const std::vector<Replacement>>;

struct RecordedList {
  std::vector<std::shared_ptr<const Command>> commands;
  std::vector<uint32_t> resolvable;  // commands of other layers, on which submissions call Resolve
  std::vector<std::shared_ptr<ResourceState>> resources;  // each once; complete after Finish
  std::shared_ptr<AllocatorState> allocator;
  uint64_t allocator_generation = 0;

  void Finish();

  // So short that an application's thread can execute it in the time that waiting for it would take; valid
  // after Finish.
  bool brief() const { return brief_; }

  // Executes all commands or their replacements. A list that recurs with the same replacements is replayed if
  // the backend can.
  Status Execute(Stream& stream, const Replacements& replacements) const;

 private:
  // An execution that may recur.
  struct Repetition {
    Replacements replacements = nullptr;
    uint32_t executions = 0;  // before it was recorded
    std::unique_ptr<Recording> recording = nullptr;
  };

  Status ExecuteCommands(Stream& stream, const Replacements& replacements) const;
  Repetition& RepetitionOf(const Replacements& replacements) const;

  bool repeatable_ = false;  // after Finish
  bool brief_ = false;
  mutable std::mutex mutex_;
  mutable bool refused_ = false;                 // the backend did not record it
  mutable std::vector<Repetition> repetitions_;  // most recent first
};

}  // namespace anydml::d3d12
