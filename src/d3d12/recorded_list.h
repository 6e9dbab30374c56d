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

// What one of a list's commands has resolved to at a submission.
struct Replacement {
  uint32_t index;
  std::shared_ptr<const Command> command;
};
// Ordered by index; null: none. Made on the application's thread, so that executing allocates nothing.
using Replacements = std::shared_ptr<const std::vector<Replacement>>;

struct RecordedList {
  std::vector<std::shared_ptr<const Command>> commands;
  std::vector<uint32_t> resolvable;  // commands of other layers, which want to be asked at submission
  std::vector<std::shared_ptr<ResourceState>> resources;  // each once; complete after Finish
  std::shared_ptr<AllocatorState> allocator;
  uint64_t allocator_generation = 0;

  void Finish();

  // Done in so short a time that an application's thread can do it as well as wait for it; after Finish.
  bool brief() const { return brief_; }

  // All commands, or what replaces them. A list that comes again and again with the same replacements is
  // replayed where the backend can.
  Status Execute(Stream& stream, const Replacements& replacements) const;

 private:
  // An execution that has come, and may come again.
  struct Repetition {
    Replacements replacements = nullptr;
    uint32_t executions = 0;  // before there was a recording
    std::unique_ptr<Recording> recording = nullptr;
  };

  Status ExecuteCommands(Stream& stream, const Replacements& replacements) const;
  Repetition& RepetitionOf(const Replacements& replacements) const;

  bool repeatable_ = false;  // after Finish
  bool brief_ = false;
  mutable std::mutex mutex_;
  mutable bool refused_ = false;                 // the backend records nothing
  mutable std::vector<Repetition> repetitions_;  // the latest first
};

}  // namespace anydml::d3d12
