// A device with its queue, for clients. Longer than most files: one class, of which session_lists.cc already
// has what concerns recorded lists.
#include "client/session.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include <anydml.h>

namespace anydml::client {
namespace {

constexpr D3D12_RESOURCE_STATES kUnorderedAccess = D3D12_RESOURCE_STATE_UNORDERED_ACCESS;
// Large tensors are copied in parts of this size; otherwise staging buffers would take as much memory as the
// tensors.
constexpr uint64_t kStagingBytes = uint64_t{8} << 20;
constexpr uint64_t kMaxStagedBytes = 8 * kStagingBytes;  // then the copies are executed
constexpr uint32_t kHeapDescriptors = 256;

DML_BINDING_DESC BufferBinding(const DML_BUFFER_BINDING& binding) {
  if (binding.Buffer == nullptr) return {DML_BINDING_TYPE_NONE, nullptr};
  return {DML_BINDING_TYPE_BUFFER, &binding};
}

// The descriptions point into `bindings`, which must outlive them.
std::vector<DML_BINDING_DESC> BindingDescs(std::span<const DML_BUFFER_BINDING> bindings) {
  std::vector<DML_BINDING_DESC> descs;
  for (const DML_BUFFER_BINDING& binding : bindings) descs.push_back(BufferBinding(binding));
  return descs;
}

}  // namespace

Status Session::Create(const SessionOptions& options, std::unique_ptr<Session>* out) {
  std::unique_ptr<Session> session(new Session);
  ANYDML_RETURN_IF_ERROR(session->CreateDevices(options));
  ANYDML_RETURN_IF_ERROR(session->CreateQueue());
  ANYDML_RETURN_IF_ERROR(session->QueryFeatureLevel());
  *out = std::move(session);
  return {};
}

Status Session::CreateDevices(const SessionOptions& options) {
  // The library reads it when the devices are created.
  if (!options.feature_level.empty()) setenv("ANYDML_FEATURE_LEVEL", options.feature_level.c_str(), 1);
  if (!options.implementation.empty()) setenv("ANYDML_IMPLEMENTATION", options.implementation.c_str(), 1);

  // Both debug layers: Direct3D's for the message queue, which the tool reads and prints itself; DirectML's
  // for reports of errors in data (an index out of range).
  ComPtr<ID3D12Debug4> debug;
  ANYDML_RETURN_IF_ERROR(Check(D3D12GetDebugInterface(IID_PPV_ARGS(&debug)), "asking for the debug layer"));
  debug_ = options.debug;
  options.debug ? debug->EnableDebugLayer() : debug->DisableDebugLayer();
  ANYDML_RETURN_IF_ERROR(ChooseAdapter(options.adapter, &adapter_));
  ANYDML_RETURN_IF_ERROR(
      Check(D3D12CreateDevice(adapter_.adapter.Get(), D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device_)),
            "creating the Direct3D 12 device"));
  ANYDML_RETURN_IF_ERROR(Check(device_.As(&messages_), "asking for the message queue"));
  messages_->SetMuteDebugOutput(TRUE);
  const auto flags = options.debug ? DML_CREATE_DEVICE_FLAG_DEBUG : DML_CREATE_DEVICE_FLAG_NONE;
  return Check(DMLCreateDevice(device_.Get(), flags, IID_PPV_ARGS(&dml_)), "creating the DirectML device");
}

Status Session::CreateQueue() {
  D3D12_COMMAND_QUEUE_DESC desc{};
  desc.Type = D3D12_COMMAND_LIST_TYPE_COMPUTE;
  ANYDML_RETURN_IF_ERROR(
      Check(device_->CreateCommandQueue(&desc, IID_PPV_ARGS(&queue_)), "creating the command queue"));
  ANYDML_RETURN_IF_ERROR(CreateList());
  ANYDML_RETURN_IF_ERROR(
      Check(device_->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence_)), "creating the fence"));
  return Check(dml_->CreateCommandRecorder(IID_PPV_ARGS(&recorder_)), "creating the command recorder");
}

