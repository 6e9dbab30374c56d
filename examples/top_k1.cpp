// DML_OPERATOR_TOP_K1 from start to finish: the two largest elements of each row of a
// matrix, and where they were. Ends with 0 when the result is the documentation's.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <d3d12.h>
#include <d3dx12.h>
#include <DirectML.h>
#include <wrl/client.h>

using Microsoft::WRL::ComPtr;

namespace {

struct Gpu {
  ComPtr<ID3D12Device> device;
  ComPtr<ID3D12CommandQueue> queue;
  ComPtr<ID3D12CommandAllocator> allocator;
  ComPtr<ID3D12GraphicsCommandList> list;
  ComPtr<ID3D12Fence> fence;
  UINT64 fence_value = 0;
  ComPtr<IDMLDevice> dml;
  ComPtr<IDMLCommandRecorder> recorder;
};

void Check(HRESULT result, const char* what) {
  if (SUCCEEDED(result)) return;
  std::fprintf(stderr, "%s failed: 0x%08X\n", what, static_cast<unsigned>(result));
  std::exit(EXIT_FAILURE);
}
#define CHECK(call) Check(call, #call)

void Create(Gpu& gpu) {
  constexpr D3D12_COMMAND_LIST_TYPE kType = D3D12_COMMAND_LIST_TYPE_DIRECT;
  const D3D12_COMMAND_QUEUE_DESC queue{kType, 0, D3D12_COMMAND_QUEUE_FLAG_NONE, 0};
  CHECK(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&gpu.device)));
  CHECK(gpu.device->CreateCommandQueue(&queue, IID_PPV_ARGS(&gpu.queue)));
  CHECK(gpu.device->CreateCommandAllocator(kType, IID_PPV_ARGS(&gpu.allocator)));
  CHECK(gpu.device->CreateCommandList(0, kType, gpu.allocator.Get(), nullptr, IID_PPV_ARGS(&gpu.list)));
  CHECK(gpu.device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&gpu.fence)));
  CHECK(DMLCreateDevice(gpu.device.Get(), DML_CREATE_DEVICE_FLAG_NONE, IID_PPV_ARGS(&gpu.dml)));
  CHECK(gpu.dml->CreateCommandRecorder(IID_PPV_ARGS(&gpu.recorder)));
}

// Runs what has been recorded and waits for it. Each step here does so, which keeps
// the objects that it uses alive for long enough.
void Execute(Gpu& gpu) {
  CHECK(gpu.list->Close());
  ID3D12CommandList* lists[] = {gpu.list.Get()};
  gpu.queue->ExecuteCommandLists(1, lists);
  CHECK(gpu.queue->Signal(gpu.fence.Get(), ++gpu.fence_value));
  HANDLE done = CreateEvent(nullptr, FALSE, FALSE, nullptr);
  CHECK(gpu.fence->SetEventOnCompletion(gpu.fence_value, done));
  WaitForSingleObject(done, INFINITE);
  CloseHandle(done);
  CHECK(gpu.dml->GetDeviceRemovedReason());
  CHECK(gpu.allocator->Reset());
  CHECK(gpu.list->Reset(gpu.allocator.Get(), nullptr));
}

// Buffers need no barriers here: each execution finds them in the COMMON state, from
// which they are promoted to what is done with them, and leaves them in it.
ComPtr<ID3D12Resource> CreateBuffer(Gpu& gpu, UINT64 bytes, D3D12_HEAP_TYPE heap = D3D12_HEAP_TYPE_DEFAULT) {
  const CD3DX12_HEAP_PROPERTIES properties(heap);
  auto desc = CD3DX12_RESOURCE_DESC::Buffer(bytes);
  D3D12_RESOURCE_STATES state = D3D12_RESOURCE_STATE_COMMON;
  if (heap == D3D12_HEAP_TYPE_DEFAULT) desc.Flags = D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS;
  if (heap == D3D12_HEAP_TYPE_UPLOAD) state = D3D12_RESOURCE_STATE_GENERIC_READ;
  if (heap == D3D12_HEAP_TYPE_READBACK) state = D3D12_RESOURCE_STATE_COPY_DEST;
  ComPtr<ID3D12Resource> buffer;
  CHECK(gpu.device->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &desc, state, nullptr,
                                            IID_PPV_ARGS(&buffer)));
  return buffer;
}

