#include "dml.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <d3d12.h>
#include <d3dx12.h>
#include <DirectML.h>
#include <anydml.h>
#include <wrl/client.h>

namespace anydml::bench {
namespace {

using Microsoft::WRL::ComPtr;

void Check(HRESULT result, const char* what) {
  if (SUCCEEDED(result)) return;
  throw std::runtime_error(std::string(what) + ": " + AnyDmlGetLastErrorMessage());
}
#define CHECK(call) Check(call, #call)

// Sets a variable of the environment, and back to what it was.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (value.empty()) return;
    const char* before = std::getenv(name);
    had_ = before != nullptr;
    if (had_) before_ = before;
    changed_ = true;
    setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() {
    if (!changed_) return;
    if (had_) {
      setenv(name_, before_.c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }

 private:
  const char* const name_;
  bool changed_ = false, had_ = false;
  std::string before_;
};

// A packed tensor.
struct Tensor {
  Tensor(const std::string& type, std::vector<UINT> tensor_sizes) : sizes(std::move(tensor_sizes)) {
    DML_TENSOR_DATA_TYPE dml_type = DML_TENSOR_DATA_TYPE_UINT32;
    uint64_t bytes = 4;
    if (type == "float32") dml_type = DML_TENSOR_DATA_TYPE_FLOAT32;
    if (type == "float16") dml_type = DML_TENSOR_DATA_TYPE_FLOAT16, bytes = 2;
    if (type == "int8") dml_type = DML_TENSOR_DATA_TYPE_INT8, bytes = 1;
    if (type == "int32") dml_type = DML_TENSOR_DATA_TYPE_INT32;
    if (type == "int64") dml_type = DML_TENSOR_DATA_TYPE_INT64, bytes = 8;
    for (UINT size : sizes) bytes *= size;
    buffer = {dml_type,
              DML_TENSOR_FLAG_NONE,
              static_cast<UINT>(sizes.size()),
              sizes.data(),
              nullptr,
              (bytes + 3) & ~uint64_t{3},
              0};
  }
  Tensor(const Tensor&) = delete;
  const std::vector<UINT> sizes;
  DML_BUFFER_TENSOR_DESC buffer;
  const DML_TENSOR_DESC desc{DML_TENSOR_TYPE_BUFFER, &buffer};
};

// Whole buffers, as the methods of a binding table take them.
struct Bindings {
  explicit Bindings(const std::vector<ComPtr<ID3D12Resource>>& resources) {
    for (const auto& resource : resources) buffers.push_back({resource.Get(), 0, resource->GetDesc().Width});
    for (const DML_BUFFER_BINDING& buffer : buffers) descs.push_back({DML_BINDING_TYPE_BUFFER, &buffer});
  }
  UINT count() const { return static_cast<UINT>(descs.size()); }
  std::vector<DML_BUFFER_BINDING> buffers;
  std::vector<DML_BINDING_DESC> descs;
};

std::vector<UINT> Padded(const std::vector<UINT>& sizes, size_t rank) {
  std::vector<UINT> padded(rank - std::min(rank, sizes.size()), 1);
  padded.insert(padded.end(), sizes.begin(), sizes.end());
  return padded;
}

}  // namespace

struct DmlRun::State {
  ComPtr<ID3D12Device> device;
  ComPtr<ID3D12CommandQueue> queue;
  ComPtr<ID3D12CommandAllocator> allocator, copy_allocator;
  ComPtr<ID3D12GraphicsCommandList> list, copy_list;
  ComPtr<ID3D12Fence> fence;
  UINT64 fence_value = 0;
  ComPtr<IDMLDevice> dml;
  ComPtr<IDMLCommandRecorder> recorder;
  ComPtr<IDMLCompiledOperator> compiled;
  ComPtr<ID3D12Resource> persistent;
  std::vector<ComPtr<ID3D12Resource>> inputs, outputs;
  std::vector<std::vector<ComPtr<ID3D12Resource>>> more_inputs, more_outputs;  // copies
  ComPtr<ID3D12QueryHeap> timestamps;
  ComPtr<ID3D12Resource> read_timestamps;
  ComPtr<ID3D12GraphicsCommandList> timed_list;
  std::vector<uint64_t> output_bytes;
  std::vector<ComPtr<IUnknown>> keep_alive;
  std::string implementation;

