// One call of ExecuteCommandLists on its way through a queue. Holds no COM object, so that the last reference
// to an application's object is never released on the queue's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "d3d12/lists/recorded_list.h"

namespace anydml::d3d12 {

class Submission {
 public:
  // Checks the lists and resolves their commands. After a failure nothing is in flight.
  static Status Prepare(Device* device, D3D12_COMMAND_LIST_TYPE type,
                        std::span<ID3D12CommandList* const> lists, std::unique_ptr<Submission>* submission);

  ~Submission();  // ends the use of all buffers

  Status Execute(Stream& stream) const;
  bool brief() const;  // see RecordedList

 private:
  struct Execution {
    std::shared_ptr<const RecordedList> list;
    Replacements replacements;
  };

  explicit Submission(bool debug) : debug_(debug) {}

  Status Add(Device* device, D3D12_COMMAND_LIST_TYPE type, ID3D12CommandList* object);
  Status Use(const std::shared_ptr<ResourceState>& resource);
  Status ResolveCommands(Execution* execution);

  const bool debug_;
  std::vector<Execution> executions_;
  std::vector<std::shared_ptr<ResourceState>> resources_;  // in use, possibly several times
};

}  // namespace anydml::d3d12