template <typename T>
ComPtr<ID3D12Resource> Upload(Gpu& gpu, const std::vector<T>& elements) {
  const UINT64 bytes = elements.size() * sizeof(T);
  const auto staging = CreateBuffer(gpu, bytes, D3D12_HEAP_TYPE_UPLOAD);
  void* mapped = nullptr;
  CHECK(staging->Map(0, nullptr, &mapped));
  std::memcpy(mapped, elements.data(), bytes);
  staging->Unmap(0, nullptr);
  auto buffer = CreateBuffer(gpu, bytes);
  gpu.list->CopyBufferRegion(buffer.Get(), 0, staging.Get(), 0, bytes);
  Execute(gpu);
  return buffer;
}

template <typename T>
std::vector<T> ReadBack(Gpu& gpu, ID3D12Resource* buffer) {
  const UINT64 bytes = buffer->GetDesc().Width;
  const auto staging = CreateBuffer(gpu, bytes, D3D12_HEAP_TYPE_READBACK);
  gpu.list->CopyBufferRegion(staging.Get(), 0, buffer, 0, bytes);
  Execute(gpu);
  std::vector<T> elements(bytes / sizeof(T));
  void* mapped = nullptr;
  CHECK(staging->Map(0, nullptr, &mapped));
  std::memcpy(elements.data(), mapped, bytes);
  staging->Unmap(0, nullptr);
  return elements;
}

// Whole buffers, as the methods of a binding table take them.
struct Bindings {
  explicit Bindings(const std::vector<ID3D12Resource*>& resources) {
    for (ID3D12Resource* resource : resources) buffers.push_back({resource, 0, resource->GetDesc().Width});
    for (const DML_BUFFER_BINDING& buffer : buffers) descs.push_back({DML_BINDING_TYPE_BUFFER, &buffer});
  }
  std::vector<DML_BUFFER_BINDING> buffers;
  std::vector<DML_BINDING_DESC> descs;
};

// Runs an initializer or a compiled operator.
void Dispatch(Gpu& gpu, IDMLDispatchable* what, const std::vector<ID3D12Resource*>& inputs,
              const std::vector<ID3D12Resource*>& outputs) {
  const DML_BINDING_PROPERTIES needs = what->GetBindingProperties();
  const D3D12_DESCRIPTOR_HEAP_DESC heap_desc{D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV,
                                             std::max(1u, needs.RequiredDescriptorCount),
                                             D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE, 0};
  ComPtr<ID3D12DescriptorHeap> heap;
  CHECK(gpu.device->CreateDescriptorHeap(&heap_desc, IID_PPV_ARGS(&heap)));
  const DML_BINDING_TABLE_DESC table_desc{what, heap->GetCPUDescriptorHandleForHeapStart(),
                                          heap->GetGPUDescriptorHandleForHeapStart(),
                                          heap_desc.NumDescriptors};
  ComPtr<IDMLBindingTable> table;
  CHECK(gpu.dml->CreateBindingTable(&table_desc, IID_PPV_ARGS(&table)));
  const Bindings bound_inputs(inputs), bound_outputs(outputs);
  table->BindInputs(static_cast<UINT>(inputs.size()), bound_inputs.descs.data());
  table->BindOutputs(static_cast<UINT>(outputs.size()), bound_outputs.descs.data());
  ComPtr<ID3D12Resource> scratch;
  if (needs.TemporaryResourceSize > 0) {
    scratch = CreateBuffer(gpu, needs.TemporaryResourceSize);
    table->BindTemporaryResource(Bindings({scratch.Get()}).descs.data());
  }
  gpu.list->SetDescriptorHeaps(1, heap.GetAddressOf());
  gpu.recorder->RecordDispatch(gpu.list.Get(), what, table.Get());
  Execute(gpu);
}

