#include "checked_run.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include <anydml.h>

#include "base/status.h"
#include "support/tensor.h"

namespace anydml::fuzz {
namespace {

constexpr uint32_t kMaxLength = 64;
constexpr uint64_t kInputBytes = kMaxLength * sizeof(float);

// Everything that a run creates. A failing call throws its result, whose meaning depends on whether the
// devices were removed.
class Objects {
 public:
  Objects(ID3D12Device* d3d, IDMLDevice* dml) : d3d_(d3d), dml_(dml) {
    constexpr D3D12_COMMAND_LIST_TYPE kType = D3D12_COMMAND_LIST_TYPE_COMPUTE;
    D3D12_COMMAND_QUEUE_DESC queue_desc = {};
    queue_desc.Type = kType;
    Check(d3d->CreateCommandQueue(&queue_desc, IID_PPV_ARGS(&queue)));
    Check(d3d->CreateCommandAllocator(kType, IID_PPV_ARGS(&allocator)));
    Check(d3d->CreateCommandList(0, kType, allocator.Get(), nullptr, IID_PPV_ARGS(&list)));
    Check(d3d->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)));
    const D3D12_DESCRIPTOR_HEAP_DESC heap_desc = {D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV, 64,
                                                  D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE, 0};
    Check(d3d->CreateDescriptorHeap(&heap_desc, IID_PPV_ARGS(&heap)));
    Check(dml->CreateCommandRecorder(IID_PPV_ARGS(&recorder)));
    ID3D12DescriptorHeap* const heaps[] = {heap.Get()};
    list->SetDescriptorHeaps(1, heaps);
  }

  static void Check(HRESULT result) {
    if (FAILED(result)) throw result;
  }

  ComPtr<ID3D12Resource> CreateBuffer(uint64_t bytes, D3D12_HEAP_TYPE type) {
    const D3D12_HEAP_PROPERTIES properties = {type, D3D12_CPU_PAGE_PROPERTY_UNKNOWN,
                                              D3D12_MEMORY_POOL_UNKNOWN, 0, 0};
    const D3D12_RESOURCE_DESC desc =
        BufferDesc(bytes, type == D3D12_HEAP_TYPE_DEFAULT ? D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS
                                                          : D3D12_RESOURCE_FLAG_NONE);
    ComPtr<ID3D12Resource> buffer;
    Check(d3d_->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &desc, InitialState(type), nullptr,
                                        IID_PPV_ARGS(&buffer)));
    return buffer;
  }

  ComPtr<IDMLBindingTable> CreateTable(IDMLDispatchable* dispatchable) {
    const UINT count = dispatchable->GetBindingProperties().RequiredDescriptorCount;
    const UINT step = d3d_->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
    DML_BINDING_TABLE_DESC desc = {dispatchable, heap->GetCPUDescriptorHandleForHeapStart(),
                                   heap->GetGPUDescriptorHandleForHeapStart(), count};
    desc.CPUDescriptorHandle.ptr += next_descriptor_ * step;
    desc.GPUDescriptorHandle.ptr += next_descriptor_ * step;
    next_descriptor_ += count;
    ComPtr<IDMLBindingTable> table;
    Check(dml_->CreateBindingTable(&desc, IID_PPV_ARGS(&table)));
    return table;
  }

  ComPtr<ID3D12CommandQueue> queue;
  ComPtr<ID3D12CommandAllocator> allocator;
  ComPtr<ID3D12GraphicsCommandList> list;
  ComPtr<ID3D12Fence> fence;
  ComPtr<ID3D12DescriptorHeap> heap;
  ComPtr<IDMLCommandRecorder> recorder;

 private:
  ID3D12Device* const d3d_;
  IDMLDevice* const dml_;
  UINT next_descriptor_ = 0;
};

struct Problem {
  std::vector<float> row;
  uint32_t k = 1;
  DML_EXECUTION_FLAGS flags = DML_EXECUTION_FLAG_NONE;
};