  State() {
    constexpr D3D12_COMMAND_LIST_TYPE kType = D3D12_COMMAND_LIST_TYPE_COMPUTE;
    const D3D12_COMMAND_QUEUE_DESC desc{kType, 0, D3D12_COMMAND_QUEUE_FLAG_NONE, 0};
    CHECK(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device)));
    CHECK(device->CreateCommandQueue(&desc, IID_PPV_ARGS(&queue)));
    CHECK(device->CreateCommandAllocator(kType, IID_PPV_ARGS(&allocator)));
    CHECK(device->CreateCommandAllocator(kType, IID_PPV_ARGS(&copy_allocator)));
    CHECK(device->CreateCommandList(0, kType, allocator.Get(), nullptr, IID_PPV_ARGS(&list)));
    CHECK(device->CreateCommandList(0, kType, copy_allocator.Get(), nullptr, IID_PPV_ARGS(&copy_list)));
    CHECK(device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)));
    CHECK(DMLCreateDevice(device.Get(), DML_CREATE_DEVICE_FLAG_NONE, IID_PPV_ARGS(&dml)));
    CHECK(dml->CreateCommandRecorder(IID_PPV_ARGS(&recorder)));
  }

  void Execute(ID3D12CommandList* what) {
    ID3D12CommandList* lists[] = {what};
    queue->ExecuteCommandLists(1, lists);
    CHECK(queue->Signal(fence.Get(), ++fence_value));
    CHECK(fence->SetEventOnCompletion(fence_value, nullptr));  // without an event it waits
  }

  void ExecuteCopies() {
    CHECK(copy_list->Close());
    Execute(copy_list.Get());
    CHECK(device->GetDeviceRemovedReason());
    CHECK(dml->GetDeviceRemovedReason());
    CHECK(copy_allocator->Reset());
    CHECK(copy_list->Reset(copy_allocator.Get(), nullptr));
  }

  ComPtr<ID3D12Resource> CreateBuffer(uint64_t bytes, D3D12_HEAP_TYPE heap = D3D12_HEAP_TYPE_DEFAULT) {
    const CD3DX12_HEAP_PROPERTIES properties(heap);
    auto desc = CD3DX12_RESOURCE_DESC::Buffer((bytes + 3) & ~uint64_t{3});
    D3D12_RESOURCE_STATES state = D3D12_RESOURCE_STATE_COMMON;
    if (heap == D3D12_HEAP_TYPE_DEFAULT) desc.Flags = D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS;
    if (heap == D3D12_HEAP_TYPE_UPLOAD) state = D3D12_RESOURCE_STATE_GENERIC_READ;
    if (heap == D3D12_HEAP_TYPE_READBACK) state = D3D12_RESOURCE_STATE_COPY_DEST;
    ComPtr<ID3D12Resource> buffer;
    CHECK(device->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &desc, state, nullptr,
                                          IID_PPV_ARGS(&buffer)));
    return buffer;
  }

  void Upload(const Bytes& bytes) {
    const auto staging = CreateBuffer(bytes.size(), D3D12_HEAP_TYPE_UPLOAD);
    void* mapped = nullptr;
    CHECK(staging->Map(0, nullptr, &mapped));
    std::memcpy(mapped, bytes.data(), bytes.size());
    staging->Unmap(0, nullptr);
    inputs.push_back(CreateBuffer(bytes.size()));
    copy_list->CopyBufferRegion(inputs.back().Get(), 0, staging.Get(), 0, bytes.size());
    ExecuteCopies();
  }

  Bytes ReadBack(ID3D12Resource* buffer, uint64_t bytes) {
    const auto staging = CreateBuffer(bytes, D3D12_HEAP_TYPE_READBACK);
    copy_list->CopyBufferRegion(staging.Get(), 0, buffer, 0, bytes);
    ExecuteCopies();
    Bytes result(bytes);
    void* mapped = nullptr;
    CHECK(staging->Map(0, nullptr, &mapped));
    std::memcpy(result.data(), mapped, bytes);
    staging->Unmap(0, nullptr);
    return result;
  }

  ComPtr<IDMLBindingTable> CreateTable(IDMLDispatchable* what, ID3D12GraphicsCommandList* target) {
    const DML_BINDING_PROPERTIES needs = what->GetBindingProperties();
    const D3D12_DESCRIPTOR_HEAP_DESC desc{D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV,
                                          std::max(1u, needs.RequiredDescriptorCount),
                                          D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE, 0};
    ComPtr<ID3D12DescriptorHeap> heap;
    CHECK(device->CreateDescriptorHeap(&desc, IID_PPV_ARGS(&heap)));
    const DML_BINDING_TABLE_DESC table_desc{what, heap->GetCPUDescriptorHandleForHeapStart(),
                                            heap->GetGPUDescriptorHandleForHeapStart(), desc.NumDescriptors};
    ComPtr<IDMLBindingTable> table;
    CHECK(dml->CreateBindingTable(&table_desc, IID_PPV_ARGS(&table)));
    if (needs.TemporaryResourceSize > 0) {
      const auto scratch = CreateBuffer(needs.TemporaryResourceSize);
      table->BindTemporaryResource(Bindings({scratch}).descs.data());
      keep_alive.push_back(scratch);
    }
    target->SetDescriptorHeaps(1, heap.GetAddressOf());
    keep_alive.push_back(heap);
    keep_alive.push_back(table);
    return table;
  }

  void Compile(const DML_OPERATOR_DESC& desc) {
    ComPtr<IDMLOperator> op;
    CHECK(dml->CreateOperator(&desc, IID_PPV_ARGS(&op)));
    CHECK(dml->CompileOperator(op.Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)));
    implementation = AnyDmlGetImplementation(compiled.Get());
    ComPtr<IDMLOperatorInitializer> initializer;
    CHECK(dml->CreateOperatorInitializer(1, compiled.GetAddressOf(), IID_PPV_ARGS(&initializer)));
    const auto table = CreateTable(initializer.Get(), copy_list.Get());
    if (const uint64_t bytes = compiled->GetBindingProperties().PersistentResourceSize; bytes > 0) {
      persistent = CreateBuffer(bytes);
      table->BindOutputs(1, Bindings({persistent}).descs.data());
    }
    recorder->RecordDispatch(copy_list.Get(), initializer.Get(), table.Get());
    ExecuteCopies();
  }

  ComPtr<IDMLBindingTable> Bind(ID3D12GraphicsCommandList* target,
                                const std::vector<ComPtr<ID3D12Resource>>& from,
                                const std::vector<ComPtr<ID3D12Resource>>& to) {
    auto table = CreateTable(compiled.Get(), target);
    const Bindings bound_inputs(from), bound_outputs(to);
    table->BindInputs(bound_inputs.count(), bound_inputs.descs.data());
    table->BindOutputs(bound_outputs.count(), bound_outputs.descs.data());
    if (persistent) table->BindPersistentResource(Bindings({persistent}).descs.data());
    return table;
  }

  // One more set of buffers, with the same contents.
  void AddCopy() {
    auto& from = more_inputs.emplace_back();
    for (const auto& input : inputs) {
      from.push_back(CreateBuffer(input->GetDesc().Width));
      copy_list->CopyResource(from.back().Get(), input.Get());
    }
    auto& to = more_outputs.emplace_back();
    for (size_t i = 0; i < outputs.size(); ++i) {
      to.push_back(outputs[i] == inputs[0] ? from[0] : CreateBuffer(outputs[i]->GetDesc().Width));
    }
  }

  // Begins `timed_list`, whose EndTimed writes how long it took.
  void BeginTimed() {
    constexpr D3D12_COMMAND_LIST_TYPE kType = D3D12_COMMAND_LIST_TYPE_COMPUTE;
    const D3D12_QUERY_HEAP_DESC desc{D3D12_QUERY_HEAP_TYPE_TIMESTAMP, 2, 0};
    ComPtr<ID3D12CommandAllocator> timed_allocator;
    CHECK(device->CreateQueryHeap(&desc, IID_PPV_ARGS(&timestamps)));
    CHECK(device->CreateCommandAllocator(kType, IID_PPV_ARGS(&timed_allocator)));
    CHECK(device->CreateCommandList(0, kType, timed_allocator.Get(), nullptr, IID_PPV_ARGS(&timed_list)));
    keep_alive.push_back(timed_allocator);
    read_timestamps = CreateBuffer(2 * sizeof(uint64_t), D3D12_HEAP_TYPE_READBACK);
    timed_list->EndQuery(timestamps.Get(), D3D12_QUERY_TYPE_TIMESTAMP, 0);
  }

  void EndTimed() {
    timed_list->EndQuery(timestamps.Get(), D3D12_QUERY_TYPE_TIMESTAMP, 1);
    timed_list->ResolveQueryData(timestamps.Get(), D3D12_QUERY_TYPE_TIMESTAMP, 0, 2, read_timestamps.Get(),
                                 0);
    CHECK(timed_list->Close());
  }

  // Milliseconds of the list, `count` times after `warm` others.
  std::vector<double> ExecuteTimed(uint32_t count, uint32_t warm) {
    UINT64 frequency = 0;
    CHECK(queue->GetTimestampFrequency(&frequency));
    void* mapped = nullptr;
    CHECK(read_timestamps->Map(0, nullptr, &mapped));
    const auto* const times = static_cast<const uint64_t*>(mapped);
    std::vector<double> durations;
    for (uint32_t i = 0; i < warm + count; ++i) {
      Execute(timed_list.Get());
      if (i >= warm) durations.push_back(1e3 * static_cast<double>(times[1] - times[0]) / frequency);
    }
    read_timestamps->Unmap(0, nullptr);
    CHECK(device->GetDeviceRemovedReason());
    return durations;
  }

  void Record(uint32_t dispatches) {
    const auto table = Bind(list.Get(), inputs, outputs);
    const auto barrier = CD3DX12_RESOURCE_BARRIER::UAV(nullptr);
    for (uint32_t i = 0; i < dispatches; ++i) {
      // They write the same buffer, which Direct3D allows only with a barrier in between.
      if (i > 0) list->ResourceBarrier(1, &barrier);
      recorder->RecordDispatch(list.Get(), compiled.Get(), table.Get());
    }
    CHECK(list->Close());
  }
};

