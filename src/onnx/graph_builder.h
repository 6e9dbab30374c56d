// A DirectML graph in the making. Operators are created as they are added; nodes that nobody turns out to
// need are left out of the description.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <DirectML.h>
#include <wrl/client.h>

#include "base/data_type.h"
#include "base/status.h"
#include "onnx/program.h"
#include "onnx/tensor.h"

namespace anydml::onnx {

// Who checks and creates operators: a device, or only the rules of a feature level.
class OperatorMaker {
 public:
  virtual ~OperatorMaker() = default;
  // `out` stays null where operators are only checked.
  virtual Status Make(const DML_OPERATOR_DESC& desc, Microsoft::WRL::ComPtr<IDMLOperator>* out) = 0;
  // From feature level 6.2 on; before that every constant is an OWNED_BY_DML input.
  virtual bool has_constant_nodes() const { return true; }
};

// Bytes that a graph input, a constant or a node provides.
struct Source {
  enum class Kind : uint8_t { kNone, kInput, kConstant, kNode };
  Kind kind = Kind::kNone;
  uint32_t index = 0;
  uint32_t output = 0;

  auto operator<=>(const Source&) const = default;
};

// How an operator sees them. Whatever the strides, they reach no further than the packed tensor that was
// written.
struct View {
  Source source;
  DataType type = DataType::kUnknown;
  std::vector<uint32_t> sizes;
  std::vector<uint32_t> strides;
  uint64_t bytes = 0;  // TotalTensorSizeInBytes: the same at both ends of an edge

  size_t rank() const { return sizes.size(); }
  bool empty() const;
};

// Packed, of nobody yet. A scalar has one dimension.
View PackedView(DataType type, std::span<const int64_t> shape);

// The same bytes with other sizes. `shape` has as many elements.
View Reshaped(View view, std::span<const int64_t> shape);
// Dimension i of the result is dimension order[i].
View Permuted(const View& view, std::span<const uint32_t> order);
// With leading dimensions of 1, then stride 0 where a size of 1 becomes another.
View Broadcast(const View& view, std::span<const int64_t> shape);
// With leading (trailing) dimensions of 1 up to this rank.
View AtLeast(View view, size_t rank);
View TrailingOnes(View view, size_t rank);

class GraphBuilder {
 public:
  explicit GraphBuilder(OperatorMaker* maker) : maker_(*maker) {}  // which outlives it

  // Graph inputs are values of the program; asking again gives the same one.
  Source Input(ValueId value);
  ValueId ValueOf(const Source& input) const { return inputs_[input.index]; }
  Source Constant(const Tensor& tensor);

  // For the fields of a description, in their order, which is the order of bindings. Null for null. Pointers
  // are valid until the node is added.
  const DML_TENSOR_DESC* In(const View* view);
  const DML_TENSOR_DESC* In(const View& view) { return In(&view); }
  const DML_TENSOR_DESC* InArray(std::span<const View> views);
  const DML_TENSOR_DESC* Out(View* view);
  const DML_TENSOR_DESC* OutArray(std::span<View> views);

  // Outputs without elements make nothing: they become constants.
  template <typename Desc>
  Status Add(DML_OPERATOR_TYPE type, const Desc& desc) {
    return AddNode({type, &desc});
  }

  // What follows belongs to this node of the model.
  void SetOrigin(std::string name) { origin_ = std::move(name); }

  // Nodes that follow each other and become a graph of their own.
  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };
  // Initialisation needs weights twice. Ranges with about so many bytes of them at most, which go from one to
  // the next where few tensors do and where nothing is likely to be fused.
  std::vector<Range> Cut(std::span<const Source> outputs, uint64_t weight_bytes) const;
  // Of everything that the outputs need.
  uint64_t WeightBytes(std::span<const Source> outputs) const;

  // Lets go of constants that only nodes before `end` need: nothing before it is described again.
  void ReleaseConstants(std::span<const Source> outputs, size_t end);

  // What the outputs need of a range, in DirectML's form. The builder stays as it is.
  struct Description {
    struct GraphInput {
      ValueId value = kAbsent;           // or
      const Tensor* constant = nullptr;  // OWNED_BY_DML, or
      Source node;                       // of a range before
    };
    std::vector<GraphInput> inputs;
    std::vector<Source> outputs;  // of these nodes: those asked for, then those that later ranges read
    std::deque<DML_OPERATOR_GRAPH_NODE_DESC> operators;
    std::deque<DML_CONSTANT_DATA_GRAPH_NODE_DESC> constants;
    std::deque<DML_INPUT_GRAPH_EDGE_DESC> input_edges;
    std::deque<DML_INTERMEDIATE_GRAPH_EDGE_DESC> intermediate_edges;
    std::deque<DML_OUTPUT_GRAPH_EDGE_DESC> output_edges;
    std::vector<DML_GRAPH_NODE_DESC> nodes;
    std::vector<DML_GRAPH_EDGE_DESC> inputs_desc, intermediates_desc, outputs_desc;
    DML_GRAPH_DESC desc{};
  };
  // `outputs` are of nodes.
  void Describe(std::span<const Source> outputs, const Range& range, Description* out) const;

  uint64_t BytesOf(const Source& node) const { return nodes_[node.index].output_bytes[node.output]; }
  size_t node_count() const { return nodes_.size(); }
  const std::vector<Tensor>& constants() const { return constants_; }

 private:
  struct Node {
    Microsoft::WRL::ComPtr<IDMLOperator> op;
    std::string origin;
    std::vector<Source> inputs;  // in binding order; kNone where absent
    std::vector<uint64_t> output_bytes;
  };

  Status AddNode(const DML_OPERATOR_DESC& desc);
  Status AddCopies(std::vector<Source>* inputs);
  void Fill(const View& view, bool owned, DML_TENSOR_DESC* out);
  std::vector<bool> NeededNodes(std::span<const Source> outputs) const;
  bool IsOwned(const Source& source) const;
  // The bytes of weights that a node reads and `seen` does not have yet.
  uint64_t NewWeightBytes(const Node& node, std::set<uint32_t>* seen) const;
  std::vector<uint32_t> LiveAt(std::span<const Source> outputs, const std::vector<bool>& needed) const;
  std::vector<Source> OutputsOf(const Range& range, std::span<const Source> outputs,
                                const std::vector<bool>& needed) const;

  OperatorMaker& maker_;
  std::string origin_;
  std::vector<ValueId> inputs_;
  std::map<ValueId, uint32_t> input_ids_;
  std::vector<Tensor> constants_;
  std::map<std::pair<const std::byte*, std::pair<ElementType, size_t>>, uint32_t> constant_ids_;
  std::vector<Node> nodes_;

  // Of the node that is being described.
  std::deque<std::vector<DML_TENSOR_DESC>> tensors_;
  std::deque<DML_BUFFER_TENSOR_DESC> buffers_;
  std::deque<View> views_;  // whose sizes the buffers point to
  std::vector<Source> pending_inputs_;
  std::vector<View*> pending_outputs_;
  bool empty_input_ = false;
};

}  // namespace anydml::onnx