ComPtr<IDMLCompiledOperator> CompileTopK(IDMLDevice* dml, const Problem& problem) {
  const auto length = static_cast<uint32_t>(problem.row.size());
  const uint32_t k = problem.k;
  const test::Tensor input(DML_TENSOR_DATA_TYPE_FLOAT32, {1, 1, 1, length});
  const test::Tensor values(DML_TENSOR_DATA_TYPE_FLOAT32, {1, 1, 1, k});
  const test::Tensor indices(DML_TENSOR_DATA_TYPE_UINT32, {1, 1, 1, k});
  const DML_TOP_K1_OPERATOR_DESC top_k = {
      input.desc(), values.desc(), indices.desc(), 3, k, DML_AXIS_DIRECTION_DECREASING};
  const DML_OPERATOR_DESC desc = {DML_OPERATOR_TOP_K1, &top_k};
  ComPtr<IDMLOperator> op;
  ComPtr<IDMLCompiledOperator> compiled;
  Objects::Check(dml->CreateOperator(&desc, IID_PPV_ARGS(&op)));
  Objects::Check(dml->CompileOperator(op.Get(), problem.flags, IID_PPV_ARGS(&compiled)));
  return compiled;
}

void Execute(Objects& objects) {
  Objects::Check(objects.list->Close());
  ID3D12CommandList* const lists[] = {objects.list.Get()};
  objects.queue->ExecuteCommandLists(1, lists);
  Objects::Check(objects.queue->Signal(objects.fence.Get(), 1));
  // Many short waits, so that suspending the machine for a while does not count as a hang.
  bool ended = false;
  for (int i = 0; i < 40 && !ended; ++i) ended = WaitFor(objects.fence.Get(), 1, 500);
  Require(ended, "a valid dispatch did not end");
}

// The values, then the indices.
std::vector<uint32_t> TopK(ID3D12Device* d3d, IDMLDevice* dml, const Problem& problem) {
  const std::vector<float>& row = problem.row;
  Objects objects(d3d, dml);
  const auto upload = objects.CreateBuffer(kInputBytes, D3D12_HEAP_TYPE_UPLOAD);
  const auto input = objects.CreateBuffer(kInputBytes, D3D12_HEAP_TYPE_DEFAULT);
  const auto output = objects.CreateBuffer(2 * kInputBytes, D3D12_HEAP_TYPE_DEFAULT);
  const auto readback = objects.CreateBuffer(2 * kInputBytes, D3D12_HEAP_TYPE_READBACK);
  const auto compiled = CompileTopK(dml, problem);
  const uint64_t temporary_bytes = compiled->GetBindingProperties().TemporaryResourceSize;
  const auto temporary =
      objects.CreateBuffer(std::max<uint64_t>(4, temporary_bytes), D3D12_HEAP_TYPE_DEFAULT);
  void* mapped = nullptr;
  Objects::Check(upload->Map(0, nullptr, &mapped));
  std::memcpy(mapped, row.data(), row.size() * sizeof(float));
  upload->Unmap(0, nullptr);
  objects.list->CopyResource(input.Get(), upload.Get());

  IDMLCompiledOperator* const operators[] = {compiled.Get()};
  ComPtr<IDMLOperatorInitializer> initializer;
  Objects::Check(dml->CreateOperatorInitializer(1, operators, IID_PPV_ARGS(&initializer)));
  const auto initializer_table = objects.CreateTable(initializer.Get());
  objects.recorder->RecordDispatch(objects.list.Get(), initializer.Get(), initializer_table.Get());

  const auto table = objects.CreateTable(compiled.Get());
  const DML_BUFFER_BINDING in = {input.Get(), 0, row.size() * sizeof(float)};
  const DML_BUFFER_BINDING outs[] = {{output.Get(), 0, problem.k * sizeof(float)},
                                     {output.Get(), kInputBytes, problem.k * sizeof(uint32_t)}};
  const DML_BUFFER_BINDING scratch = {temporary.Get(), 0, temporary_bytes};
  const DML_BINDING_DESC in_desc = {DML_BINDING_TYPE_BUFFER, &in};
  const DML_BINDING_DESC out_descs[] = {{DML_BINDING_TYPE_BUFFER, &outs[0]},
                                        {DML_BINDING_TYPE_BUFFER, &outs[1]}};
  const DML_BINDING_DESC scratch_desc = {DML_BINDING_TYPE_BUFFER, &scratch};
  table->BindInputs(1, &in_desc);
  table->BindOutputs(2, out_descs);
  if (temporary_bytes > 0) table->BindTemporaryResource(&scratch_desc);
  objects.recorder->RecordDispatch(objects.list.Get(), compiled.Get(), table.Get());
  objects.list->CopyResource(readback.Get(), output.Get());
  Execute(objects);

  std::vector<uint32_t> words(2 * kInputBytes / sizeof(uint32_t));
  Objects::Check(readback->Map(0, nullptr, &mapped));
  std::memcpy(words.data(), mapped, 2 * kInputBytes);
  readback->Unmap(0, nullptr);
  return words;
}

}  // namespace