Status Session::CreateList() {
  constexpr D3D12_COMMAND_LIST_TYPE kType = D3D12_COMMAND_LIST_TYPE_COMPUTE;
  ANYDML_RETURN_IF_ERROR(
      Check(device_->CreateCommandAllocator(kType, IID_PPV_ARGS(allocator_.ReleaseAndGetAddressOf())),
            "creating the command allocator"));
  return Check(device_->CreateCommandList(0, kType, allocator_.Get(), nullptr,
                                          IID_PPV_ARGS(list_.ReleaseAndGetAddressOf())),
               "creating the command list");
}

Status Session::QueryFeatureLevel() {
  constexpr DML_FEATURE_LEVEL kLevels[] = {
      DML_FEATURE_LEVEL_1_0, DML_FEATURE_LEVEL_2_0, DML_FEATURE_LEVEL_2_1, DML_FEATURE_LEVEL_3_0,
      DML_FEATURE_LEVEL_3_1, DML_FEATURE_LEVEL_4_0, DML_FEATURE_LEVEL_4_1, DML_FEATURE_LEVEL_5_0,
      DML_FEATURE_LEVEL_5_1, DML_FEATURE_LEVEL_5_2, DML_FEATURE_LEVEL_6_0, DML_FEATURE_LEVEL_6_1,
      DML_FEATURE_LEVEL_6_2, DML_FEATURE_LEVEL_6_3, DML_FEATURE_LEVEL_6_4};
  const DML_FEATURE_QUERY_FEATURE_LEVELS query{static_cast<UINT>(std::size(kLevels)), kLevels};
  DML_FEATURE_DATA_FEATURE_LEVELS data{};
  ANYDML_RETURN_IF_ERROR(
      Check(dml_->CheckFeatureSupport(DML_FEATURE_FEATURE_LEVELS, sizeof(query), &query, sizeof(data), &data),
            "asking for the feature level"));
  feature_level_ = data.MaxSupportedFeatureLevel;
  return {};
}

namespace {

// Whether one of them was removed since memory ran out: what fails then failed for that.
bool RemovedForMemory(IDMLDevice* dml, ID3D12Device* d3d) {
  return (dml != nullptr && dml->GetDeviceRemovedReason() == E_OUTOFMEMORY) ||
         (d3d != nullptr && d3d->GetDeviceRemovedReason() == E_OUTOFMEMORY);
}

}  // namespace

Status Session::Check(HRESULT result, const char* what) {
  if (SUCCEEDED(result)) return {};
  std::string sentence = AnyDmlGetLastErrorMessage();
  if (sentence.empty()) sentence = TakeMessages();
  if (sentence.empty()) {
    sentence = StrCat(what, " failed with HRESULT 0x", std::hex, static_cast<uint32_t>(result));
  }
  if (result == DXGI_ERROR_DEVICE_REMOVED && RemovedForMemory(dml_.Get(), device_.Get()))
    result = E_OUTOFMEMORY;
  return Status(static_cast<Code>(static_cast<uint32_t>(result)), sentence);
}

// The first stored error; clears the others, which follow from it.
std::string Session::TakeMessages() {
  std::string first;
  if (!messages_) return first;  // the device could not be created
  const uint64_t count = messages_->GetNumStoredMessages();
  for (uint64_t i = 0; i < count && first.empty(); ++i) {
    SIZE_T bytes = 0;
    if (FAILED(messages_->GetMessage(i, nullptr, &bytes)) || bytes < sizeof(D3D12_MESSAGE)) continue;
    // Words, so that the structure is aligned.
    std::vector<uint64_t> storage(bytes / sizeof(uint64_t) + 1);
    auto* message = reinterpret_cast<D3D12_MESSAGE*>(storage.data());
    if (FAILED(messages_->GetMessage(i, message, &bytes))) continue;
    if (message->Severity <= D3D12_MESSAGE_SEVERITY_ERROR) first = message->pDescription;
  }
  messages_->ClearStoredMessages();
  return first;
}

