// The calls to Direct3D.
#include <cstring>

#include <dxgi1_6.h>

#include "call_worker.h"

namespace anydml::fuzz {

D3D12_COMMAND_LIST_TYPE CallWorker::ListType() {
  constexpr D3D12_COMMAND_LIST_TYPE kTypes[] = {
      D3D12_COMMAND_LIST_TYPE_COMPUTE, D3D12_COMMAND_LIST_TYPE_COMPUTE, D3D12_COMMAND_LIST_TYPE_COMPUTE,
      D3D12_COMMAND_LIST_TYPE_DIRECT,  D3D12_COMMAND_LIST_TYPE_COPY,    D3D12_COMMAND_LIST_TYPE_BUNDLE};
  return source_.Any(kTypes);
}

D3D12_HEAP_TYPE CallWorker::HeapType() {
  constexpr D3D12_HEAP_TYPE kTypes[] = {D3D12_HEAP_TYPE_DEFAULT, D3D12_HEAP_TYPE_DEFAULT,
                                        D3D12_HEAP_TYPE_UPLOAD, D3D12_HEAP_TYPE_READBACK,
                                        D3D12_HEAP_TYPE_CUSTOM};
  return source_.Any(kTypes);
}

uint64_t CallWorker::Bytes() {
  switch (source_.Between(0, 15)) {
    case 0:
      return 0;
    case 1:
      return UINT64_MAX - source_.Byte();
    case 2:
      return uint64_t{1} << source_.Between(44, 63);  // more than any machine has
    case 3:
      return uint64_t{source_.Byte()} << 12;
    case 4:
      return source_.Byte();
    default:
      return 64u << source_.Between(0, 4);
  }
}

void CallWorker::CreateDevices() {
  ComPtr<ID3D12Device5> d3d = shared_.d3d.Get();
  if (d3d == nullptr || d3d->GetDeviceRemovedReason() != S_OK || source_.OneIn(16)) {
    d3d.Reset();
    D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&d3d));
    shared_.d3d.Set(d3d);
  }
  const auto flags = source_.OneIn(4) ? DML_CREATE_DEVICE_FLAG_DEBUG : DML_CREATE_DEVICE_FLAG_NONE;
  ComPtr<IDMLDevice> dml;
  ComPtr<IDMLCommandRecorder> recorder;
  DMLCreateDevice(d3d.Get(), flags, IID_PPV_ARGS(&dml));
  if (dml != nullptr) dml->CreateCommandRecorder(IID_PPV_ARGS(&recorder));
  const size_t index = source_.Byte() % shared_.dml.size();
  shared_.dml[index].Set(dml);
  shared_.recorders[index].Set(recorder);
}

void CallWorker::CreateQueue() {
  const auto d3d = shared_.d3d.Get();
  if (d3d == nullptr) return;
  D3D12_COMMAND_QUEUE_DESC desc = {};
  desc.Type = ListType();
  desc.Priority = source_.OneIn(16) ? source_.Byte() : 0;
  desc.NodeMask = source_.OneIn(16) ? source_.Byte() : 0;
  ComPtr<ID3D12CommandQueue> queue;
  d3d->CreateCommandQueue(source_.OneIn(64) ? nullptr : &desc, IID_PPV_ARGS(&queue));
  Place(shared_.queues).Set(queue);
}

void CallWorker::CreateList() {
  const auto d3d = shared_.d3d.Get();
  if (d3d == nullptr) return;
  const D3D12_COMMAND_LIST_TYPE type = ListType();
  ComPtr<ID3D12CommandAllocator>& allocator = Place(own_.allocators);
  if (allocator == nullptr || source_.OneIn(4)) d3d->CreateCommandAllocator(type, IID_PPV_ARGS(&allocator));
  d3d->CreateCommandList(source_.OneIn(16) ? source_.Byte() : 0, source_.OneIn(16) ? ListType() : type,
                         source_.OneIn(16) ? nullptr : allocator.Get(), nullptr,
                         IID_PPV_ARGS(&Place(own_.lists)));
}

