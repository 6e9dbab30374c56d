// A Direct3D 12 device with one queue and a DirectML device on it, for programs that run one operator at a
// time on host data. Uses only the public API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <DirectML.h>
#include <wrl/client.h>

#include "base/status.h"
#include "client/adapters.h"
#include "schema/schema.h"

namespace anydml::client {

struct SessionOptions {
  std::string adapter;         // as for ChooseAdapter; empty: the first one
  std::string feature_level;   // "5.0": the level to limit the device to; empty: no limit
  std::string implementation;  // "cpu.reference": the implementation to force; empty: the best that fits
  bool debug = true;           // false: without the debug layers, for timing
};

// A tensor's TotalTensorSizeInBytes bytes; empty: an absent optional tensor.
using HostBuffer = std::vector<std::byte>;

struct RunResult {
  std::vector<HostBuffer> outputs;
  std::string explanation;  // which implementation was chosen, and why not the others
  // The error in the data that execution found, for example the first index out of range; empty if none.
  std::string data_error;
};

// A compiled operator, which the next execution initialises.
struct CompiledOperator {
  Microsoft::WRL::ComPtr<IDMLCompiledOperator> compiled;
  Microsoft::WRL::ComPtr<ID3D12Resource> persistent;  // null if it needs none
  std::string explanation;                            // as in RunResult
};

// A graph to compile: operators, their names, and edges between them.
struct GraphPlan {
  struct Node {
    const DML_OPERATOR_DESC* desc;
    const char* name;  // null: none
  };
  uint32_t input_count = 0;
  uint32_t output_count = 0;
  std::vector<Node> nodes;
  std::vector<DML_INPUT_GRAPH_EDGE_DESC> input_edges;
  std::vector<DML_OUTPUT_GRAPH_EDGE_DESC> output_edges;
  std::vector<DML_INTERMEDIATE_GRAPH_EDGE_DESC> intermediate_edges;
};

// A closed command list and everything that it uses, to execute any number of times.
struct RecordedList {
  Microsoft::WRL::ComPtr<ID3D12CommandAllocator> allocator;
  Microsoft::WRL::ComPtr<ID3D12GraphicsCommandList> list;
  Microsoft::WRL::ComPtr<ID3D12Resource> timestamps;  // of its beginning and end; null if it has none
  std::vector<Microsoft::WRL::ComPtr<IUnknown>> keep_alive;
};

// After a failure later than CompileOperator, only Discard is allowed on a session.
class Session {
 public:
  static Status Create(const SessionOptions& options, std::unique_ptr<Session>* out);

  // The highest feature level that the device supports.
  FeatureLevel feature_level() const { return feature_level_; }
  const Adapter& adapter() const { return adapter_; }
  ID3D12CommandQueue* queue() const { return queue_.Get(); }
  bool removed() const;
  bool debug() const { return debug_; }

  // Creates, compiles, initialises and executes one operator. `inputs` and `output_sizes` are in binding
  // order; a size of 0 is an absent optional tensor. The inputs are freed before the outputs are read, so
  // that no tensor needs more than twice its size.
  Status Run(const DML_OPERATOR_DESC& desc, std::vector<HostBuffer> inputs,
             std::span<const uint64_t> output_sizes, RunResult* result);

  // The same in steps, for programs with their own buffers. Bindings are in binding order, absent ones with a
  // null Buffer; `owned` are the inputs for initialisation (DML_TENSOR_FLAG_OWNED_BY_DML), empty if there are
  // none.
  Status Upload(std::span<const std::byte> bytes, Microsoft::WRL::ComPtr<ID3D12Resource>* out);
  // A buffer to write to.
  Status Allocate(uint64_t bytes, Microsoft::WRL::ComPtr<ID3D12Resource>* out);
  // A new buffer with a part of another one.
  Status Copy(ID3D12Resource* from, uint64_t offset, uint64_t bytes,
              Microsoft::WRL::ComPtr<ID3D12Resource>* out);
  // A buffer over the caller's memory (AnyDmlCreateBufferFromMemory), which must stay valid until the next
  // execution has ended.
  Status Wrap(void* memory, uint64_t bytes, Microsoft::WRL::ComPtr<ID3D12Resource>* out);
  Status Compile(const DML_OPERATOR_DESC& desc, DML_EXECUTION_FLAGS flags,
                 std::span<const DML_BUFFER_BINDING> owned, CompiledOperator* out);
  // The same as a graph of one node, whose inputs and outputs are the operator's; absent ones have no edge.
  Status CompileAsGraph(const DML_OPERATOR_DESC& desc, const std::vector<bool>& inputs,
                        const std::vector<bool>& outputs, DML_EXECUTION_FLAGS flags,
                        std::span<const DML_BUFFER_BINDING> owned, CompiledOperator* out);
  // Any graph, also with operators from CreateOperator; it must be initialised, too.
  Status CreateOperator(const DML_OPERATOR_DESC& desc, Microsoft::WRL::ComPtr<IDMLOperator>* out);
  Status CompileGraph(const DML_GRAPH_DESC& graph, DML_EXECUTION_FLAGS flags, CompiledOperator* out);
  Status CompileGraph(const GraphPlan& plan, DML_EXECUTION_FLAGS flags, CompiledOperator* out);
  Status Initialize(std::span<const DML_BUFFER_BINDING> owned, CompiledOperator* op);
  // `temporary`: shared by operators that run one after the other; null: one of its own.
  Status Record(const CompiledOperator& op, std::span<const DML_BUFFER_BINDING> inputs,
                std::span<const DML_BUFFER_BINDING> outputs, ID3D12Resource* temporary = nullptr);
  // Executes what was recorded; `data_error` as in RunResult.
  Status Execute(std::string* data_error);
  Status Read(ID3D12Resource* buffer, HostBuffer* bytes);
  // Drops recorded commands and messages after a failure; the session remains usable unless it is removed.
  void Discard();

