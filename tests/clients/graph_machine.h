// The environment of a program's graphs: devices, a queue, buffers, and the steps from a compiled graph to
// results.
#ifndef ANYDML_TESTS_CLIENTS_GRAPH_MACHINE_H_
#define ANYDML_TESTS_CLIENTS_GRAPH_MACHINE_H_

#include <DirectML.h>
#include <d3dx12.h>
#include <wil/result.h>
#include <wrl/client.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace client {

using Microsoft::WRL::ComPtr;
using Bytes = std::vector<BYTE>;

template <typename T>
Bytes BytesOf(const std::vector<T>& values) {
  Bytes bytes((values.size() * sizeof(T) + 3) / 4 * 4);
  if (!values.empty()) memcpy(bytes.data(), values.data(), values.size() * sizeof(T));
  return bytes;
}

template <typename T>
std::vector<T> As(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

class Machine {
 public:
  Machine() {
    THROW_IF_FAILED(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device_)));
    THROW_IF_FAILED(DMLCreateDevice1(device_.Get(), DML_CREATE_DEVICE_FLAG_NONE, DML_FEATURE_LEVEL_6_2,
                                     IID_PPV_ARGS(&dml_)));
    D3D12_COMMAND_QUEUE_DESC queue = {};
    queue.Type = D3D12_COMMAND_LIST_TYPE_COMPUTE;
    THROW_IF_FAILED(device_->CreateCommandQueue(&queue, IID_PPV_ARGS(&queue_)));
    THROW_IF_FAILED(device_->CreateCommandAllocator(queue.Type, IID_PPV_ARGS(&allocator_)));
    THROW_IF_FAILED(
        device_->CreateCommandList(0, queue.Type, allocator_.Get(), nullptr, IID_PPV_ARGS(&list_)));
    THROW_IF_FAILED(device_->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence_)));
    THROW_IF_FAILED(dml_->CreateCommandRecorder(IID_PPV_ARGS(&recorder_)));
  }

  IDMLDevice* dml() const { return dml_.Get(); }
  IDMLCommandRecorder* recorder() const { return recorder_.Get(); }
  ID3D12GraphicsCommandList* list() const { return list_.Get(); }

  ComPtr<ID3D12Resource> Buffer(UINT64 size, D3D12_HEAP_TYPE type = D3D12_HEAP_TYPE_DEFAULT) {
    const CD3DX12_HEAP_PROPERTIES heap(type);
    const auto desc = CD3DX12_RESOURCE_DESC::Buffer(
        std::max<UINT64>(size, DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT),
        type == D3D12_HEAP_TYPE_DEFAULT ? D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS
                                        : D3D12_RESOURCE_FLAG_NONE);
    const D3D12_RESOURCE_STATES state = type == D3D12_HEAP_TYPE_UPLOAD     ? D3D12_RESOURCE_STATE_GENERIC_READ
                                        : type == D3D12_HEAP_TYPE_READBACK ? D3D12_RESOURCE_STATE_COPY_DEST
                                                                           : D3D12_RESOURCE_STATE_COMMON;
    ComPtr<ID3D12Resource> buffer;
    THROW_IF_FAILED(device_->CreateCommittedResource(&heap, D3D12_HEAP_FLAG_NONE, &desc, state, nullptr,
                                                     IID_PPV_ARGS(&buffer)));
    return buffer;
  }

  ComPtr<ID3D12Resource> Upload(const Bytes& bytes) {
    const auto upload = Buffer(bytes.size(), D3D12_HEAP_TYPE_UPLOAD);
    void* mapped = nullptr;
    THROW_IF_FAILED(upload->Map(0, nullptr, &mapped));
    memcpy(mapped, bytes.data(), bytes.size());
    upload->Unmap(0, nullptr);
    const auto buffer = Buffer(bytes.size());
    list_->CopyBufferRegion(buffer.Get(), 0, upload.Get(), 0, bytes.size());
    Execute();
    return buffer;
  }

  Bytes Download(ID3D12Resource* buffer, UINT64 size) {
    const auto readback = Buffer(size, D3D12_HEAP_TYPE_READBACK);
    list_->CopyBufferRegion(readback.Get(), 0, buffer, 0, size);
    Execute();
    Bytes bytes(size);
    void* mapped = nullptr;
    THROW_IF_FAILED(readback->Map(0, nullptr, &mapped));
    memcpy(bytes.data(), mapped, size);
    readback->Unmap(0, nullptr);
    return bytes;
  }

  // Submits the recorded list (or the given one) and waits.
  void Execute(ID3D12CommandList* other = nullptr) {
    THROW_IF_FAILED(list_->Close());
    ID3D12CommandList* lists[] = {other != nullptr ? other : list_.Get()};
    queue_->ExecuteCommandLists(1, lists);
    THROW_IF_FAILED(queue_->Signal(fence_.Get(), ++fence_value_));
    THROW_IF_FAILED(fence_->SetEventOnCompletion(fence_value_, nullptr));
    THROW_IF_FAILED(device_->GetDeviceRemovedReason());
    THROW_IF_FAILED(dml_->GetDeviceRemovedReason());
    THROW_IF_FAILED(allocator_->Reset());
    THROW_IF_FAILED(list_->Reset(allocator_.Get(), nullptr));
  }

  ComPtr<ID3D12DescriptorHeap> Heap(UINT count) {
    const D3D12_DESCRIPTOR_HEAP_DESC desc = {D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV, count,
                                             D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE, 0};
    ComPtr<ID3D12DescriptorHeap> heap;
    THROW_IF_FAILED(device_->CreateDescriptorHeap(&desc, IID_PPV_ARGS(&heap)));
    return heap;
  }

  ComPtr<IDMLBindingTable> Table(IDMLDispatchable* dispatchable, ID3D12DescriptorHeap* heap) {
    const DML_BINDING_TABLE_DESC desc = {dispatchable, heap->GetCPUDescriptorHandleForHeapStart(),
                                         heap->GetGPUDescriptorHandleForHeapStart(),
                                         dispatchable->GetBindingProperties().RequiredDescriptorCount};
    ComPtr<IDMLBindingTable> table;
    THROW_IF_FAILED(dml_->CreateBindingTable(&desc, IID_PPV_ARGS(&table)));
    return table;
  }

  ComPtr<ID3D12GraphicsCommandList> AnotherList(ID3D12CommandAllocator* allocator) {
    ComPtr<ID3D12GraphicsCommandList> list;
    THROW_IF_FAILED(device_->CreateCommandList(0, D3D12_COMMAND_LIST_TYPE_COMPUTE, allocator, nullptr,
                                               IID_PPV_ARGS(&list)));
    return list;
  }

  ComPtr<ID3D12CommandAllocator> AnotherAllocator() {
    ComPtr<ID3D12CommandAllocator> allocator;
    THROW_IF_FAILED(
        device_->CreateCommandAllocator(D3D12_COMMAND_LIST_TYPE_COMPUTE, IID_PPV_ARGS(&allocator)));
    return allocator;
  }

 private:
  ComPtr<ID3D12Device> device_;
  ComPtr<IDMLDevice> dml_;
  ComPtr<ID3D12CommandQueue> queue_;
  ComPtr<ID3D12CommandAllocator> allocator_;
  ComPtr<ID3D12GraphicsCommandList> list_;
  ComPtr<ID3D12Fence> fence_;
  UINT64 fence_value_ = 0;
  ComPtr<IDMLCommandRecorder> recorder_;
};