bool WaitFor(ID3D12Fence* fence, uint64_t value, int milliseconds) {
  const int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  Require(event >= 0, "no eventfd");
  const HRESULT result =
      fence->SetEventOnCompletion(value, reinterpret_cast<HANDLE>(static_cast<uintptr_t>(event)));
  Require(result == S_OK, "SetEventOnCompletion failed");
  pollfd poll_event = {event, POLLIN, 0};
  const bool reached = poll(&poll_event, 1, milliseconds) == 1;
  close(event);
  return reached;
}

D3D12_RESOURCE_DESC BufferDesc(uint64_t bytes, D3D12_RESOURCE_FLAGS flags) {
  return {D3D12_RESOURCE_DIMENSION_BUFFER, 0,    bytes, 1, 1, 1, DXGI_FORMAT_UNKNOWN, {1, 0},
          D3D12_TEXTURE_LAYOUT_ROW_MAJOR,  flags};
}

D3D12_RESOURCE_STATES InitialState(D3D12_HEAP_TYPE type) {
  if (type == D3D12_HEAP_TYPE_UPLOAD) return D3D12_RESOURCE_STATE_GENERIC_READ;
  return type == D3D12_HEAP_TYPE_READBACK ? D3D12_RESOURCE_STATE_COPY_DEST : D3D12_RESOURCE_STATE_COMMON;
}

void CheckedRun(ByteSource& source, ID3D12Device* d3d, IDMLDevice* dml) {
  Problem problem;
  problem.row.resize(source.Between(1, kMaxLength));
  for (float& element : problem.row) element = static_cast<float>(source.Byte());
  problem.k = source.Between(1, static_cast<uint32_t>(problem.row.size()));
  if (source.OneIn(2)) problem.flags = DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE;
  const std::vector<float>& row = problem.row;
  std::vector<uint32_t> words;
  HRESULT failure = S_OK;
  try {
    words = TopK(d3d, dml, problem);
  } catch (HRESULT result) {
    failure = result;
  }
  if (d3d->GetDeviceRemovedReason() != S_OK || dml->GetDeviceRemovedReason() != S_OK) return;
  Require(failure == S_OK, StrCat("a valid call failed: ", AnyDmlGetLastErrorMessage()));
  std::vector<uint32_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return row[a] > row[b]; });
  for (uint32_t i = 0; i < problem.k; ++i) {
    float value;
    std::memcpy(&value, &words[i], sizeof(value));
    Require(value == row[order[i]] && words[kMaxLength + i] == order[i],
            "a valid dispatch gave a wrong result");
  }
}

}  // namespace anydml::fuzz