Status Session::CreateBuffer(D3D12_HEAP_TYPE heap, D3D12_RESOURCE_STATES state, uint64_t bytes,
                             ComPtr<ID3D12Resource>* out) {
  D3D12_HEAP_PROPERTIES properties{};
  properties.Type = heap;
  D3D12_RESOURCE_DESC desc{};
  desc.Dimension = D3D12_RESOURCE_DIMENSION_BUFFER;
  desc.Width = bytes;
  desc.Height = desc.DepthOrArraySize = desc.MipLevels = desc.SampleDesc.Count = 1;
  desc.Layout = D3D12_TEXTURE_LAYOUT_ROW_MAJOR;
  if (heap == D3D12_HEAP_TYPE_DEFAULT) desc.Flags = D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS;
  ANYDML_RETURN_IF_ERROR(
      Check(device_->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &desc, state, nullptr,
                                             IID_PPV_ARGS(out->ReleaseAndGetAddressOf())),
            "creating a buffer"));
  keep_alive_.emplace_back(*out);
  return {};
}

void Session::Transition(ID3D12Resource* resource, D3D12_RESOURCE_STATES before,
                         D3D12_RESOURCE_STATES after) {
  D3D12_RESOURCE_BARRIER barrier{};
  barrier.Type = D3D12_RESOURCE_BARRIER_TYPE_TRANSITION;
  barrier.Transition.pResource = resource;
  barrier.Transition.Subresource = D3D12_RESOURCE_BARRIER_ALL_SUBRESOURCES;
  barrier.Transition.StateBefore = before;
  barrier.Transition.StateAfter = after;
  list_->ResourceBarrier(1, &barrier);
}

Status Session::Upload(std::span<const std::byte> bytes, ComPtr<ID3D12Resource>* out) {
  ComPtr<ID3D12Resource> staging;
  const uint64_t part_bytes = std::min<uint64_t>(bytes.size(), kStagingBytes);
  ANYDML_RETURN_IF_ERROR(
      CreateBuffer(D3D12_HEAP_TYPE_UPLOAD, D3D12_RESOURCE_STATE_GENERIC_READ, part_bytes, &staging));
  ANYDML_RETURN_IF_ERROR(
      CreateBuffer(D3D12_HEAP_TYPE_DEFAULT, D3D12_RESOURCE_STATE_COPY_DEST, bytes.size(), out));
  for (uint64_t done = 0; done < bytes.size(); done += part_bytes) {
    if (done > 0) ANYDML_RETURN_IF_ERROR(SubmitAndWait());  // afterwards the staging buffer is free again
    const std::span<const std::byte> part = bytes.subspan(done, std::min(part_bytes, bytes.size() - done));
    void* mapped = nullptr;
    const D3D12_RANGE nothing_read{};
    ANYDML_RETURN_IF_ERROR(Check(staging->Map(0, &nothing_read, &mapped), "mapping an upload buffer"));
    std::memcpy(mapped, part.data(), part.size());
    staging->Unmap(0, nullptr);
    list_->CopyBufferRegion(out->Get(), done, staging.Get(), 0, part.size());
  }
  Transition(out->Get(), D3D12_RESOURCE_STATE_COPY_DEST, kUnorderedAccess);
  keep_alive_.emplace_back(staging);
  keep_alive_.emplace_back(*out);
  staged_bytes_ += part_bytes;
  return staged_bytes_ < kMaxStagedBytes ? Status() : SubmitAndWait();
}