void CallWorker::CreateFence() {
  const auto d3d = shared_.d3d.Get();
  if (d3d == nullptr) return;
  ComPtr<ID3D12Fence> fence;
  d3d->CreateFence(source_.OneIn(16) ? UINT64_MAX : source_.Byte() % 8, D3D12_FENCE_FLAG_NONE,
                   IID_PPV_ARGS(&fence));
  Place(shared_.fences).Set(fence);
}

void CallWorker::CreateHeap() {
  const auto d3d = shared_.d3d.Get();
  if (d3d == nullptr) return;
  D3D12_HEAP_DESC desc = {};
  desc.SizeInBytes = source_.OneIn(4) ? Bytes() : 65536u * source_.Between(1, 4);
  desc.Properties.Type = HeapType();
  desc.Alignment = source_.OneIn(16) ? Bytes() : 0;
  ComPtr<ID3D12Heap> heap;
  d3d->CreateHeap(&desc, IID_PPV_ARGS(&heap));
  Place(shared_.heaps).Set(heap);
}

void CallWorker::CreateBuffer() {
  const auto d3d = shared_.d3d.Get();
  if (d3d == nullptr) return;
  const D3D12_HEAP_TYPE type = HeapType();
  const D3D12_HEAP_PROPERTIES properties = {type, D3D12_CPU_PAGE_PROPERTY_UNKNOWN, D3D12_MEMORY_POOL_UNKNOWN,
                                            0, 0};
  const D3D12_RESOURCE_DESC desc =
      BufferDesc(Bytes(), type == D3D12_HEAP_TYPE_DEFAULT ? D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS
                                                          : D3D12_RESOURCE_FLAG_NONE);
  ComPtr<ID3D12Resource> buffer;
  d3d->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &desc, InitialState(type), nullptr,
                               IID_PPV_ARGS(&buffer));
  Place(shared_.buffers).Set(buffer);
}

void CallWorker::CreatePlaced() {
  const auto d3d = shared_.d3d.Get();
  if (d3d == nullptr) return;
  const auto heap = Any(shared_.heaps);
  const uint64_t offset = source_.OneIn(4) ? Bytes() : 65536u * source_.Between(0, 2);
  const D3D12_RESOURCE_DESC desc = BufferDesc(Bytes(), D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS);
  ComPtr<ID3D12Resource> buffer;
  d3d->CreatePlacedResource(heap.Get(), offset, &desc, D3D12_RESOURCE_STATE_COMMON, nullptr,
                            IID_PPV_ARGS(&buffer));
  Place(shared_.buffers).Set(buffer);
}

void CallWorker::CreateDescriptors() {
  const auto d3d = shared_.d3d.Get();
  if (d3d == nullptr) return;
  const D3D12_DESCRIPTOR_HEAP_DESC desc = {
      source_.OneIn(16) ? D3D12_DESCRIPTOR_HEAP_TYPE_SAMPLER : D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV,
      source_.OneIn(16) ? UINT_MAX : source_.Byte() % 32u,
      source_.OneIn(8) ? D3D12_DESCRIPTOR_HEAP_FLAG_NONE : D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE, 0};
  ComPtr<ID3D12DescriptorHeap> heap;
  d3d->CreateDescriptorHeap(&desc, IID_PPV_ARGS(&heap));
  Place(shared_.descriptors).Set(heap);
}

void CallWorker::ReleaseSomething() {
  switch (source_.Between(0, 9)) {
    case 0:
      return shared_.d3d.Set(nullptr);
    case 1:
      return Place(shared_.dml).Set(nullptr);
    case 2:
      return Place(shared_.queues).Set(nullptr);
    case 3:
      return Place(shared_.fences).Set(nullptr);
    case 4:
      return Place(shared_.heaps).Set(nullptr);
    case 5:
      return Place(shared_.descriptors).Set(nullptr);
    case 6:
      Place(own_.allocators) = nullptr;
      return;
    case 7:
      Place(own_.lists) = nullptr;
      return;
    case 8:
      Place(own_.tables) = nullptr;
      return;
    default:
      return Place(shared_.buffers).Set(nullptr);
  }
}