// An input of a graph: its contents, and whether it is bound at initialization. Empty if no node reads it.
struct Given {
  Bytes bytes;
  bool owned = false;
};

// An initialized graph with its temporary and persistent resources.
class Program {
 public:
  Program(Machine* machine, IDMLCompiledOperator* compiled, const std::vector<Given>& inputs)
      : machine_(machine), compiled_(compiled) {
    const DML_BINDING_PROPERTIES properties = compiled->GetBindingProperties();
    if (properties.PersistentResourceSize > 0)
      persistent_ = machine->Buffer(properties.PersistentResourceSize);
    if (properties.TemporaryResourceSize > 0) temporary_ = machine->Buffer(properties.TemporaryResourceSize);
    IDMLCompiledOperator* operators[] = {compiled};
    ComPtr<IDMLOperatorInitializer> initializer;
    THROW_IF_FAILED(machine->dml()->CreateOperatorInitializer(1, operators, IID_PPV_ARGS(&initializer)));
    const DML_BINDING_PROPERTIES needed = initializer->GetBindingProperties();
    const auto heap = machine->Heap(needed.RequiredDescriptorCount);
    const auto table = machine->Table(initializer.Get(), heap.Get());
    ComPtr<ID3D12Resource> scratch;
    if (needed.TemporaryResourceSize > 0) {
      scratch = machine->Buffer(needed.TemporaryResourceSize);
      const DML_BUFFER_BINDING binding = {scratch.Get(), 0, needed.TemporaryResourceSize};
      const DML_BINDING_DESC desc = {DML_BINDING_TYPE_BUFFER, &binding};
      table->BindTemporaryResource(&desc);
    }
    std::vector<ComPtr<ID3D12Resource>> weights;
    std::vector<DML_BUFFER_BINDING> bindings;
    for (const Given& input : inputs) {
      weights.push_back(input.owned ? machine->Upload(input.bytes) : nullptr);
      bindings.push_back({weights.back().Get(), 0, input.owned ? input.bytes.size() : 0});
    }
    const DML_BUFFER_ARRAY_BINDING array = {static_cast<UINT>(bindings.size()), bindings.data()};
    const DML_BINDING_DESC array_desc = {DML_BINDING_TYPE_BUFFER_ARRAY, &array};
    table->BindInputs(1, &array_desc);
    const DML_BUFFER_BINDING persistent = PersistentBinding();
    const DML_BINDING_DESC persistent_desc = {DML_BINDING_TYPE_BUFFER, &persistent};
    if (persistent_ != nullptr) table->BindOutputs(1, &persistent_desc);
    ID3D12DescriptorHeap* heaps[] = {heap.Get()};
    machine->list()->SetDescriptorHeaps(1, heaps);
    machine->recorder()->RecordDispatch(machine->list(), initializer.Get(), table.Get());
    machine->Execute();
  }