Status Session::Copy(ID3D12Resource* from, uint64_t offset, uint64_t bytes, ComPtr<ID3D12Resource>* out) {
  ANYDML_RETURN_IF_ERROR(CreateBuffer(D3D12_HEAP_TYPE_DEFAULT, D3D12_RESOURCE_STATE_COPY_DEST, bytes, out));
  list_->CopyBufferRegion(out->Get(), 0, from, offset, bytes);
  Transition(out->Get(), D3D12_RESOURCE_STATE_COPY_DEST, kUnorderedAccess);
  return {};
}

Status Session::Allocate(uint64_t bytes, ComPtr<ID3D12Resource>* out) {
  return CreateBuffer(D3D12_HEAP_TYPE_DEFAULT, kUnorderedAccess, bytes, out);
}

Status Session::Wrap(void* memory, uint64_t bytes, ComPtr<ID3D12Resource>* out) {
  ANYDML_RETURN_IF_ERROR(Check(AnyDmlCreateBufferFromMemory(device_.Get(), memory, bytes, nullptr, nullptr,
                                                            out->ReleaseAndGetAddressOf()),
                               "creating a buffer over memory"));
  keep_alive_.emplace_back(*out);
  return {};
}

// Makes room for this many in the heap, or in a new one. Those of executed commands are free again.
Status Session::ReserveDescriptors(uint32_t count) {
  if (heap_ && heap_->GetDesc().NumDescriptors - used_descriptors_ >= count) return {};
  if (heap_) keep_alive_.emplace_back(std::move(heap_));
  used_descriptors_ = 0;
  D3D12_DESCRIPTOR_HEAP_DESC desc{};
  desc.Type = D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV;
  desc.NumDescriptors = std::max(kHeapDescriptors, count);
  desc.Flags = D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE;
  return Check(device_->CreateDescriptorHeap(&desc, IID_PPV_ARGS(&heap_)), "creating the descriptor heap");
}

// Each dispatch of a list has its own descriptors: none is overwritten before execution.
Status Session::CreateTable(IDMLDispatchable* dispatchable, ComPtr<IDMLBindingTable>* table) {
  const uint32_t count = std::max(1u, dispatchable->GetBindingProperties().RequiredDescriptorCount);
  ANYDML_RETURN_IF_ERROR(ReserveDescriptors(count));
  ID3D12DescriptorHeap* heaps[] = {heap_.Get()};
  list_->SetDescriptorHeaps(1, heaps);
  const uint64_t offset = uint64_t{used_descriptors_} *
                          device_->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
  used_descriptors_ += count;

  DML_BINDING_TABLE_DESC desc{};
  desc.Dispatchable = dispatchable;
  desc.CPUDescriptorHandle = {heap_->GetCPUDescriptorHandleForHeapStart().ptr + offset};
  desc.GPUDescriptorHandle = {heap_->GetGPUDescriptorHandleForHeapStart().ptr + offset};
  desc.SizeInDescriptors = count;
  return Check(dml_->CreateBindingTable(&desc, IID_PPV_ARGS(table->ReleaseAndGetAddressOf())),
               "creating the binding table");
}

Status Session::BindTemporary(IDMLDispatchable* dispatchable, ID3D12Resource* shared,
                              IDMLBindingTable* table) {
  const uint64_t bytes = dispatchable->GetBindingProperties().TemporaryResourceSize;
  if (bytes == 0) return {};
  ComPtr<ID3D12Resource> buffer(shared);
  if (!buffer) ANYDML_RETURN_IF_ERROR(Allocate(bytes, &buffer));
  const DML_BUFFER_BINDING binding{buffer.Get(), 0, bytes};
  const DML_BINDING_DESC desc = BufferBinding(binding);
  table->BindTemporaryResource(&desc);
  return {};
}

