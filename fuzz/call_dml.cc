// The calls to DirectML.
#include <array>
#include <cstring>

#include "call_worker.h"
#include "support/tensor.h"

namespace anydml::fuzz {

IDMLDispatchable* CallWorker::AnyDispatchable(ComPtr<IDMLCompiledOperator>* keep) {
  if (source_.OneIn(3)) return Any(own_.initializers);
  *keep = Any(shared_.compiled);
  return keep->Get();
}

DML_BUFFER_BINDING CallWorker::AnyBinding(ComPtr<ID3D12Resource>* keep) {
  *keep = Any(shared_.buffers);
  DML_BUFFER_BINDING binding = {keep->Get(), 0, 0};
  if (binding.Buffer == nullptr) return binding;
  binding.Offset = source_.OneIn(8) ? source_.Byte() : 0;
  binding.SizeInBytes = source_.OneIn(8) ? Bytes() : binding.Buffer->GetDesc().Width - binding.Offset;
  return binding;
}

DML_BINDING_TABLE_DESC CallWorker::TableDesc(IDMLDispatchable* dispatchable,
                                             ComPtr<ID3D12DescriptorHeap>* keep) {
  DML_BINDING_TABLE_DESC desc = {};
  desc.Dispatchable = dispatchable;
  desc.SizeInDescriptors = dispatchable == nullptr || source_.OneIn(16)
                               ? source_.Byte()
                               : dispatchable->GetBindingProperties().RequiredDescriptorCount;
  *keep = Any(shared_.descriptors);
  if (*keep == nullptr) return desc;
  desc.CPUDescriptorHandle = (*keep)->GetCPUDescriptorHandleForHeapStart();
  desc.GPUDescriptorHandle = (*keep)->GetGPUDescriptorHandleForHeapStart();
  const uint64_t offset = source_.Byte();  // possibly between two, or beyond the end
  if (source_.OneIn(8)) desc.CPUDescriptorHandle.ptr += offset;
  if (source_.OneIn(8)) desc.GPUDescriptorHandle.ptr += offset;
  return desc;
}

void CallWorker::CreateOperator() {
  const auto dml = Place(shared_.dml).Get();
  if (dml == nullptr) return;
  const uint32_t length = source_.Between(1, 64), k = source_.OneIn(16) ? 65 : source_.Between(1, length);
  const auto flags = source_.OneIn(4) ? DML_TENSOR_FLAG_OWNED_BY_DML : DML_TENSOR_FLAG_NONE;
  const test::Tensor whole(DML_TENSOR_DATA_TYPE_FLOAT32, {1, 1, 1, length}, flags);
  const test::Tensor same(DML_TENSOR_DATA_TYPE_FLOAT32, {1, 1, 1, length});
  const test::Tensor values(DML_TENSOR_DATA_TYPE_FLOAT32, {1, 1, 1, k});
  const test::Tensor indices(DML_TENSOR_DATA_TYPE_UINT32, {1, 1, 1, k});
  const DML_TOP_K1_OPERATOR_DESC top_k = {
      whole.desc(), values.desc(), indices.desc(), 3, k, DML_AXIS_DIRECTION_INCREASING};
  const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC identity = {whole.desc(), same.desc(), nullptr};
  const DML_SCATTER_OPERATOR_DESC scatter = {same.desc(), indices.desc(), values.desc(), same.desc(), 3};
  const DML_OPERATOR_DESC descs[] = {{DML_OPERATOR_TOP_K1, &top_k},
                                     {DML_OPERATOR_ELEMENT_WISE_IDENTITY, &identity},
                                     {DML_OPERATOR_SCATTER, &scatter}};
  const DML_OPERATOR_DESC desc = source_.Any(descs);
  ComPtr<IDMLOperator> op;
  dml->CreateOperator(source_.OneIn(64) ? nullptr : &desc, IID_PPV_ARGS(&op));
  Place(shared_.operators).Set(op);
}

void CallWorker::Compile() {
  const auto dml = Place(shared_.dml).Get();
  if (dml == nullptr) return;
  const auto op = Any(shared_.operators);  // possibly of another device
  const auto flags = source_.OneIn(4) ? DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE : DML_EXECUTION_FLAG_NONE;
  ComPtr<IDMLCompiledOperator> compiled;
  dml->CompileOperator(op.Get(), flags, IID_PPV_ARGS(&compiled));
  Place(shared_.compiled).Set(compiled);
}

// Several operators in sequence, possibly with different sizes and devices, and with an edge too few or too
// many; the result is used as any compiled operator.
void CallWorker::CompileGraph() {
  const auto dml = Place(shared_.dml).Get();
  ComPtr<IDMLDevice1> dml1;
  if (dml == nullptr || FAILED(dml->QueryInterface(IID_PPV_ARGS(&dml1)))) return;
  constexpr UINT kMost = 3;
  const UINT count = source_.Between(1, kMost);
  std::array<ComPtr<IDMLOperator>, kMost> operators;
  std::array<DML_OPERATOR_GRAPH_NODE_DESC, kMost> operator_nodes = {};
  std::array<DML_GRAPH_NODE_DESC, kMost> nodes = {};
  std::array<DML_INTERMEDIATE_GRAPH_EDGE_DESC, kMost> between = {};
  std::array<DML_GRAPH_EDGE_DESC, kMost> between_edges = {};
  for (UINT i = 0; i < count; ++i) {
    operators[i] = Any(shared_.operators);
    operator_nodes[i] = {operators[i].Get(), nullptr};
    nodes[i] = {DML_GRAPH_NODE_TYPE_OPERATOR, &operator_nodes[i]};
    between[i] = {i, 0, source_.OneIn(16) ? source_.Byte() : i + 1,
                  source_.OneIn(8) ? source_.Byte() % 3u : 0, nullptr};
    between_edges[i] = {DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &between[i]};
  }
  // A scatter's additional inputs.
  std::array<DML_INPUT_GRAPH_EDGE_DESC, 3> in = {};
  std::array<DML_GRAPH_EDGE_DESC, 3> in_edges = {};
  const UINT inputs = source_.Between(1, 3);
  for (UINT i = 0; i < inputs; ++i) {
    in[i] = {i, source_.OneIn(8) ? source_.Byte() % count : 0, i, nullptr};
    in_edges[i] = {DML_GRAPH_EDGE_TYPE_INPUT, &in[i]};
  }
  const DML_OUTPUT_GRAPH_EDGE_DESC out = {count - 1, source_.OneIn(8) ? 1u : 0u, 0, nullptr};
  const DML_GRAPH_EDGE_DESC out_edge = {DML_GRAPH_EDGE_TYPE_OUTPUT, &out};
  const DML_GRAPH_DESC graph = {inputs,
                                1,
                                count,
                                nodes.data(),
                                inputs,
                                in_edges.data(),
                                1,
                                &out_edge,
                                source_.OneIn(16) ? count : count - 1,
                                between_edges.data()};
  const auto flags = source_.OneIn(4) ? DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE : DML_EXECUTION_FLAG_NONE;
  ComPtr<IDMLCompiledOperator> compiled;
  dml1->CompileGraph(source_.OneIn(64) ? nullptr : &graph, flags, IID_PPV_ARGS(&compiled));
  Place(shared_.compiled).Set(compiled);
}

void CallWorker::Initializer() {
  const ComPtr<IDMLCompiledOperator> compiled[] = {Any(shared_.compiled), Any(shared_.compiled)};
  IDMLCompiledOperator* const operators[] = {compiled[0].Get(), compiled[1].Get()};
  const UINT count = source_.OneIn(4) ? 2 : source_.OneIn(8) ? 0 : 1;
  ComPtr<IDMLOperatorInitializer>& initializer = Place(own_.initializers);
  if (initializer != nullptr && source_.OneIn(2)) {
    initializer->Reset(count, operators);
  } else if (const auto dml = Place(shared_.dml).Get()) {
    dml->CreateOperatorInitializer(count, operators, IID_PPV_ARGS(&initializer));
  }
}

void CallWorker::Table() {
  const auto dml = Place(shared_.dml).Get();
  ComPtr<IDMLCompiledOperator> keep;
  ComPtr<ID3D12DescriptorHeap> heap;
  const DML_BINDING_TABLE_DESC desc = TableDesc(AnyDispatchable(&keep), &heap);
  const DML_BINDING_TABLE_DESC* const given = source_.OneIn(16) ? nullptr : &desc;
  ComPtr<IDMLBindingTable>& table = Place(own_.tables);
  if (table != nullptr && source_.OneIn(2)) {
    table->Reset(given);
  } else if (dml != nullptr) {
    dml->CreateBindingTable(given, IID_PPV_ARGS(&table));
  }
}

void CallWorker::BindTensors() {
  IDMLBindingTable* const table = Any(own_.tables);
  if (table == nullptr) return;
  std::array<ComPtr<ID3D12Resource>, 4> keep;
  std::array<DML_BUFFER_BINDING, 4> buffers;
  std::array<DML_BINDING_DESC, 4> bindings = {};
  const UINT count = source_.Between(0, 4);
  const bool arrays = source_.OneIn(4);  // as for an initializer's inputs
  for (UINT i = 0; i < count; ++i) buffers[i] = AnyBinding(&keep[i]);
  const DML_BUFFER_ARRAY_BINDING array = {count, buffers.data()};
  for (UINT i = 0; i < count; ++i) {
    bindings[i] = {arrays ? DML_BINDING_TYPE_BUFFER_ARRAY : DML_BINDING_TYPE_BUFFER,
                   arrays ? static_cast<const void*>(&array) : &buffers[i]};
    if (source_.OneIn(16)) bindings[i] = {DML_BINDING_TYPE_NONE, nullptr};
    if (source_.OneIn(64)) bindings[i].Desc = nullptr;
  }
  const UINT given = arrays ? std::min(count, 1u) : count;
  const DML_BINDING_DESC* const data = source_.OneIn(64) ? nullptr : bindings.data();
  if (source_.OneIn(2)) {
    table->BindOutputs(given, data);
  } else {
    table->BindInputs(given, data);
  }
}

void CallWorker::BindResource() {
  IDMLBindingTable* const table = Any(own_.tables);
  if (table == nullptr) return;
  ComPtr<ID3D12Resource> keep;
  const DML_BUFFER_BINDING buffer = AnyBinding(&keep);
  const DML_BINDING_DESC binding = {
      buffer.Buffer != nullptr ? DML_BINDING_TYPE_BUFFER : DML_BINDING_TYPE_NONE,
      buffer.Buffer != nullptr ? &buffer : nullptr};
  const DML_BINDING_DESC* const given = source_.OneIn(16) ? nullptr : &binding;
  if (source_.OneIn(2)) {
    table->BindTemporaryResource(given);
  } else {
    table->BindPersistentResource(given);
  }
}

void CallWorker::RecordDispatch() {
  const auto recorder = Place(shared_.recorders).Get();
  if (recorder == nullptr) return;
  ComPtr<IDMLCompiledOperator> keep;
  IDMLDispatchable* const dispatchable = AnyDispatchable(&keep);
  recorder->RecordDispatch(Any(own_.lists), dispatchable, Any(own_.tables));
}

void CallWorker::Residency() {
  const auto dml = Place(shared_.dml).Get();
  if (dml == nullptr) return;
  ComPtr<IDMLCompiledOperator> keep;
  IDMLPageable* const objects[] = {AnyDispatchable(&keep)};
  if (source_.OneIn(4)) {
    dml->Evict(1, objects);
  } else {
    dml->MakeResident(1, objects);
  }
}

void CallWorker::RunChecked() {
  const auto dml = Place(shared_.dml).Get();
  if (dml == nullptr) return;
  ComPtr<ID3D12Device> d3d;  // the device for which it was made, which may differ from the present one
  if (FAILED(dml->GetParentDevice(IID_PPV_ARGS(&d3d)))) return;
  CheckedRun(source_, d3d.Get(), dml.Get());
}

}  // namespace anydml::fuzz
