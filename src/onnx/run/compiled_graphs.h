// The compiled graphs of a part, which run one after the other. Each is initialised separately, so that only
// some of the weights are in memory twice, as in the file and as kernels pack them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "client/session.h"
#include "onnx/lower/graph_builder.h"

namespace anydml::onnx {

// Bound buffers are multiples of 4 bytes.
uint64_t BufferBytes(ElementType type, const Shape& shape);

class CompiledGraphs {
 public:
  using Buffer = Microsoft::WRL::ComPtr<ID3D12Resource>;

  // Compiles and initialises what the outputs need; weights are read now and not again, and the builder keeps
  // none of its constants. Graphs of `other`, the same for other sizes, that packed the same bytes are
  // shared; it may be null.
  Status Create(GraphBuilder* builder, std::span<const Source> outputs, const CompiledGraphs* other,
                client::Session* session, DML_EXECUTION_FLAGS flags = DML_EXECUTION_FLAG_NONE);

  bool empty() const { return graphs_.empty(); }
  // AnyDmlExplainImplementation's lines, of one graph after the other.
  std::string explanation() const;
  // Values to be given.
  const std::vector<ValueId>& inputs() const { return inputs_; }
  // The sizes of the outputs, then of the values that one graph leaves for another; the caller allocates
  // both.
  const std::vector<uint64_t>& slot_bytes() const { return slot_bytes_; }
  // Memory of weights, without shared ones of other graphs.
  uint64_t persistent_bytes() const { return persistent_bytes_; }

  // `inputs` as inputs(), with at least `input_bytes` each; `slots` as slot_bytes(). `temporary` is allocated
  // if it is null.
  Status Record(std::span<const Buffer> inputs, std::span<const uint64_t> input_bytes,
                std::span<const Buffer> slots, Buffer* temporary, client::Session* session) const;

 private:
  struct Place {
    enum class In : uint8_t { kNowhere, kInput, kSlot } in = In::kNowhere;  // kNowhere: a weight
    size_t index = 0;
  };
  struct Graph {
    client::CompiledOperator compiled;
    std::vector<Place> inputs;
    std::vector<size_t> outputs;  // slots
  };
  // The place of weights while a graph is initialised.
  struct Weights;

  Status Add(const GraphBuilder& builder, const GraphBuilder::Description& description,
             const CompiledGraphs* other, client::Session* session, DML_EXECUTION_FLAGS flags);
  // The latest graph.
  Status ShareWeights(const CompiledGraphs& other, client::Session* session);
  Place PlaceOf(const GraphBuilder::Description::GraphInput& input);

  std::vector<Graph> graphs_;
  std::vector<ValueId> inputs_;
  std::vector<uint64_t> slot_bytes_;
  std::map<ValueId, size_t> input_numbers_;
  std::map<Source, size_t> slots_;
  uint64_t temporary_bytes_ = 0;  // of the graph that needs most
  uint64_t persistent_bytes_ = 0;
};

}  // namespace anydml::onnx
