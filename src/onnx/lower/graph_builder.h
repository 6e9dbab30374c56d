// A DirectML graph under construction. Operators are created as they are added; nodes that turn out to be
// unused are omitted from the description.
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
#include "onnx/file/tensor.h"
#include "onnx/model/program.h"

namespace anydml::onnx {

// Checks and creates operators: with a device, or only by the rules of a feature level.
class OperatorMaker {
 public:
  virtual ~OperatorMaker() = default;
  // `out` stays null if operators are only checked.
  virtual Status Make(const DML_OPERATOR_DESC& desc, Microsoft::WRL::ComPtr<IDMLOperator>* out) = 0;
  // True from feature level 6.2 on; before, every constant is an OWNED_BY_DML input.
  virtual bool has_constant_nodes() const { return true; }
};

// Bytes from a graph input, a constant or a node.
struct Source {
  enum class Kind : uint8_t { kNone, kInput, kConstant, kNode };
  Kind kind = Kind::kNone;
  uint32_t index = 0;
  uint32_t output = 0;

  auto operator<=>(const Source&) const = default;
};

// A source as an operator sees it. With any strides it stays within the packed tensor that was written.
struct View {
  Source source;
  DataType type = DataType::kUnknown;
  std::vector<uint32_t> sizes;
  std::vector<uint32_t> strides;
  uint64_t bytes = 0;  // TotalTensorSizeInBytes: the same at both ends of an edge

  size_t rank() const { return sizes.size(); }
  bool empty() const;
};

// Packed, without a source yet. A scalar has one dimension.
View PackedView(DataType type, std::span<const int64_t> shape);

// The same bytes with other sizes. `shape` must have as many elements.
View Reshaped(View view, std::span<const int64_t> shape);
// Dimension i of the result is dimension order[i].
View Permuted(const View& view, std::span<const uint32_t> order);
// With leading dimensions of 1, and stride 0 where a size of 1 is broadcast.
View Broadcast(const View& view, std::span<const int64_t> shape);
// With leading (trailing) dimensions of 1 up to this rank.
View AtLeast(View view, size_t rank);
View TrailingOnes(View view, size_t rank);

class GraphBuilder {
 public:
  explicit GraphBuilder(OperatorMaker* maker) : maker_(*maker) {}  // which outlives it

  // Graph inputs are values of the program; each value has a single one.
  Source Input(ValueId value);
  ValueId ValueOf(const Source& input) const { return inputs_[input.index]; }
  Source Constant(const Tensor& tensor);

  // For the fields of a description, in binding order. Null for null. Pointers are valid until the node is
  // added.
  const DML_TENSOR_DESC* In(const View* view);
  const DML_TENSOR_DESC* In(const View& view) { return In(&view); }
  const DML_TENSOR_DESC* InArray(std::span<const View> views);
  const DML_TENSOR_DESC* Out(View* view);
  const DML_TENSOR_DESC* OutArray(std::span<View> views);

  // Outputs without elements create no node: they become constants.
  template <typename Desc>
  Status Add(DML_OPERATOR_TYPE type, const Desc& desc) {
    return AddNode({type, &desc});
  }

  // Later nodes belong to this node of the model.
  void SetOrigin(std::string name) { origin_ = std::move(name); }

  // Consecutive nodes that become a separate graph.
  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };
  // Initialisation needs weights twice. Returns ranges with at most about this many bytes of weights, cut
  // where few tensors pass and where fusion is unlikely.
  std::vector<Range> Cut(std::span<const Source> outputs, uint64_t weight_bytes) const;
  // Of everything that the outputs need.
  uint64_t WeightBytes(std::span<const Source> outputs) const;

  // Frees constants that only nodes before `end` need, which will not be described again.
  void ReleaseConstants(std::span<const Source> outputs, size_t end);

  // The part of a range that the outputs need, in DirectML's form. The builder does not change.
  struct Description {
    struct GraphInput {
      ValueId value = kAbsent;           // or
      const Tensor* constant = nullptr;  // OWNED_BY_DML, or
      Source node;                       // of an earlier range
    };
    std::vector<GraphInput> inputs;
    std::vector<Source> outputs;  // of these nodes: the requested ones, then those that later ranges read
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
    std::vector<Source> inputs;  // in binding order; kNone if absent
    std::vector<uint64_t> output_bytes;
  };

  Status AddNode(const DML_OPERATOR_DESC& desc);
  Status AddCopies(std::vector<Source>* inputs);
  void Fill(const View& view, bool owned, DML_TENSOR_DESC* out);
  std::vector<bool> NeededNodes(std::span<const Source> outputs) const;
  bool IsOwned(const Source& source) const;
  // The bytes of weights that a node reads and that are not in `seen` yet.
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

  // For the node that is being described.
  std::deque<std::vector<DML_TENSOR_DESC>> tensors_;
  std::deque<DML_BUFFER_TENSOR_DESC> buffers_;
  std::deque<View> views_;  // whose sizes the buffers point to
  std::vector<Source> pending_inputs_;
  std::vector<View*> pending_outputs_;
  bool empty_input_ = false;
};

}  // namespace anydml::onnx