  // Later commands in the list see the writes of earlier dispatches.
  void RecordBarrier();
  void RecordCopy(ID3D12Resource* target, ID3D12Resource* source, uint64_t bytes);
  // A buffer that the host writes (reads) at `memory` while it exists, and the copy of its bytes to another
  // one (from it).
  Status AllocateStaging(bool upload, uint64_t bytes, Microsoft::WRL::ComPtr<ID3D12Resource>* out,
                         std::byte** memory);
  void RecordUpload(ID3D12Resource* target, ID3D12Resource* staging);
  void RecordReadBack(ID3D12Resource* staging, ID3D12Resource* source);

  // Commands recorded between these two become a separate list; earlier commands are executed first.
  Status BeginList(bool timestamps);
  Status EndList(RecordedList* out);
  // Timestamps for a part of such a list only, which was begun without them.
  Status StartClock();
  void StopClock();
  // Only executes the list and waits for its end, so that it can be timed. CheckDevices tells whether the
  // devices survived.
  Status Execute(const RecordedList& list);
  Status CheckDevices();
  // The time between the two timestamps of the latest execution, by the device's clock.
  Status DeviceSeconds(const RecordedList& list, double* seconds);

 private:
  template <typename T>
  using ComPtr = Microsoft::WRL::ComPtr<T>;

  Session() = default;
  Status CreateDevices(const SessionOptions& options);
  Status CreateQueue();
  Status CreateList();
  Status QueryFeatureLevel();

  Status CreateBuffer(D3D12_HEAP_TYPE heap, D3D12_RESOURCE_STATES state, uint64_t bytes,
                      ComPtr<ID3D12Resource>* out);
  Status CreateTable(IDMLDispatchable* dispatchable, ComPtr<IDMLBindingTable>* table);
  Status ReserveDescriptors(uint32_t count);
  Status BindTemporary(IDMLDispatchable* dispatchable, ID3D12Resource* shared, IDMLBindingTable* table);
  void Transition(ID3D12Resource* resource, D3D12_RESOURCE_STATES before, D3D12_RESOURCE_STATES after);
  Status ReadBack(ID3D12Resource* buffer, uint64_t bytes, HostBuffer* out);
  Status SubmitAndWait();
  void ForgetRecorded();
  Status ExecuteAndWait(ID3D12CommandList* list);

  Status Check(HRESULT result, const char* what);
  std::string TakeMessages();

  Adapter adapter_;
  ComPtr<ID3D12Device> device_;
  ComPtr<ID3D12InfoQueue> messages_;
  ComPtr<IDMLDevice> dml_;
  ComPtr<ID3D12CommandQueue> queue_;
  ComPtr<ID3D12CommandAllocator> allocator_;
  ComPtr<ID3D12GraphicsCommandList> list_;
  ComPtr<ID3D12Fence> fence_;
  ComPtr<IDMLCommandRecorder> recorder_;
  uint64_t fence_value_ = 0;
  FeatureLevel feature_level_ = 0;
  bool debug_ = true;
  ComPtr<ID3D12QueryHeap> queries_;  // of the list that BeginList began, if it has timestamps
  bool clock_runs_ = false;          // the second timestamp is still to be recorded
  // What the recorded commands use, until they have been executed.
  std::vector<ComPtr<IUnknown>> keep_alive_;
  uint64_t staged_bytes_ = 0;          // to be uploaded by these commands
  ComPtr<ID3D12DescriptorHeap> heap_;  // the dispatches' descriptors, and how many are in use
  uint32_t used_descriptors_ = 0;
};

}  // namespace anydml::client