DmlRun::DmlRun(const Case& c, const Inputs& inputs, const std::string& implementation, uint32_t copies)
    : state_(std::make_unique<State>()) {
  State& s = *state_;
  const ScopedVariable force("ANYDML_IMPLEMENTATION", implementation);
  s.Upload(inputs.input);
  if (c.op == "topk") {
    std::vector<UINT> result_sizes = c.sizes;
    result_sizes[c.axis] = c.k;
    const Tensor input(c.type, c.sizes), values(c.type, result_sizes), indices("uint32", result_sizes);
    const DML_TOP_K1_OPERATOR_DESC desc{&input.desc, &values.desc, &indices.desc,
                                        c.axis,      c.k,          DML_AXIS_DIRECTION_DECREASING};
    s.Compile({DML_OPERATOR_TOP_K1, &desc});
    const uint64_t count = c.elements() / c.sizes[c.axis] * c.k;
    s.output_bytes = {count * c.element_bytes(), count * sizeof(uint32_t)};
  } else {
    s.Upload(inputs.indices);
    s.Upload(inputs.updates);
    // All tensors have one rank; the dimensions in front are 1.
    const size_t rank = std::max(c.sizes.size(), size_t{2});
    std::vector<UINT> update_sizes(c.sizes.begin() + c.tuple_size, c.sizes.end());
    update_sizes.insert(update_sizes.begin(), c.tuples);
    const Tensor input(c.type, Padded(c.sizes, rank)),
        indices("uint32", Padded({c.tuples, c.tuple_size}, rank)),
        updates(c.type, Padded(update_sizes, rank)), output(c.type, Padded(c.sizes, rank));
    const DML_SCATTER_ND_OPERATOR_DESC desc{
        &input.desc, &indices.desc, &updates.desc, &output.desc, static_cast<UINT>(c.sizes.size()), 2};
    s.Compile({DML_OPERATOR_SCATTER_ND, &desc});
    s.output_bytes = {c.elements() * c.element_bytes()};
  }
  for (uint64_t bytes : s.output_bytes) {
    s.outputs.push_back(c.in_place ? s.inputs[0] : s.CreateBuffer(bytes));
  }
  s.Record(c.dispatches);
  for (uint32_t i = 1; i < copies; ++i) s.AddCopy();
  s.ExecuteCopies();
}