Status Session::Initialize(std::span<const DML_BUFFER_BINDING> owned, CompiledOperator* op) {
  ComPtr<IDMLOperatorInitializer> initializer;
  IDMLCompiledOperator* operators[] = {op->compiled.Get()};
  ANYDML_RETURN_IF_ERROR(Check(dml_->CreateOperatorInitializer(1, operators, IID_PPV_ARGS(&initializer)),
                               "creating the operator initializer"));
  keep_alive_.emplace_back(op->compiled);
  keep_alive_.emplace_back(initializer);
  ComPtr<IDMLBindingTable> table;
  ANYDML_RETURN_IF_ERROR(CreateTable(initializer.Get(), &table));
  ANYDML_RETURN_IF_ERROR(BindTemporary(initializer.Get(), nullptr, table.Get()));
  if (!owned.empty()) {
    const DML_BUFFER_ARRAY_BINDING array{static_cast<UINT>(owned.size()), owned.data()};
    const DML_BINDING_DESC desc{DML_BINDING_TYPE_BUFFER_ARRAY, &array};
    table->BindInputs(1, &desc);
  }
  if (const uint64_t bytes = op->compiled->GetBindingProperties().PersistentResourceSize; bytes > 0) {
    ANYDML_RETURN_IF_ERROR(Allocate(bytes, &op->persistent));
    const DML_BUFFER_BINDING binding{op->persistent.Get(), 0, bytes};
    const DML_BINDING_DESC desc = BufferBinding(binding);
    table->BindOutputs(1, &desc);
  }
  recorder_->RecordDispatch(list_.Get(), initializer.Get(), table.Get());
  RecordBarrier();
  return {};
}

Status Session::Compile(const DML_OPERATOR_DESC& desc, DML_EXECUTION_FLAGS flags,
                        std::span<const DML_BUFFER_BINDING> owned, CompiledOperator* out) {
  ComPtr<IDMLOperator> op;
  ANYDML_RETURN_IF_ERROR(CreateOperator(desc, &op));
  ANYDML_RETURN_IF_ERROR(
      Check(dml_->CompileOperator(op.Get(), flags, IID_PPV_ARGS(&out->compiled)), "compiling the operator"));
  out->explanation = AnyDmlExplainImplementation(out->compiled.Get());
  return Initialize(owned, out);
}

Status Session::CompileAsGraph(const DML_OPERATOR_DESC& desc, const std::vector<bool>& inputs,
                               const std::vector<bool>& outputs, DML_EXECUTION_FLAGS flags,
                               std::span<const DML_BUFFER_BINDING> owned, CompiledOperator* out) {
  GraphPlan plan;
  plan.input_count = static_cast<UINT>(inputs.size());
  plan.output_count = static_cast<UINT>(outputs.size());
  plan.nodes = {{&desc, nullptr}};
  for (UINT i = 0; i < inputs.size(); ++i) {
    if (inputs[i]) plan.input_edges.push_back({i, 0, i, nullptr});
  }
  for (UINT i = 0; i < outputs.size(); ++i) {
    if (outputs[i]) plan.output_edges.push_back({0, i, i, nullptr});
  }
  ANYDML_RETURN_IF_ERROR(CompileGraph(plan, flags, out));
  return Initialize(owned, out);
}

Status Session::CompileGraph(const GraphPlan& plan, DML_EXECUTION_FLAGS flags, CompiledOperator* out) {
  std::vector<ComPtr<IDMLOperator>> operators(plan.nodes.size());
  std::vector<DML_OPERATOR_GRAPH_NODE_DESC> node_descs;
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    ANYDML_RETURN_IF_ERROR(CreateOperator(*plan.nodes[i].desc, &operators[i]));
    node_descs.push_back({operators[i].Get(), plan.nodes[i].name});
  }
  std::vector<DML_GRAPH_NODE_DESC> nodes;
  for (const auto& node : node_descs) nodes.push_back({DML_GRAPH_NODE_TYPE_OPERATOR, &node});
  const auto describe = [](DML_GRAPH_EDGE_TYPE type, const auto& edges) {
    std::vector<DML_GRAPH_EDGE_DESC> descs;
    for (const auto& edge : edges) descs.push_back({type, &edge});
    return descs;
  };
  const auto inputs = describe(DML_GRAPH_EDGE_TYPE_INPUT, plan.input_edges);
  const auto outputs = describe(DML_GRAPH_EDGE_TYPE_OUTPUT, plan.output_edges);
  const auto intermediates = describe(DML_GRAPH_EDGE_TYPE_INTERMEDIATE, plan.intermediate_edges);
  const DML_GRAPH_DESC graph{plan.input_count,
                             plan.output_count,
                             static_cast<UINT>(nodes.size()),
                             nodes.data(),
                             static_cast<UINT>(inputs.size()),
                             inputs.data(),
                             static_cast<UINT>(outputs.size()),
                             outputs.data(),
                             static_cast<UINT>(intermediates.size()),
                             intermediates.data()};
  return CompileGraph(graph, flags, out);
}