void CallWorker::RemoveDevice() {
  const auto d3d = shared_.d3d.Get();
  if (d3d != nullptr && source_.OneIn(8)) d3d->RemoveDevice();
}

void CallWorker::Map() {
  const auto buffer = Place(shared_.buffers).Get();
  if (buffer == nullptr) return;
  const D3D12_RANGE range = {source_.Byte(), Bytes()};
  const D3D12_RANGE* const given = source_.OneIn(4) ? &range : nullptr;
  void* data = nullptr;
  const HRESULT result = buffer->Map(source_.OneIn(16) ? 1 : 0, given, &data);
  Require(SUCCEEDED(result) == (data != nullptr), "Map: the result and the pointer disagree");
  if (!source_.OneIn(8)) buffer->Unmap(0, given);
}

void CallWorker::OpenOrClose() {
  ComPtr<ID3D12GraphicsCommandList>& list = Place(own_.lists);
  switch (source_.Between(0, 3)) {
    case 0:
      if (ID3D12CommandAllocator* const allocator = Any(own_.allocators)) allocator->Reset();
      break;
    case 1:
      if (list != nullptr) list->Reset(Any(own_.allocators), nullptr);
      break;
    default:
      if (list != nullptr) list->Close();
      break;
  }
}

void CallWorker::Copy() {
  ID3D12GraphicsCommandList* const list = Any(own_.lists);
  if (list == nullptr) return;
  const auto to = Any(shared_.buffers), from = Any(shared_.buffers);
  if (source_.OneIn(2)) return list->CopyResource(to.Get(), from.Get());
  const uint64_t to_offset = source_.OneIn(8) ? Bytes() : source_.Byte();
  const uint64_t from_offset = source_.OneIn(8) ? Bytes() : source_.Byte();
  list->CopyBufferRegion(to.Get(), to_offset, from.Get(), from_offset,
                         source_.OneIn(8) ? Bytes() : source_.Byte());
}

void CallWorker::Barrier() {
  ID3D12GraphicsCommandList* const list = Any(own_.lists);
  if (list == nullptr) return;
  const auto buffer = Any(shared_.buffers);
  D3D12_RESOURCE_BARRIER barrier = {};
  barrier.Type = source_.OneIn(2) ? D3D12_RESOURCE_BARRIER_TYPE_UAV : D3D12_RESOURCE_BARRIER_TYPE_TRANSITION;
  if (barrier.Type == D3D12_RESOURCE_BARRIER_TYPE_UAV) {
    barrier.UAV.pResource = buffer.Get();
  } else {
    constexpr D3D12_RESOURCE_STATES kStates[] = {D3D12_RESOURCE_STATE_COMMON, D3D12_RESOURCE_STATE_COPY_DEST,
                                                 D3D12_RESOURCE_STATE_COPY_SOURCE,
                                                 D3D12_RESOURCE_STATE_UNORDERED_ACCESS};
    barrier.Transition = {buffer.Get(), source_.OneIn(16) ? 1 : D3D12_RESOURCE_BARRIER_ALL_SUBRESOURCES,
                          source_.Any(kStates), source_.Any(kStates)};
  }
  list->ResourceBarrier(1, source_.OneIn(64) ? nullptr : &barrier);
}

void CallWorker::SetDescriptorHeaps() {
  ID3D12GraphicsCommandList* const list = Any(own_.lists);
  if (list == nullptr) return;
  const auto heap = Any(shared_.descriptors);
  ID3D12DescriptorHeap* const heaps[] = {heap.Get()};
  list->SetDescriptorHeaps(source_.OneIn(16) ? 0 : 1, heaps);
}