ComPtr<IDMLCompiledOperator> CreateOperator(Gpu& gpu, const DML_OPERATOR_DESC& desc) {
  ComPtr<IDMLOperator> op;
  CHECK(gpu.dml->CreateOperator(&desc, IID_PPV_ARGS(&op)));
  ComPtr<IDMLCompiledOperator> compiled;
  CHECK(gpu.dml->CompileOperator(op.Get(), DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiled)));
  ComPtr<IDMLOperatorInitializer> initializer;
  CHECK(gpu.dml->CreateOperatorInitializer(1, compiled.GetAddressOf(), IID_PPV_ARGS(&initializer)));
  // Nothing here is owned by DirectML, so there is no persistent memory to bind.
  Dispatch(gpu, initializer.Get(), {}, {});
  return compiled;
}

// A packed tensor; every element of this example has 4 bytes.
struct Tensor {
  Tensor(DML_TENSOR_DATA_TYPE type, const std::vector<UINT>& tensor_sizes) : sizes(tensor_sizes) {
    buffer = {type, DML_TENSOR_FLAG_NONE, static_cast<UINT>(sizes.size()), sizes.data(), nullptr, 4, 0};
    for (UINT size : sizes) buffer.TotalTensorSizeInBytes *= size;
  }
  const std::vector<UINT> sizes;
  DML_BUFFER_TENSOR_DESC buffer;
  const DML_TENSOR_DESC desc{DML_TENSOR_TYPE_BUFFER, &buffer};
};

}  // namespace

int main() {
  const std::vector<float> input = {0, 1, 10, 11, 3, 2, 9, 8, 4, 5, 6, 7};
  const std::vector<float> expected_values = {11, 10, 9, 8, 7, 6};
  const std::vector<UINT> expected_indices = {3, 2, 2, 3, 3, 2};
  Gpu gpu;
  Create(gpu);

  const Tensor input_tensor(DML_TENSOR_DATA_TYPE_FLOAT32, {1, 1, 3, 4});
  const Tensor value_tensor(DML_TENSOR_DATA_TYPE_FLOAT32, {1, 1, 3, 2});
  const Tensor index_tensor(DML_TENSOR_DATA_TYPE_UINT32, {1, 1, 3, 2});
  DML_TOP_K1_OPERATOR_DESC top_k{};
  top_k.InputTensor = &input_tensor.desc;
  top_k.OutputValueTensor = &value_tensor.desc;
  top_k.OutputIndexTensor = &index_tensor.desc;
  top_k.Axis = 3;
  top_k.K = 2;
  top_k.AxisDirection = DML_AXIS_DIRECTION_DECREASING;
  const auto op = CreateOperator(gpu, {DML_OPERATOR_TOP_K1, &top_k});

  const auto input_buffer = Upload(gpu, input);
  const auto value_buffer = CreateBuffer(gpu, value_tensor.buffer.TotalTensorSizeInBytes);
  const auto index_buffer = CreateBuffer(gpu, index_tensor.buffer.TotalTensorSizeInBytes);
  Dispatch(gpu, op.Get(), {input_buffer.Get()}, {value_buffer.Get(), index_buffer.Get()});
  const auto values = ReadBack<float>(gpu, value_buffer.Get());
  const auto indices = ReadBack<UINT>(gpu, index_buffer.Get());

  for (size_t i = 0; i < values.size(); ++i) std::printf("%g at %u\n", values[i], indices[i]);
  const bool correct = values == expected_values && indices == expected_indices;
  std::puts(correct ? "correct" : "WRONG");
  return correct ? EXIT_SUCCESS : EXIT_FAILURE;
}
