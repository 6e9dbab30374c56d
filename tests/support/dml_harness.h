// Everything that a test needs to run an operator through the public API: devices, a queue, an open list, a
// descriptor heap, buffers. Failures throw, with the library's own message; GoogleTest makes a failed test of
// that.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <DirectML.h>
#include <wrl/client.h>

#include "support/tensor.h"

namespace anydml::test {

using Microsoft::WRL::ComPtr;

void Check(HRESULT result, const char* what);
std::string LastError();

// The name of the device's adapter: "cpu", "cuda:0".
std::string AdapterOf(ID3D12Device* device);
// The CPU's device, whichever adapter is first.
ComPtr<ID3D12Device> CpuDevice();

template <typename T>
std::vector<uint8_t> ToBytes(const std::vector<T>& values) {
  std::vector<uint8_t> bytes((values.size() * sizeof(T) + 3) / 4 * 4);
  if (!values.empty()) memcpy(bytes.data(), values.data(), values.size() * sizeof(T));
  return bytes;
}

template <typename T>
std::vector<T> FromBytes(const std::vector<uint8_t>& bytes, size_t count) {
  std::vector<T> values(count);
  if (count != 0) memcpy(values.data(), bytes.data(), count * sizeof(T));
  return values;
}

// A buffer as a binding; converts to the C structs.
struct Bound {
  ID3D12Resource* buffer = nullptr;  // null: no binding
  uint64_t offset = 0;
  uint64_t size = 0;  // 0: the rest of the buffer
};

// The C structs for BindInputs and BindOutputs: buffers, or one array per operator.
class Bindings {
 public:
  Bindings() = default;
  explicit Bindings(const std::vector<Bound>& buffers);
  static Bindings Arrays(const std::vector<std::vector<Bound>>& arrays);
  Bindings(Bindings&&) = default;  // the structs point into vectors, whose memory a move keeps
  Bindings& operator=(Bindings&&) = default;

  UINT count() const { return static_cast<UINT>(descs_.size()); }
  const DML_BINDING_DESC* data() const { return descs_.empty() ? nullptr : descs_.data(); }

 private:
  std::vector<std::vector<DML_BUFFER_BINDING>> buffers_;
  std::vector<DML_BUFFER_ARRAY_BINDING> arrays_;
  std::vector<DML_BINDING_DESC> descs_;
};

class DmlHarness {
 public:
  static constexpr UINT kDescriptors = 4096;

  explicit DmlHarness(DML_CREATE_DEVICE_FLAGS flags = DML_CREATE_DEVICE_FLAG_NONE,
                      D3D12_COMMAND_LIST_TYPE list_type = D3D12_COMMAND_LIST_TYPE_COMPUTE);
  // On an existing Direct3D device.
  DmlHarness(ID3D12Device* d3d, DML_CREATE_DEVICE_FLAGS flags);
  // On an existing compute queue, which others may also use.
  DmlHarness(ID3D12Device* d3d, ID3D12CommandQueue* queue);

  ID3D12Device* d3d() const { return d3d_.Get(); }
  IDMLDevice* dml() const { return dml_.Get(); }
  ID3D12CommandQueue* queue() const { return queue_.Get(); }
  ID3D12GraphicsCommandList* list() const { return list_.Get(); }
  ID3D12DescriptorHeap* heap() const { return heap_.Get(); }
  IDMLCommandRecorder* recorder() const { return recorder_.Get(); }

  ComPtr<ID3D12Resource> CreateBuffer(
      uint64_t bytes, D3D12_HEAP_TYPE heap = D3D12_HEAP_TYPE_DEFAULT,
      D3D12_RESOURCE_FLAGS flags = D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS);
  // A default buffer with these bytes; executes the list.
  ComPtr<ID3D12Resource> Upload(const std::vector<uint8_t>& bytes);
  template <typename T>
  ComPtr<ID3D12Resource> Upload(const std::vector<T>& values) {
    return Upload(ToBytes(values));
  }
  // The first bytes of a default buffer; executes the list.
  std::vector<uint8_t> Download(ID3D12Resource* buffer, uint64_t bytes);
  template <typename T>
  std::vector<T> Download(ID3D12Resource* buffer, size_t count) {
    return FromBytes<T>(Download(buffer, (count * sizeof(T) + 3) / 4 * 4), count);
  }

  ComPtr<IDMLOperator> CreateOperator(DML_OPERATOR_TYPE type, const void* desc);
  ComPtr<IDMLCompiledOperator> Compile(DML_OPERATOR_TYPE type, const void* desc,
                                       DML_EXECUTION_FLAGS flags = DML_EXECUTION_FLAG_NONE);

  // A table over the next free descriptors of the heap.
  ComPtr<IDMLBindingTable> CreateTable(IDMLDispatchable* dispatchable);
  DML_BINDING_TABLE_DESC NextTableDesc(IDMLDispatchable* dispatchable);
  // Frees all descriptors; the tables over them must not be used any more.
  void ReuseDescriptors() { next_descriptor_ = 0; }

  // A buffer of the compiled operator's persistent size; null if that is 0.
  ComPtr<ID3D12Resource> CreatePersistent(IDMLCompiledOperator* op);
  ComPtr<ID3D12Resource> CreateTemporary(IDMLDispatchable* dispatchable);

  // Records, executes and waits. `owned` has one entry per input, or is empty.
  void Initialize(IDMLCompiledOperator* op, ID3D12Resource* persistent = nullptr,
                  const std::vector<Bound>& owned = {});
  void Dispatch(IDMLCompiledOperator* op, const std::vector<Bound>& inputs, const std::vector<Bound>& outputs,
                ID3D12Resource* persistent = nullptr);

  // In one call: compiles, uploads, initialises (owned inputs too), executes and reads back. Tensors of 0
  // bytes are absent.
  std::vector<std::vector<uint8_t>> Run(DML_OPERATOR_TYPE type, const void* desc,
                                        const std::vector<std::vector<uint8_t>>& inputs,
                                        const std::vector<uint64_t>& output_bytes,
                                        const std::vector<bool>& owned = {});

  void UavBarrier();
  void ExecuteAndWait();   // closes the list, runs it, waits, opens it again
  void CloseAndExecute();  // without waiting; the list stays closed until Reopen
  void Wait();
  void Reopen();

 private:
  void CreateObjects(DML_CREATE_DEVICE_FLAGS flags, D3D12_COMMAND_LIST_TYPE list_type);

  ComPtr<ID3D12Device> d3d_;
  ComPtr<IDMLDevice> dml_;
  ComPtr<ID3D12CommandQueue> queue_;
  ComPtr<ID3D12CommandAllocator> allocator_;
  ComPtr<ID3D12GraphicsCommandList> list_;
  ComPtr<ID3D12Fence> fence_;
  uint64_t fence_value_ = 0;
  ComPtr<ID3D12DescriptorHeap> heap_;
  UINT next_descriptor_ = 0;
  ComPtr<IDMLCommandRecorder> recorder_;
};

}  // namespace anydml::test
