#pragma once

#include <memory>
#include <string>

#include "d3d12/descriptors/descriptor_table.h"
#include "d3d12/lists/command_allocator.h"
#include "d3d12/lists/recorded_list.h"
#include "d3d12/lists/unsupported_commands.h"
#include "d3d12/memory/resource.h"

namespace anydml::d3d12 {

// Used by one thread at a time, as Direct3D requires, so there are no locks.
class CommandList final : public UnsupportedCommands {
 public:
  static constexpr GUID kImplementation = {
      0x5e1c1f0a, 0x3a0e, 0x4bd5, {0x9b, 0x1e, 0x6d, 0x2a, 0x0c, 0x57, 0x11, 0x07}};

  // With an allocator the list is created open, otherwise (CreateCommandList1) closed.
  static HRESULT Create(Device* device, UINT node_mask, D3D12_COMMAND_LIST_TYPE type,
                        ID3D12CommandAllocator* allocator, ID3D12PipelineState* pipeline, REFIID iid,
                        void** out);
  static HRESULT CreateClosed(Device* device, UINT node_mask, D3D12_COMMAND_LIST_TYPE type,
                              D3D12_COMMAND_LIST_FLAGS flags, REFIID iid, void** out);

  CommandList(Device* device, D3D12_COMMAND_LIST_TYPE type) : UnsupportedCommands(device), type_(type) {}

  D3D12_COMMAND_LIST_TYPE STDMETHODCALLTYPE GetType() override { return type_; }
  HRESULT STDMETHODCALLTYPE Close() override;
  HRESULT STDMETHODCALLTYPE Reset(ID3D12CommandAllocator* allocator, ID3D12PipelineState* pipeline) override;
  void STDMETHODCALLTYPE ClearState(ID3D12PipelineState* pipeline) override;

  void STDMETHODCALLTYPE CopyBufferRegion(ID3D12Resource* target, UINT64 target_offset,
                                          ID3D12Resource* source, UINT64 source_offset,
                                          UINT64 bytes) override;
  void STDMETHODCALLTYPE CopyResource(ID3D12Resource* target, ID3D12Resource* source) override;
  void STDMETHODCALLTYPE AtomicCopyBufferUINT(ID3D12Resource* target, UINT64 target_offset,
                                              ID3D12Resource* source, UINT64 source_offset, UINT dependencies,
                                              ID3D12Resource* const* dependent,
                                              const D3D12_SUBRESOURCE_RANGE_UINT64* ranges) override;
  void STDMETHODCALLTYPE AtomicCopyBufferUINT64(ID3D12Resource* target, UINT64 target_offset,
                                                ID3D12Resource* source, UINT64 source_offset,
                                                UINT dependencies, ID3D12Resource* const* dependent,
                                                const D3D12_SUBRESOURCE_RANGE_UINT64* ranges) override;
  void STDMETHODCALLTYPE ClearUnorderedAccessViewUint(D3D12_GPU_DESCRIPTOR_HANDLE gpu_view,
                                                      D3D12_CPU_DESCRIPTOR_HANDLE cpu_view,
                                                      ID3D12Resource* resource, const UINT values[4],
                                                      UINT rect_count, const D3D12_RECT* rects) override;
  void STDMETHODCALLTYPE WriteBufferImmediate(UINT count,
                                              const D3D12_WRITEBUFFERIMMEDIATE_PARAMETER* parameters,
                                              const D3D12_WRITEBUFFERIMMEDIATE_MODE* modes) override;
  void STDMETHODCALLTYPE ResourceBarrier(UINT count, const D3D12_RESOURCE_BARRIER* barriers) override;
  void STDMETHODCALLTYPE DiscardResource(ID3D12Resource* resource,
                                         const D3D12_DISCARD_REGION* region) override;
  void STDMETHODCALLTYPE EndQuery(ID3D12QueryHeap* heap, D3D12_QUERY_TYPE type, UINT index) override;
  void STDMETHODCALLTYPE ResolveQueryData(ID3D12QueryHeap* heap, D3D12_QUERY_TYPE type, UINT first,
                                          UINT count, ID3D12Resource* target, UINT64 offset) override;

  void STDMETHODCALLTYPE SetDescriptorHeaps(UINT count, ID3D12DescriptorHeap* const* heaps) override;
  void STDMETHODCALLTYPE SetPipelineState(ID3D12PipelineState* pipeline) override;
  void STDMETHODCALLTYPE SetComputeRootSignature(ID3D12RootSignature* signature) override;
  void STDMETHODCALLTYPE SetPredication(ID3D12Resource* buffer, UINT64 offset,
                                        D3D12_PREDICATION_OP op) override;
  void STDMETHODCALLTYPE SetProtectedResourceSession(ID3D12ProtectedResourceSession* session) override;
  void STDMETHODCALLTYPE SetMarker(UINT, const void*, UINT) override {}
  void STDMETHODCALLTYPE BeginEvent(UINT, const void*, UINT) override {}
  void STDMETHODCALLTYPE EndEvent() override {}

  // Appends a command of another layer.
  Status Record(std::shared_ptr<const Command> command, D3D12_GPU_DESCRIPTOR_HANDLE gpu_descriptors);

  // For the queue.
  bool open() const { return open_; }
  // Null unless the list was closed without an error.
  const std::shared_ptr<const RecordedList>& recorded() const { return recorded_; }

 protected:
  ~CommandList() override;
  void* QueryOther(REFIID iid) override { return iid == kImplementation ? this : nullptr; }
  void Unsupported(const char* method) override;

 private:
  HRESULT Open(const char* method, ID3D12CommandAllocator* allocator, ID3D12PipelineState* pipeline);

  // Runs the body of a recording method if the list is open; failures and exceptions put the list into its
  // error state.
  template <typename Body>
  void RecordIn(const char* method, Body&& body);
  void SetError(HRESULT code, const char* method, const char* message);

  template <typename T, typename... Args>
  void Append(Args&&... args) {
    recording_->commands.push_back(std::make_shared<const T>(std::forward<Args>(args)...));
  }
  void AppendUse(const std::shared_ptr<ResourceState>& resource, D3D12_RESOURCE_STATES needed,
                 const char* method);

  // Finds a buffer of this device, or says why there is none.
  Status FindBuffer(const char* parameter, ID3D12Resource* object, ComPtr<Resource>* resource) const;
  Status CopyRange(const char* method, ID3D12Resource* target, uint64_t target_offset, ID3D12Resource* source,
                   uint64_t source_offset, uint64_t bytes);
  Status CheckBarrier(const D3D12_RESOURCE_BARRIER& barrier);
  Status CheckQuery(ID3D12QueryHeap* heap, D3D12_QUERY_TYPE type, uint64_t first, uint64_t count,
                    std::shared_ptr<ResourceState>* queries) const;

  const D3D12_COMMAND_LIST_TYPE type_;
  bool open_ = false;
  std::string error_;                             // message of the first failed method since Reset
  HRESULT error_code_ = S_OK;                     // what Close returns for it
  std::shared_ptr<RecordedList> recording_;       // while open
  std::shared_ptr<const RecordedList> recorded_;  // while closed
  size_t expected_commands_ = 0;                  // the number in the previous recording
  DescriptorTable::HeapId view_heap_ = 0;         // as set by SetDescriptorHeaps
};

}  // namespace anydml::d3d12