Status Session::CreateOperator(const DML_OPERATOR_DESC& desc, ComPtr<IDMLOperator>* out) {
  return Check(dml_->CreateOperator(&desc, IID_PPV_ARGS(out->ReleaseAndGetAddressOf())),
               "creating the operator");
}

Status Session::CompileGraph(const DML_GRAPH_DESC& graph, DML_EXECUTION_FLAGS flags, CompiledOperator* out) {
  ComPtr<IDMLDevice1> device;
  ANYDML_RETURN_IF_ERROR(Check(dml_.As(&device), "asking for IDMLDevice1"));
  ANYDML_RETURN_IF_ERROR(
      Check(device->CompileGraph(&graph, flags, IID_PPV_ARGS(&out->compiled)), "compiling the graph"));
  out->explanation = AnyDmlExplainImplementation(out->compiled.Get());
  return {};
}

Status Session::Record(const CompiledOperator& op, std::span<const DML_BUFFER_BINDING> inputs,
                       std::span<const DML_BUFFER_BINDING> outputs, ID3D12Resource* temporary) {
  ComPtr<IDMLBindingTable> table;
  ANYDML_RETURN_IF_ERROR(CreateTable(op.compiled.Get(), &table));
  ANYDML_RETURN_IF_ERROR(BindTemporary(op.compiled.Get(), temporary, table.Get()));
  if (op.persistent) {
    const DML_BUFFER_BINDING binding{op.persistent.Get(), 0, op.persistent->GetDesc().Width};
    const DML_BINDING_DESC persistent_desc = BufferBinding(binding);
    table->BindPersistentResource(&persistent_desc);
  }
  const std::vector<DML_BINDING_DESC> input_descs = BindingDescs(inputs);
  const std::vector<DML_BINDING_DESC> output_descs = BindingDescs(outputs);
  table->BindInputs(static_cast<UINT>(input_descs.size()), input_descs.data());
  table->BindOutputs(static_cast<UINT>(output_descs.size()), output_descs.data());
  recorder_->RecordDispatch(list_.Get(), op.compiled.Get(), table.Get());
  return {};
}

Status Session::Execute(std::string* data_error) {
  ANYDML_RETURN_IF_ERROR(SubmitAndWait());
  *data_error = TakeMessages();
  return {};
}

