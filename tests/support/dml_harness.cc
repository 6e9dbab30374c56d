#include "support/dml_harness.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include <anydml.h>
#include <dxgi1_6.h>

namespace anydml::test {

void Check(HRESULT result, const char* what) {
  if (SUCCEEDED(result)) return;
  char code[16];
  snprintf(code, sizeof(code), "0x%08X", static_cast<unsigned>(result));
  throw std::runtime_error(std::string(what) + " returned " + code + ": " + LastError());
}

std::string LastError() { return AnyDmlGetLastErrorMessage(); }

std::string AdapterOf(ID3D12Device* device) {
  const LUID luid = device->GetAdapterLuid();
  return AnyDmlGetAdapterId(uint64_t{luid.LowPart} | static_cast<uint64_t>(luid.HighPart) << 32);
}

ComPtr<ID3D12Device> CpuDevice() {
  ComPtr<IDXGIFactory4> factory;
  Check(CreateDXGIFactory2(0, IID_PPV_ARGS(&factory)), "CreateDXGIFactory2");
  ComPtr<IDXGIAdapter1> adapter;
  for (UINT i = 0; factory->EnumAdapters1(i, &adapter) == S_OK; ++i) {
    ComPtr<ID3D12Device> device;
    Check(D3D12CreateDevice(adapter.Get(), D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device)),
          "D3D12CreateDevice");
    if (AdapterOf(device.Get()) == "cpu") return device;
  }
  throw std::runtime_error("there is no CPU adapter");
}

Bindings::Bindings(const std::vector<Bound>& buffers) {
  buffers_.emplace_back();
  for (const Bound& bound : buffers) {
    uint64_t size = bound.size;
    if (size == 0 && bound.buffer != nullptr) size = bound.buffer->GetDesc().Width - bound.offset;
    buffers_[0].push_back({bound.buffer, bound.offset, size});
  }
  for (const DML_BUFFER_BINDING& buffer : buffers_[0]) {
    const bool none = buffer.Buffer == nullptr;
    descs_.push_back({none ? DML_BINDING_TYPE_NONE : DML_BINDING_TYPE_BUFFER, none ? nullptr : &buffer});
  }
}

Bindings Bindings::Arrays(const std::vector<std::vector<Bound>>& arrays) {
  Bindings result;
  for (const std::vector<Bound>& array : arrays) result.buffers_.push_back(Bindings(array).buffers_[0]);
  for (const auto& buffers : result.buffers_) {
    result.arrays_.push_back({static_cast<UINT>(buffers.size()), buffers.data()});
  }
  for (const auto& array : result.arrays_) result.descs_.push_back({DML_BINDING_TYPE_BUFFER_ARRAY, &array});
  return result;
}

DmlHarness::DmlHarness(DML_CREATE_DEVICE_FLAGS flags, D3D12_COMMAND_LIST_TYPE list_type) {
  Check(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&d3d_)), "D3D12CreateDevice");
  CreateObjects(flags, list_type);
}

DmlHarness::DmlHarness(ID3D12Device* d3d, DML_CREATE_DEVICE_FLAGS flags) : d3d_(d3d) {
  CreateObjects(flags, D3D12_COMMAND_LIST_TYPE_COMPUTE);
}

DmlHarness::DmlHarness(ID3D12Device* d3d, ID3D12CommandQueue* queue) : d3d_(d3d), queue_(queue) {
  CreateObjects(DML_CREATE_DEVICE_FLAG_NONE, D3D12_COMMAND_LIST_TYPE_COMPUTE);
}

void DmlHarness::CreateObjects(DML_CREATE_DEVICE_FLAGS flags, D3D12_COMMAND_LIST_TYPE list_type) {
  Check(DMLCreateDevice(d3d_.Get(), flags, IID_PPV_ARGS(&dml_)), "DMLCreateDevice");
  D3D12_COMMAND_QUEUE_DESC queue_desc = {};
  queue_desc.Type = list_type;
  if (!queue_) Check(d3d_->CreateCommandQueue(&queue_desc, IID_PPV_ARGS(&queue_)), "CreateCommandQueue");
  Check(d3d_->CreateCommandAllocator(list_type, IID_PPV_ARGS(&allocator_)), "CreateCommandAllocator");
  Check(d3d_->CreateCommandList(0, list_type, allocator_.Get(), nullptr, IID_PPV_ARGS(&list_)),
        "CreateCommandList");
  Check(d3d_->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence_)), "CreateFence");
  D3D12_DESCRIPTOR_HEAP_DESC heap_desc = {};
  heap_desc.Type = D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV;
  heap_desc.NumDescriptors = kDescriptors;
  heap_desc.Flags = D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE;
  Check(d3d_->CreateDescriptorHeap(&heap_desc, IID_PPV_ARGS(&heap_)), "CreateDescriptorHeap");
  Check(dml_->CreateCommandRecorder(IID_PPV_ARGS(&recorder_)), "CreateCommandRecorder");
  ID3D12DescriptorHeap* heaps[] = {heap_.Get()};
  list_->SetDescriptorHeaps(1, heaps);
}