void CallWorker::ViewAndClear() {
  const auto d3d = shared_.d3d.Get();
  const auto heap = Place(shared_.descriptors).Get();
  if (d3d == nullptr || heap == nullptr) return;
  const auto buffer = Any(shared_.buffers);
  D3D12_UNORDERED_ACCESS_VIEW_DESC desc = {};
  desc.Format = DXGI_FORMAT_R32_UINT;
  desc.ViewDimension = D3D12_UAV_DIMENSION_BUFFER;
  desc.Buffer.FirstElement = source_.OneIn(8) ? Bytes() : source_.Byte() % 8;
  desc.Buffer.NumElements = source_.OneIn(8) ? UINT_MAX : source_.Byte() % 16;
  const UINT step = d3d->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
  const uint64_t offset = uint64_t{step} * (source_.Byte() % 32u);  // possibly beyond its end
  D3D12_CPU_DESCRIPTOR_HANDLE cpu = heap->GetCPUDescriptorHandleForHeapStart();
  D3D12_GPU_DESCRIPTOR_HANDLE gpu = heap->GetGPUDescriptorHandleForHeapStart();
  cpu.ptr += offset;
  gpu.ptr += offset;
  d3d->CreateUnorderedAccessView(buffer.Get(), nullptr, &desc, cpu);
  const UINT values[4] = {source_.Byte(), 1, 2, 3};
  if (ID3D12GraphicsCommandList* const list = Any(own_.lists)) {
    list->ClearUnorderedAccessViewUint(gpu, cpu, buffer.Get(), values, 0, nullptr);
  }
}

void CallWorker::Execute() {
  const auto queue = Place(shared_.queues).Get();
  if (queue == nullptr) return;
  ID3D12CommandList* lists[] = {Any(own_.lists), Any(own_.lists)};
  queue->ExecuteCommandLists(source_.Between(1, 2), source_.OneIn(64) ? nullptr : lists);
}

void CallWorker::QueueSignalOrWait() {
  const auto queue = Place(shared_.queues).Get();
  if (queue == nullptr) return;
  const auto fence = Any(shared_.fences);
  const uint64_t value = source_.OneIn(16) ? UINT64_MAX : source_.Byte() % 8;
  if (source_.OneIn(3)) {
    queue->Wait(fence.Get(), value);  // possibly forever: until the queue is released
  } else {
    queue->Signal(fence.Get(), value);
  }
}

void CallWorker::FenceSignalOrWait() {
  const auto fence = Place(shared_.fences).Get();
  if (fence == nullptr) return;
  const uint64_t value = source_.Byte() % 8;
  if (source_.OneIn(2)) {
    fence->Signal(value);
  } else {
    WaitFor(fence.Get(), value, 1);
  }
}

void CallWorker::AskDevice() {
  const auto d3d = shared_.d3d.Get();
  if (d3d == nullptr) return;
  const D3D12_RESOURCE_DESC desc = BufferDesc(Bytes(), D3D12_RESOURCE_FLAG_NONE);
  d3d->GetResourceAllocationInfo(0, source_.Between(0, 1), &desc);
  D3D12_FEATURE_DATA_ARCHITECTURE architecture = {};
  architecture.NodeIndex = source_.Byte() % 2;
  d3d->CheckFeatureSupport(D3D12_FEATURE_ARCHITECTURE, &architecture,
                           source_.OneIn(4) ? source_.Byte() % sizeof(architecture) : sizeof(architecture));
  if (const auto buffer = Place(shared_.buffers).Get()) {
    const auto name = source_.Take(source_.Byte() % 8);
    const GUID guid = {1, 2, 3, {source_.Byte()}};
    buffer->SetPrivateData(guid, static_cast<UINT>(name.size()), name.data());
    UINT size = source_.Byte() % 16;
    std::array<uint8_t, 16> data;
    buffer->GetPrivateData(guid, &size, data.data());
    buffer->SetName(L"fuzz");
  }
}

}  // namespace anydml::fuzz
