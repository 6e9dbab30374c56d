#include "d3d12/lists/command_allocator.h"

#include "com/guard.h"

namespace anydml::d3d12 {

HRESULT CheckListType(Device* device, const char* method, D3D12_COMMAND_LIST_TYPE type) {
  switch (type) {
    case D3D12_COMMAND_LIST_TYPE_DIRECT:
    case D3D12_COMMAND_LIST_TYPE_COMPUTE:
    case D3D12_COMMAND_LIST_TYPE_COPY:
      return S_OK;
    case D3D12_COMMAND_LIST_TYPE_BUNDLE:
    case D3D12_COMMAND_LIST_TYPE_VIDEO_DECODE:
    case D3D12_COMMAND_LIST_TYPE_VIDEO_PROCESS:
    case D3D12_COMMAND_LIST_TYPE_VIDEO_ENCODE:
      return device->Fail(
          E_NOTIMPL, method, ": type is ", type,
          " (bundle or video) but this compute-only device has DIRECT, COMPUTE and COPY only");
    default:
      return device->Fail(E_INVALIDARG, method, ": type is ", type,
                          "; it must be DIRECT (0), COMPUTE (2) or COPY (3)");
  }
}

HRESULT CommandAllocator::Create(Device* device, D3D12_COMMAND_LIST_TYPE type, REFIID iid, void** out) {
  if (const HRESULT hr = CheckListType(device, "CreateCommandAllocator", type); FAILED(hr)) return hr;
  return CreateComObject<CommandAllocator>(iid, out, device, type);
}

CommandAllocator::~CommandAllocator() {
  if (state_->in_flight.load() == 0) return;
  device()->Post(D3D12_MESSAGE_SEVERITY_ERROR, D3D12_MESSAGE_ID_OBJECT_DELETED_WHILE_STILL_IN_USE,
                 "ID3D12CommandAllocator", QuotedName(),
                 " was released while command lists recorded with it are in flight");
}

HRESULT CommandAllocator::Reset() {
  return Guard([&] {
    if (device()->removed()) return device()->FailRemoved("ID3D12CommandAllocator::Reset");
    if (state_->recording.load() != nullptr) {
      return device()->FailWith(
          E_FAIL, D3D12_MESSAGE_ID_COMMAND_ALLOCATOR_CANNOT_RESET,
          StrCat("ID3D12CommandAllocator::Reset: a command list is recording with the allocator",
                 QuotedName(), "; it must be closed first"));
    }
    if (state_->in_flight.load() != 0) {
      return device()->FailWith(
          E_FAIL, D3D12_MESSAGE_ID_COMMAND_ALLOCATOR_SYNC,
          StrCat("ID3D12CommandAllocator::Reset: command lists recorded with the allocator", QuotedName(),
                 " are in flight; wait for a fence first"));
    }
    state_->generation.fetch_add(1);
    return S_OK;
  });
}

}  // namespace anydml::d3d12