  DML_BUFFER_BINDING PersistentBinding() const {
    return {persistent_.Get(), 0, compiled_->GetBindingProperties().PersistentResourceSize};
  }
  DML_BUFFER_BINDING TemporaryBinding() const {
    return {temporary_.Get(), 0, compiled_->GetBindingProperties().TemporaryResourceSize};
  }

  // One result per size; none for a size of 0.
  std::vector<Bytes> Run(const std::vector<Given>& inputs, const std::vector<UINT64>& output_sizes) {
    const auto heap = machine_->Heap(compiled_->GetBindingProperties().RequiredDescriptorCount);
    const auto table = machine_->Table(compiled_.Get(), heap.Get());
    std::vector<ComPtr<ID3D12Resource>> buffers;
    std::vector<DML_BUFFER_BINDING> bindings(inputs.size() + output_sizes.size());
    std::vector<DML_BINDING_DESC> descs(bindings.size(), DML_BINDING_DESC{DML_BINDING_TYPE_NONE, nullptr});
    for (size_t i = 0; i < bindings.size(); ++i) {
      const bool is_input = i < inputs.size();
      const UINT64 size = is_input ? inputs[i].bytes.size() : output_sizes[i - inputs.size()];
      const bool bound = size > 0 && !(is_input && inputs[i].owned);
      buffers.push_back(!bound     ? nullptr
                        : is_input ? machine_->Upload(inputs[i].bytes)
                                   : machine_->Buffer(size));
      bindings[i] = {buffers.back().Get(), 0, size};
      if (bound) descs[i] = {DML_BINDING_TYPE_BUFFER, &bindings[i]};
    }
    table->BindInputs(static_cast<UINT>(inputs.size()), descs.data());
    table->BindOutputs(static_cast<UINT>(output_sizes.size()), descs.data() + inputs.size());
    const DML_BUFFER_BINDING persistent = PersistentBinding(), temporary = TemporaryBinding();
    const DML_BINDING_DESC persistent_desc = {DML_BINDING_TYPE_BUFFER, &persistent};
    const DML_BINDING_DESC temporary_desc = {DML_BINDING_TYPE_BUFFER, &temporary};
    if (persistent_ != nullptr) table->BindPersistentResource(&persistent_desc);
    if (temporary_ != nullptr) table->BindTemporaryResource(&temporary_desc);
    ID3D12DescriptorHeap* heaps[] = {heap.Get()};
    machine_->list()->SetDescriptorHeaps(1, heaps);
    machine_->recorder()->RecordDispatch(machine_->list(), compiled_.Get(), table.Get());
    const auto barrier = CD3DX12_RESOURCE_BARRIER::UAV(nullptr);
    machine_->list()->ResourceBarrier(1, &barrier);
    machine_->Execute();
    std::vector<Bytes> results;
    for (size_t i = inputs.size(); i < bindings.size(); ++i) {
      results.push_back(
          buffers[i] == nullptr ? Bytes() : machine_->Download(buffers[i].Get(), bindings[i].SizeInBytes));
    }
    return results;
  }

 private:
  Machine* machine_;
  ComPtr<IDMLCompiledOperator> compiled_;
  ComPtr<ID3D12Resource> persistent_;
  ComPtr<ID3D12Resource> temporary_;
};

}  // namespace client

#endif  // ANYDML_TESTS_CLIENTS_GRAPH_MACHINE_H_
