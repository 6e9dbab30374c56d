#include "d3d12/queue/submission.h"

#include "d3d12/implementation_of.h"
#include "d3d12/lists/command_list.h"
#include "d3d12/lists/state_tracking.h"
#include "d3d12/memory/resource_state.h"

namespace anydml::d3d12 {

Status Submission::Prepare(Device* device, D3D12_COMMAND_LIST_TYPE type,
                           std::span<ID3D12CommandList* const> lists,
                           std::unique_ptr<Submission>* submission) {
  std::unique_ptr<Submission> prepared(new Submission(device->debug()));
  prepared->executions_.reserve(lists.size());
  for (size_t i = 0; i < lists.size(); ++i) {
    const Status status = prepared->Add(device, type, lists[i]);
    if (!status.ok()) return Status(status.code(), StrCat("ppCommandLists[", i, "] ", status.message()));
  }
  *submission = std::move(prepared);
  return {};
}

Status Submission::Add(Device* device, D3D12_COMMAND_LIST_TYPE type, ID3D12CommandList* object) {
  if (object == nullptr) return Status(Code::kInvalidCall, "is null");
  const auto list = ImplementationOf<CommandList>(object);
  if (!list || list->device() != device)
    return Status(Code::kInvalidCall, "is not a command list of this device");
  if (list->GetType() != type) {
    return Status(Code::kInvalidCall,
                  StrCat("is of type ", list->GetType(), " but the queue is of type ", type));
  }
  if (list->open()) return Status(Code::kInvalidCall, "is still open; close it first");
  const std::shared_ptr<const RecordedList>& recorded = list->recorded();
  if (!recorded) return Status(Code::kInvalidCall, "was never recorded, or Close failed");
  if (recorded->allocator->generation.load() != recorded->allocator_generation) {
    return Status(Code::kInvalidCall, "was recorded with an allocator that has been reset since");
  }
  resources_.reserve(resources_.size() + recorded->resources.size());
  for (const auto& resource : recorded->resources) ANYDML_RETURN_IF_ERROR(Use(resource));
  Execution execution{recorded, {}};
  ANYDML_RETURN_IF_ERROR(ResolveCommands(&execution));
  executions_.push_back(std::move(execution));
  recorded->allocator->in_flight.fetch_add(1);
  return {};
}

Status Submission::Use(const std::shared_ptr<ResourceState>& resource) {
  resources_.push_back(resource);  // before the use begins, because the destructor ends it
  if (BeginUse(*resource)) return {};
  return Status(Code::kInvalidCall, "uses a resource that has been released");
}

Status Submission::ResolveCommands(Execution* execution) {
  std::vector<Replacement> replacements;
  for (const uint32_t index : execution->list->resolvable) {
    std::shared_ptr<const Command> instead;
    const Status status = execution->list->commands[index]->Resolve(&instead);
    if (!status.ok()) return Status(status.code(), StrCat("cannot be executed: ", status.message()));
    if (!instead) continue;
    for (const auto& resource : instead->resources()) {
      if (resource) ANYDML_RETURN_IF_ERROR(Use(resource));
    }
    replacements.push_back({index, std::move(instead)});
  }
  if (!replacements.empty()) {
    execution->replacements = std::make_shared<const std::vector<Replacement>>(std::move(replacements));
  }
  return {};
}

Submission::~Submission() {
  for (const Execution& execution : executions_) execution.list->allocator->in_flight.fetch_sub(1);
  for (const auto& resource : resources_) {
    if (debug_) DecayState(*resource);
    EndUse(*resource);
  }
}

bool Submission::brief() const { return executions_.size() == 1 && executions_[0].list->brief(); }

Status Submission::Execute(Stream& stream) const {
  for (const Execution& execution : executions_) {
    ANYDML_RETURN_IF_ERROR(execution.list->Execute(stream, execution.replacements));
  }
  return {};
}

}  // namespace anydml::d3d12