ComPtr<ID3D12Resource> DmlHarness::CreateBuffer(uint64_t bytes, D3D12_HEAP_TYPE heap,
                                                D3D12_RESOURCE_FLAGS flags) {
  D3D12_HEAP_PROPERTIES properties = {};
  properties.Type = heap;
  D3D12_RESOURCE_DESC desc = {};
  desc.Dimension = D3D12_RESOURCE_DIMENSION_BUFFER;
  desc.Width = std::max<uint64_t>(bytes, 4);
  desc.Height = 1;
  desc.DepthOrArraySize = 1;
  desc.MipLevels = 1;
  desc.SampleDesc.Count = 1;
  desc.Layout = D3D12_TEXTURE_LAYOUT_ROW_MAJOR;
  D3D12_RESOURCE_STATES state = D3D12_RESOURCE_STATE_COMMON;
  if (heap == D3D12_HEAP_TYPE_DEFAULT) {
    desc.Flags = flags;
  } else {
    state =
        heap == D3D12_HEAP_TYPE_UPLOAD ? D3D12_RESOURCE_STATE_GENERIC_READ : D3D12_RESOURCE_STATE_COPY_DEST;
  }
  ComPtr<ID3D12Resource> buffer;
  Check(d3d_->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &desc, state, nullptr,
                                      IID_PPV_ARGS(&buffer)),
        "CreateCommittedResource");
  return buffer;
}

ComPtr<ID3D12Resource> DmlHarness::Upload(const std::vector<uint8_t>& bytes) {
  auto source = CreateBuffer(bytes.size(), D3D12_HEAP_TYPE_UPLOAD);
  void* mapped = nullptr;
  Check(source->Map(0, nullptr, &mapped), "Map");
  if (!bytes.empty()) memcpy(mapped, bytes.data(), bytes.size());
  source->Unmap(0, nullptr);
  auto target = CreateBuffer(bytes.size());
  list_->CopyResource(target.Get(), source.Get());
  ExecuteAndWait();
  return target;
}

std::vector<uint8_t> DmlHarness::Download(ID3D12Resource* buffer, uint64_t bytes) {
  auto target = CreateBuffer(bytes, D3D12_HEAP_TYPE_READBACK);
  list_->CopyBufferRegion(target.Get(), 0, buffer, 0, bytes);
  ExecuteAndWait();
  void* mapped = nullptr;
  Check(target->Map(0, nullptr, &mapped), "Map");
  std::vector<uint8_t> result(bytes);
  if (bytes != 0) memcpy(result.data(), mapped, bytes);
  target->Unmap(0, nullptr);
  return result;
}

ComPtr<IDMLOperator> DmlHarness::CreateOperator(DML_OPERATOR_TYPE type, const void* desc) {
  const DML_OPERATOR_DESC operator_desc = {type, desc};
  ComPtr<IDMLOperator> op;
  Check(dml_->CreateOperator(&operator_desc, IID_PPV_ARGS(&op)), "CreateOperator");
  return op;
}

ComPtr<IDMLCompiledOperator> DmlHarness::Compile(DML_OPERATOR_TYPE type, const void* desc,
                                                 DML_EXECUTION_FLAGS flags) {
  auto op = CreateOperator(type, desc);
  ComPtr<IDMLCompiledOperator> compiled;
  Check(dml_->CompileOperator(op.Get(), flags, IID_PPV_ARGS(&compiled)), "CompileOperator");
  return compiled;
}

DML_BINDING_TABLE_DESC DmlHarness::NextTableDesc(IDMLDispatchable* dispatchable) {
  const UINT count = dispatchable->GetBindingProperties().RequiredDescriptorCount;
  if (next_descriptor_ + count > kDescriptors)
    throw std::runtime_error("the harness has no descriptors left");
  const UINT increment = d3d_->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
  DML_BINDING_TABLE_DESC desc = {};
  desc.Dispatchable = dispatchable;
  desc.CPUDescriptorHandle = heap_->GetCPUDescriptorHandleForHeapStart();
  desc.CPUDescriptorHandle.ptr += next_descriptor_ * increment;
  desc.GPUDescriptorHandle = heap_->GetGPUDescriptorHandleForHeapStart();
  desc.GPUDescriptorHandle.ptr += next_descriptor_ * increment;
  desc.SizeInDescriptors = count;
  next_descriptor_ += count;
  return desc;
}

ComPtr<IDMLBindingTable> DmlHarness::CreateTable(IDMLDispatchable* dispatchable) {
  const DML_BINDING_TABLE_DESC desc = NextTableDesc(dispatchable);
  ComPtr<IDMLBindingTable> table;
  Check(dml_->CreateBindingTable(&desc, IID_PPV_ARGS(&table)), "CreateBindingTable");
  return table;
}

ComPtr<ID3D12Resource> DmlHarness::CreatePersistent(IDMLCompiledOperator* op) {
  const uint64_t bytes = op->GetBindingProperties().PersistentResourceSize;
  return bytes != 0 ? CreateBuffer(bytes) : nullptr;
}

