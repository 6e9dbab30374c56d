// Lists that are recorded once and executed many times.
#include "client/session.h"

namespace anydml::client {

void Session::RecordBarrier() {
  D3D12_RESOURCE_BARRIER barrier{};
  barrier.Type = D3D12_RESOURCE_BARRIER_TYPE_UAV;
  list_->ResourceBarrier(1, &barrier);
}

void Session::RecordCopy(ID3D12Resource* target, ID3D12Resource* source, uint64_t bytes) {
  constexpr D3D12_RESOURCE_STATES kAccess = D3D12_RESOURCE_STATE_UNORDERED_ACCESS;
  Transition(target, kAccess, D3D12_RESOURCE_STATE_COPY_DEST);
  Transition(source, kAccess, D3D12_RESOURCE_STATE_COPY_SOURCE);
  list_->CopyBufferRegion(target, 0, source, 0, bytes);
  Transition(target, D3D12_RESOURCE_STATE_COPY_DEST, kAccess);
  Transition(source, D3D12_RESOURCE_STATE_COPY_SOURCE, kAccess);
}

Status Session::AllocateStaging(bool upload, uint64_t bytes, ComPtr<ID3D12Resource>* out,
                                std::byte** memory) {
  ANYDML_RETURN_IF_ERROR(
      upload ? CreateBuffer(D3D12_HEAP_TYPE_UPLOAD, D3D12_RESOURCE_STATE_GENERIC_READ, bytes, out)
             : CreateBuffer(D3D12_HEAP_TYPE_READBACK, D3D12_RESOURCE_STATE_COPY_DEST, bytes, out));
  void* mapped = nullptr;
  ANYDML_RETURN_IF_ERROR(Check((*out)->Map(0, nullptr, &mapped), "mapping a staging buffer"));
  *memory = static_cast<std::byte*>(mapped);
  return {};
}

void Session::RecordUpload(ID3D12Resource* target, ID3D12Resource* staging) {
  constexpr D3D12_RESOURCE_STATES kAccess = D3D12_RESOURCE_STATE_UNORDERED_ACCESS;
  Transition(target, kAccess, D3D12_RESOURCE_STATE_COPY_DEST);
  list_->CopyBufferRegion(target, 0, staging, 0, staging->GetDesc().Width);
  Transition(target, D3D12_RESOURCE_STATE_COPY_DEST, kAccess);
}

void Session::RecordReadBack(ID3D12Resource* staging, ID3D12Resource* source) {
  constexpr D3D12_RESOURCE_STATES kAccess = D3D12_RESOURCE_STATE_UNORDERED_ACCESS;
  Transition(source, kAccess, D3D12_RESOURCE_STATE_COPY_SOURCE);
  list_->CopyBufferRegion(staging, 0, source, 0, staging->GetDesc().Width);
  Transition(source, D3D12_RESOURCE_STATE_COPY_SOURCE, kAccess);
}

Status Session::BeginList(bool timestamps) {
  ANYDML_RETURN_IF_ERROR(SubmitAndWait());
  return timestamps ? StartClock() : Status();
}

Status Session::StartClock() {
  const D3D12_QUERY_HEAP_DESC desc{D3D12_QUERY_HEAP_TYPE_TIMESTAMP, 2, 0};
  ANYDML_RETURN_IF_ERROR(Check(
      device_->CreateQueryHeap(&desc, IID_PPV_ARGS(queries_.ReleaseAndGetAddressOf())), "creating queries"));
  list_->EndQuery(queries_.Get(), D3D12_QUERY_TYPE_TIMESTAMP, 0);
  clock_runs_ = true;
  return {};
}

void Session::StopClock() {
  list_->EndQuery(queries_.Get(), D3D12_QUERY_TYPE_TIMESTAMP, 1);
  clock_runs_ = false;
}

Status Session::EndList(RecordedList* out) {
  out->timestamps.Reset();
  if (clock_runs_) StopClock();
  if (queries_) {
    ANYDML_RETURN_IF_ERROR(CreateBuffer(D3D12_HEAP_TYPE_READBACK, D3D12_RESOURCE_STATE_COPY_DEST,
                                        2 * sizeof(uint64_t), &out->timestamps));
    list_->ResolveQueryData(queries_.Get(), D3D12_QUERY_TYPE_TIMESTAMP, 0, 2, out->timestamps.Get(), 0);
    keep_alive_.emplace_back(std::move(queries_));
  }
  ANYDML_RETURN_IF_ERROR(Check(list_->Close(), "closing the command list"));
  keep_alive_.emplace_back(std::move(heap_));  // its descriptors must not change
  // Without memory for new ones the session keeps those it has, for Discard.
  ComPtr<ID3D12CommandAllocator> allocator = allocator_;
  ComPtr<ID3D12GraphicsCommandList> list = list_;
  if (Status status = CreateList(); !status.ok()) {
    allocator_ = std::move(allocator);
    list_ = std::move(list);
    return status;
  }
  out->allocator = std::move(allocator);
  out->list = std::move(list);
  out->keep_alive = std::move(keep_alive_);
  ForgetRecorded();
  return {};
}

Status Session::Execute(const RecordedList& list) { return ExecuteAndWait(list.list.Get()); }

Status Session::ExecuteAndWait(ID3D12CommandList* list) {
  queue_->ExecuteCommandLists(1, &list);
  ANYDML_RETURN_IF_ERROR(Check(queue_->Signal(fence_.Get(), ++fence_value_), "signalling the fence"));
  // Without an event, the call itself waits.
  return Check(fence_->SetEventOnCompletion(fence_value_, nullptr), "waiting for the fence");
}

Status Session::CheckDevices() {
  ANYDML_RETURN_IF_ERROR(Check(dml_->GetDeviceRemovedReason(), "executing the operator"));
  return Check(device_->GetDeviceRemovedReason(), "executing the operator");
}

Status Session::DeviceSeconds(const RecordedList& list, double* seconds) {
  UINT64 frequency = 0;
  ANYDML_RETURN_IF_ERROR(
      Check(queue_->GetTimestampFrequency(&frequency), "asking for the clock's frequency"));
  void* mapped = nullptr;
  ANYDML_RETURN_IF_ERROR(Check(list.timestamps->Map(0, nullptr, &mapped), "mapping the timestamps"));
  const auto* const times = static_cast<const uint64_t*>(mapped);
  *seconds = static_cast<double>(times[1] - times[0]) / static_cast<double>(frequency);
  const D3D12_RANGE nothing_written{};
  list.timestamps->Unmap(0, &nothing_written);
  return {};
}

}  // namespace anydml::client
