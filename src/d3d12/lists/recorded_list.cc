#include "d3d12/lists/recorded_list.h"

#include <algorithm>
#include <span>

#include "kernel/part_recorder.h"

namespace anydml::d3d12 {
namespace {

// The execution at which a list is recorded for replay: a list that is executed twice will be executed again.
// On an H200 even a list of one dispatch saves 2 of 13 us.
constexpr uint32_t kRecordedExecution = 2;
// For a list whose descriptors change: clients alternate between few temporary resources.
constexpr size_t kMostRepetitions = 4;
// The limit of all commands of a brief list: some tens of microseconds. Each command has an overhead, too.
constexpr uint64_t kBriefBytes = uint64_t{2} << 20, kCommandBytes = uint64_t{16} << 10;

bool AreBrief(std::span<const std::shared_ptr<const Command>> commands) {
  uint64_t left = kBriefBytes;
  for (const auto& command : commands) {
    const uint64_t bytes = command->work_bytes();
    if (bytes > left || left - bytes < kCommandBytes) return false;
    left -= bytes + kCommandBytes;
  }
  return true;
}

bool AreSame(const Replacements& a, const Replacements& b) {
  if (a == nullptr || b == nullptr) return a == b;
  return std::equal(a->begin(), a->end(), b->begin(), b->end(),
                    [](const Replacement& x, const Replacement& y) {
                      return x.index == y.index && x.command->IsSame(*y.command);
                    });
}

}  // namespace

void RecordedList::Finish() {
  for (const auto& command : commands) {
    const auto used = command->resources();
    resources.insert(resources.end(), used.begin(), used.end());
  }
  std::sort(resources.begin(), resources.end());
  resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
  if (!resources.empty() && resources.front() == nullptr) resources.erase(resources.begin());
  repeatable_ = std::all_of(commands.begin(), commands.end(),
                            [](const auto& command) { return command->repeatable(); });
  brief_ = AreBrief(commands);
  if (repeatable_) repetitions_.reserve(kMostRepetitions);
}

Status RecordedList::Execute(Stream& stream, const Replacements& replacements) const {
  // A replay cannot report how long its parts take.
  if (!repeatable_ || CurrentPartRecorder().record != nullptr) return ExecuteCommands(stream, replacements);
  // Two queues may execute one list at the same time; they must not wait for each other unless there is a
  // replay.
  std::unique_lock lock(mutex_);
  if (refused_) {
    lock.unlock();
    return ExecuteCommands(stream, replacements);
  }
  Repetition& repetition = RepetitionOf(replacements);
  if (!repetition.recording && ++repetition.executions == kRecordedExecution) {
    const auto body = [&](Stream& recorder) { return ExecuteCommands(recorder, replacements); };
    ANYDML_RETURN_IF_ERROR(stream.Record(body, &repetition.recording));
    if (!repetition.recording) {
      refused_ = true;
      repetitions_.clear();
      lock.unlock();
      return ExecuteCommands(stream, replacements);
    }
  }
  if (repetition.recording) return stream.Replay(*repetition.recording);
  lock.unlock();
  return ExecuteCommands(stream, replacements);
}

// Moves it to the front; the oldest one makes room for a new one.
RecordedList::Repetition& RecordedList::RepetitionOf(const Replacements& replacements) const {
  auto found = std::find_if(repetitions_.begin(), repetitions_.end(), [&](const Repetition& repetition) {
    return AreSame(repetition.replacements, replacements);
  });
  if (found == repetitions_.end()) {
    if (repetitions_.size() == kMostRepetitions) repetitions_.pop_back();
    repetitions_.push_back({replacements});
    found = repetitions_.end() - 1;
  }
  std::rotate(repetitions_.begin(), found, found + 1);
  return repetitions_.front();
}

Status RecordedList::ExecuteCommands(Stream& stream, const Replacements& replacements) const {
  size_t replaced = 0;
  for (uint32_t i = 0; i < commands.size(); ++i) {
    const Command* command = commands[i].get();
    if (replacements && replaced < replacements->size() && (*replacements)[replaced].index == i) {
      command = (*replacements)[replaced++].command.get();
    }
    ANYDML_RETURN_IF_ERROR(command->Execute(stream));
  }
  return {};
}

}  // namespace anydml::d3d12