ComPtr<ID3D12Resource> DmlHarness::CreateTemporary(IDMLDispatchable* dispatchable) {
  const uint64_t bytes = dispatchable->GetBindingProperties().TemporaryResourceSize;
  return bytes != 0 ? CreateBuffer(bytes) : nullptr;
}

void DmlHarness::Initialize(IDMLCompiledOperator* op, ID3D12Resource* persistent,
                            const std::vector<Bound>& owned) {
  ComPtr<IDMLOperatorInitializer> initializer;
  Check(dml_->CreateOperatorInitializer(1, &op, IID_PPV_ARGS(&initializer)), "CreateOperatorInitializer");
  auto table = CreateTable(initializer.Get());
  auto temporary = CreateTemporary(initializer.Get());
  const Bindings inputs = Bindings::Arrays({owned});
  const Bindings outputs({{persistent}});
  const Bindings extra({{temporary.Get()}});
  if (temporary) table->BindTemporaryResource(extra.data());
  if (!owned.empty()) table->BindInputs(inputs.count(), inputs.data());
  if (persistent != nullptr) table->BindOutputs(outputs.count(), outputs.data());
  recorder_->RecordDispatch(list_.Get(), initializer.Get(), table.Get());
  UavBarrier();
  ExecuteAndWait();
}

void DmlHarness::Dispatch(IDMLCompiledOperator* op, const std::vector<Bound>& inputs,
                          const std::vector<Bound>& outputs, ID3D12Resource* persistent) {
  auto table = CreateTable(op);
  auto temporary = CreateTemporary(op);
  const Bindings input_bindings(inputs);
  const Bindings output_bindings(outputs);
  const Bindings extra({{temporary.Get()}, {persistent}});
  table->BindInputs(input_bindings.count(), input_bindings.data());
  table->BindOutputs(output_bindings.count(), output_bindings.data());
  if (temporary) table->BindTemporaryResource(&extra.data()[0]);
  if (persistent != nullptr) table->BindPersistentResource(&extra.data()[1]);
  recorder_->RecordDispatch(list_.Get(), op, table.Get());
  UavBarrier();
  ExecuteAndWait();
}

std::vector<std::vector<uint8_t>> DmlHarness::Run(DML_OPERATOR_TYPE type, const void* desc,
                                                  const std::vector<std::vector<uint8_t>>& inputs,
                                                  const std::vector<uint64_t>& output_bytes,
                                                  const std::vector<bool>& owned) {
  auto op = Compile(type, desc);
  std::vector<ComPtr<ID3D12Resource>> buffers;
  std::vector<Bound> owned_bounds(inputs.size());
  std::vector<Bound> input_bounds(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].empty()) continue;  // absent
    buffers.push_back(Upload(inputs[i]));
    const bool is_owned = i < owned.size() && owned[i];
    (is_owned ? owned_bounds : input_bounds)[i].buffer = buffers.back().Get();
  }
  std::vector<Bound> output_bounds;
  for (uint64_t bytes : output_bytes) {
    output_bounds.emplace_back();
    if (bytes == 0) continue;  // absent
    buffers.push_back(CreateBuffer(bytes));
    output_bounds.back().buffer = buffers.back().Get();
  }
  auto persistent = CreatePersistent(op.Get());
  Initialize(op.Get(), persistent.Get(), owned_bounds);
  Dispatch(op.Get(), input_bounds, output_bounds, persistent.Get());
  Check(dml_->GetDeviceRemovedReason(), "GetDeviceRemovedReason");
  std::vector<std::vector<uint8_t>> results;
  for (size_t i = 0; i < output_bytes.size(); ++i) {
    results.push_back(output_bytes[i] == 0 ? std::vector<uint8_t>()
                                           : Download(output_bounds[i].buffer, output_bytes[i]));
  }
  return results;
}

void DmlHarness::UavBarrier() {
  D3D12_RESOURCE_BARRIER barrier = {};
  barrier.Type = D3D12_RESOURCE_BARRIER_TYPE_UAV;
  list_->ResourceBarrier(1, &barrier);
}

void DmlHarness::CloseAndExecute() {
  Check(list_->Close(), "ID3D12GraphicsCommandList::Close");
  ID3D12CommandList* lists[] = {list_.Get()};
  queue_->ExecuteCommandLists(1, lists);
  Check(queue_->Signal(fence_.Get(), ++fence_value_), "ID3D12CommandQueue::Signal");
}

void DmlHarness::Wait() {
  Check(fence_->SetEventOnCompletion(fence_value_, nullptr), "ID3D12Fence::SetEventOnCompletion");
}

void DmlHarness::Reopen() {
  Check(allocator_->Reset(), "ID3D12CommandAllocator::Reset");
  Check(list_->Reset(allocator_.Get(), nullptr), "ID3D12GraphicsCommandList::Reset");
  ID3D12DescriptorHeap* heaps[] = {heap_.Get()};
  list_->SetDescriptorHeaps(1, heaps);
}

void DmlHarness::ExecuteAndWait() {
  CloseAndExecute();
  Wait();
  Reopen();
}

}  // namespace anydml::test