Status Session::Run(const DML_OPERATOR_DESC& desc, std::vector<HostBuffer> inputs,
                    std::span<const uint64_t> output_sizes, RunResult* result) {
  CompiledOperator op;
  ANYDML_RETURN_IF_ERROR(Compile(desc, DML_EXECUTION_FLAG_NONE, {}, &op));
  result->explanation = op.explanation;
  std::vector<DML_BUFFER_BINDING> bound_inputs(inputs.size()), bound_outputs(output_sizes.size());
  std::vector<ComPtr<ID3D12Resource>> uploaded(inputs.size()), outputs(output_sizes.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].empty()) continue;
    ANYDML_RETURN_IF_ERROR(Upload(inputs[i], &uploaded[i]));
    bound_inputs[i] = {uploaded[i].Get(), 0, inputs[i].size()};
    inputs[i] = HostBuffer();
  }
  for (size_t i = 0; i < output_sizes.size(); ++i) {
    if (output_sizes[i] == 0) continue;
    ANYDML_RETURN_IF_ERROR(Allocate(output_sizes[i], &outputs[i]));
    bound_outputs[i] = {outputs[i].Get(), 0, output_sizes[i]};
  }
  ANYDML_RETURN_IF_ERROR(Record(op, bound_inputs, bound_outputs));
  ANYDML_RETURN_IF_ERROR(Execute(&result->data_error));
  uploaded.clear();
  for (size_t i = 0; i < outputs.size(); ++i) {
    HostBuffer& bytes = result->outputs.emplace_back();
    if (outputs[i]) ANYDML_RETURN_IF_ERROR(ReadBack(outputs[i].Get(), output_sizes[i], &bytes));
    outputs[i].Reset();
  }
  return {};
}

Status Session::Read(ID3D12Resource* buffer, HostBuffer* bytes) {
  return ReadBack(buffer, buffer->GetDesc().Width, bytes);
}

Status Session::ReadBack(ID3D12Resource* buffer, uint64_t bytes, HostBuffer* out) {
  out->resize(bytes);
  ComPtr<ID3D12Resource> staging;
  const uint64_t part_bytes = std::min(bytes, kStagingBytes);
  ANYDML_RETURN_IF_ERROR(
      CreateBuffer(D3D12_HEAP_TYPE_READBACK, D3D12_RESOURCE_STATE_COPY_DEST, part_bytes, &staging));
  for (uint64_t done = 0; done < bytes; done += part_bytes) {
    const uint64_t part = std::min(part_bytes, bytes - done);
    Transition(buffer, kUnorderedAccess, D3D12_RESOURCE_STATE_COPY_SOURCE);
    list_->CopyBufferRegion(staging.Get(), 0, buffer, done, part);
    Transition(buffer, D3D12_RESOURCE_STATE_COPY_SOURCE, kUnorderedAccess);
    ANYDML_RETURN_IF_ERROR(SubmitAndWait());
    void* mapped = nullptr;
    ANYDML_RETURN_IF_ERROR(Check(staging->Map(0, nullptr, &mapped), "mapping a read-back buffer"));
    std::memcpy(out->data() + done, mapped, part);
    const D3D12_RANGE nothing_written{};
    staging->Unmap(0, &nothing_written);
  }
  return {};
}

bool Session::removed() const {
  return FAILED(dml_->GetDeviceRemovedReason()) || FAILED(device_->GetDeviceRemovedReason());
}

void Session::Discard() {
  // Executed work may not have been waited for.
  if (SUCCEEDED(queue_->Signal(fence_.Get(), ++fence_value_))) {
    fence_->SetEventOnCompletion(fence_value_, nullptr);
  }
  list_->Close();  // fails if something invalid was recorded, but closes nevertheless
  allocator_->Reset();
  list_->Reset(allocator_.Get(), nullptr);
  ForgetRecorded();
  messages_->ClearStoredMessages();
}

void Session::ForgetRecorded() {
  keep_alive_.clear();
  staged_bytes_ = 0;
  used_descriptors_ = 0;
}

Status Session::SubmitAndWait() {
  ANYDML_RETURN_IF_ERROR(Check(list_->Close(), "closing the command list"));
  ANYDML_RETURN_IF_ERROR(ExecuteAndWait(list_.Get()));
  ANYDML_RETURN_IF_ERROR(CheckDevices());
  ForgetRecorded();
  ANYDML_RETURN_IF_ERROR(Check(allocator_->Reset(), "resetting the command allocator"));
  return Check(list_->Reset(allocator_.Get(), nullptr), "resetting the command list");
}

}  // namespace anydml::client
