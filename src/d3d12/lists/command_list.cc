#include "d3d12/lists/command_list.h"

#include "com/guard.h"
#include "d3d12/descriptors/descriptor_heap.h"
#include "d3d12/implementation_of.h"
#include "d3d12/lists/command_list_record.h"
#include "d3d12/lists/state_tracking.h"

namespace anydml::d3d12 {

HRESULT CommandList::Create(Device* device, UINT node_mask, D3D12_COMMAND_LIST_TYPE type,
                            ID3D12CommandAllocator* allocator, ID3D12PipelineState* pipeline, REFIID iid,
                            void** out) {
  if (const HRESULT hr = CheckListType(device, "CreateCommandList", type); FAILED(hr)) return hr;
  if (node_mask > 1) {
    return device->Fail(E_INVALIDARG, "CreateCommandList: nodeMask is ", node_mask, "; it must be 0 or 1");
  }
  const auto list = ComPtr<CommandList>::Adopt(new CommandList(device, type));
  if (const HRESULT hr = list->Open("CreateCommandList", allocator, pipeline); FAILED(hr)) return hr;
  return out == nullptr ? S_FALSE : list->QueryInterface(iid, out);
}

HRESULT CommandList::CreateClosed(Device* device, UINT node_mask, D3D12_COMMAND_LIST_TYPE type,
                                  D3D12_COMMAND_LIST_FLAGS flags, REFIID iid, void** out) {
  if (const HRESULT hr = CheckListType(device, "CreateCommandList1", type); FAILED(hr)) return hr;
  if (node_mask > 1 || flags != D3D12_COMMAND_LIST_FLAG_NONE) {
    return device->Fail(E_INVALIDARG, "CreateCommandList1: nodeMask is ", node_mask, " and flags ", flags,
                        "; they must be 0 or 1, and 0");
  }
  return CreateComObject<CommandList>(iid, out, device, type);
}

CommandList::~CommandList() {
  if (recording_) recording_->allocator->recording.store(nullptr);
}

HRESULT CommandList::Open(const char* method, ID3D12CommandAllocator* allocator,
                          ID3D12PipelineState* pipeline) {
  const auto implementation = ImplementationOf<CommandAllocator>(allocator);
  if (!implementation || implementation->device() != device()) {
    return device()->Fail(E_INVALIDARG, method, ": pAllocator is ",
                          allocator == nullptr ? "null" : "not an allocator of this device");
  }
  if (implementation->type() != type_) {
    return device()->FailWith(
        E_INVALIDARG, D3D12_MESSAGE_ID_WRONG_COMMAND_ALLOCATOR_TYPE,
        StrCat(method, ": the allocator's type is ", implementation->type(), " but the list's is ", type_));
  }
  if (pipeline != nullptr) {
    return device()->Fail(E_INVALIDARG, method, ": the initial pipeline state must be null on this device");
  }
  auto recording = std::make_shared<RecordedList>();
  recording->commands.reserve(expected_commands_);
  recording->allocator = implementation->state();
  recording->allocator_generation = implementation->state()->generation.load();
  const void* nobody = nullptr;
  if (!implementation->state()->recording.compare_exchange_strong(nobody, this)) {
    return device()->FailWith(E_FAIL, D3D12_MESSAGE_ID_COMMAND_ALLOCATOR_CONTENTION,
                              StrCat(method, ": another command list is recording with this allocator"));
  }
  recording_ = std::move(recording);
  recorded_.reset();
  error_.clear();
  error_code_ = S_OK;
  view_heap_ = 0;
  open_ = true;
  return S_OK;
}

HRESULT CommandList::Close() {
  return Guard([&] {
    if (!open_) {
      return device()->FailWith(
          E_FAIL, D3D12_MESSAGE_ID_COMMAND_LIST_CLOSED,
          StrCat("ID3D12GraphicsCommandList::Close: the list", QuotedName(), " is closed"));
    }
    // Closed in any case: a list with an error can only be reset.
    open_ = false;
    const std::shared_ptr<RecordedList> recording = std::move(recording_);
    recording->allocator->recording.store(nullptr);
    if (device()->removed()) return device()->FailRemoved("ID3D12GraphicsCommandList::Close");
    if (FAILED(error_code_)) {
      return device()->Fail(error_code_, "ID3D12GraphicsCommandList::Close: the list", QuotedName(),
                            " is in error: ", error_);
    }
    expected_commands_ = recording->commands.size();
    recording->Finish();
    recorded_ = recording;
    return S_OK;
  });
}

HRESULT CommandList::Reset(ID3D12CommandAllocator* allocator, ID3D12PipelineState* pipeline) {
  return Guard([&] {
    if (device()->removed()) return device()->FailRemoved("ID3D12GraphicsCommandList::Reset");
    if (open_) {
      return device()->FailWith(E_FAIL, D3D12_MESSAGE_ID_COMMAND_LIST_OPEN,
                                StrCat("ID3D12GraphicsCommandList::Reset: the list", QuotedName(),
                                       " is still open; close it first"));
    }
    return Open("ID3D12GraphicsCommandList::Reset", allocator, pipeline);
  });
}

void CommandList::SetError(HRESULT code, const char* method, const char* message) {
  const bool first = SUCCEEDED(error_code_);
  if (first) error_code_ = code;
  try {
    const std::string sentence = StrCat("ID3D12GraphicsCommandList::", method, ": ", message);
    if (first) error_ = sentence;
    device()->Fail(code, sentence);
  } catch (...) {
    if (first) error_ = "out of memory";  // short enough not to allocate
  }
}

void CommandList::Unsupported(const char* method) {
  RecordIn(method, [] {
    return Status(Code::kNotImplemented, "this compute-only device has no graphics and no shaders");
  });
}

void CommandList::ClearState(ID3D12PipelineState* pipeline) {
  RecordIn("ClearState", [&]() -> Status {
    view_heap_ = 0;
    if (pipeline != nullptr) return InvalidArgument("pPipelineState must be null on this device");
    return {};
  });
}

void CommandList::SetPipelineState(ID3D12PipelineState* pipeline) {
  RecordIn("SetPipelineState", [&]() -> Status {
    if (pipeline != nullptr) return InvalidArgument("pPipelineState must be null on this device");
    return {};
  });
}

void CommandList::SetComputeRootSignature(ID3D12RootSignature* signature) {
  RecordIn("SetComputeRootSignature", [&]() -> Status {
    if (signature != nullptr) return InvalidArgument("pRootSignature must be null on this device");
    return {};
  });
}

void CommandList::SetPredication(ID3D12Resource* buffer, UINT64, D3D12_PREDICATION_OP) {
  RecordIn("SetPredication", [&]() -> Status {
    if (buffer != nullptr) return InvalidArgument("pBuffer must be null: predication is not implemented");
    return {};
  });
}

void CommandList::SetProtectedResourceSession(ID3D12ProtectedResourceSession* session) {
  RecordIn("SetProtectedResourceSession", [&]() -> Status {
    if (session != nullptr) return InvalidArgument("pProtectedResourceSession must be null on this device");
    return {};
  });
}

void CommandList::SetDescriptorHeaps(UINT count, ID3D12DescriptorHeap* const* heaps) {
  RecordIn("SetDescriptorHeaps", [&]() -> Status {
    if (type_ == D3D12_COMMAND_LIST_TYPE_COPY) return InvalidArgument("a COPY list has no descriptor heaps");
    if (count != 0 && heaps == nullptr) return InvalidArgument("ppDescriptorHeaps is null");
    DescriptorTable::HeapId ids[D3D12_DESCRIPTOR_HEAP_TYPE_NUM_TYPES] = {};
    for (UINT i = 0; i < count; ++i) {
      const auto heap = ImplementationOf<DescriptorHeap>(heaps[i]);
      if (!heap || heap->device() != device()) {
        return InvalidArgument("ppDescriptorHeaps[", i, "] is not a descriptor heap of this device");
      }
      if (!heap->shader_visible()) return InvalidArgument("ppDescriptorHeaps[", i, "] is not shader visible");
      auto& id = ids[heap->desc().Type];
      if (id != 0) return InvalidArgument("ppDescriptorHeaps has two heaps of type ", heap->desc().Type);
      id = heap->id();
    }
    view_heap_ = ids[D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV];
    return {};
  });
}

Status CommandList::Record(std::shared_ptr<const Command> command,
                           D3D12_GPU_DESCRIPTOR_HANDLE gpu_descriptors) {
  if (!open_) return Status(Code::kInvalidCall, "the command list is closed");
  if (type_ == D3D12_COMMAND_LIST_TYPE_COPY) {
    return InvalidArgument("the command list is of type COPY; it must be DIRECT or COMPUTE");
  }
  if (gpu_descriptors.ptr != 0 && DescriptorTable::HeapOf(gpu_descriptors) != view_heap_) {
    return InvalidArgument("the descriptors are not in the heap that SetDescriptorHeaps has set");
  }
  for (const auto& resource : command->resources()) {
    if (resource) AppendUse(resource, D3D12_RESOURCE_STATE_UNORDERED_ACCESS, "RecordDispatch");
  }
  // Both or none: without memory for this, the list must still be executable.
  const auto index = static_cast<uint32_t>(recording_->commands.size());
  recording_->commands.push_back(std::move(command));
  try {
    recording_->resolvable.push_back(index);
  } catch (...) {
    recording_->commands.pop_back();
    throw;
  }
  return {};
}

void CommandList::AppendUse(const std::shared_ptr<ResourceState>& resource, D3D12_RESOURCE_STATES needed,
                            const char* method) {
  if (!device()->debug()) return;
  // An initializer may read upload buffers although they stay GENERIC_READ.
  if (needed == D3D12_RESOURCE_STATE_UNORDERED_ACCESS && resource->heap.Type == D3D12_HEAP_TYPE_UPLOAD)
    return;
  Append<UseCommand>(device(), resource, needed, method);
}

}  // namespace anydml::d3d12
