#include "d3d12/recorded_list.h"

#include <algorithm>

namespace anydml::d3d12 {
namespace {

// A list is recorded at this execution: one that was executed before will be again.
constexpr uint32_t kRecordedExecution = 2;
// Fewer commands are enqueued as fast as they are replayed.
constexpr size_t kLeastCommands = 2;

}  // namespace

void RecordedList::Finish() {
  for (const auto& command : commands) {
    const auto used = command->resources();
    resources.insert(resources.end(), used.begin(), used.end());
  }
  std::sort(resources.begin(), resources.end());
  resources.erase(std::unique(resources.begin(), resources.end()), resources.end());
  if (!resources.empty() && resources.front() == nullptr) resources.erase(resources.begin());
  repeatable_ = commands.size() >= kLeastCommands &&
                std::all_of(commands.begin(), commands.end(),
                            [](const auto& command) { return command->repeatable(); });
}

Status RecordedList::Execute(Stream& stream) const {
  if (!repeatable_) return ExecuteCommands(stream);
  // Two queues may execute one list at the same time.
  std::lock_guard lock(mutex_);
  if (!recording_ && ++executions_ == kRecordedExecution) {
    ANYDML_RETURN_IF_ERROR(
        stream.Record([this](Stream& recorder) { return ExecuteCommands(recorder); }, &recording_));
  }
  return recording_ ? stream.Replay(*recording_) : ExecuteCommands(stream);
}

Status RecordedList::ExecuteCommands(Stream& stream) const {
  for (const auto& command : commands) ANYDML_RETURN_IF_ERROR(command->Execute(stream));
  return {};
}

}  // namespace anydml::d3d12