DmlRun::~DmlRun() = default;

std::vector<double> DmlRun::TimeOnDevice(uint32_t count, uint32_t warm) {
  State& s = *state_;
  if (!s.timed_list) {
    s.BeginTimed();
    const auto dispatch = [&s](const auto& from, const auto& to) {
      const auto table = s.Bind(s.timed_list.Get(), from, to);
      s.recorder->RecordDispatch(s.timed_list.Get(), s.compiled.Get(), table.Get());
    };
    dispatch(s.inputs, s.outputs);
    for (size_t i = 0; i < s.more_inputs.size(); ++i) dispatch(s.more_inputs[i], s.more_outputs[i]);
    s.EndTimed();
  }
  std::vector<double> times = s.ExecuteTimed(count, warm);
  for (double& time : times) time /= static_cast<double>(1 + s.more_inputs.size());
  return times;
}

void DmlRun::Run() { state_->Execute(state_->list.Get()); }

std::vector<Bytes> DmlRun::ReadOutputs() {
  std::vector<Bytes> outputs;
  for (size_t i = 0; i < state_->outputs.size(); ++i) {
    outputs.push_back(state_->ReadBack(state_->outputs[i].Get(), state_->output_bytes[i]));
  }
  return outputs;
}

const std::string& DmlRun::implementation() const { return state_->implementation; }

double CopyBandwidth() {
  constexpr uint64_t kBytes = uint64_t{1} << 30;
  constexpr int kCopies = 4;
  DmlRun::State s;
  const auto from = s.CreateBuffer(kBytes), to = s.CreateBuffer(kBytes);
  s.BeginTimed();
  for (int i = 0; i < kCopies; ++i) s.timed_list->CopyResource(to.Get(), from.Get());
  s.EndTimed();
  std::vector<double> times = s.ExecuteTimed(25, 5);
  std::nth_element(times.begin(), times.begin() + 12, times.end());
  return 2.0 * kBytes * kCopies / times[12];
}

}  // namespace anydml::bench
