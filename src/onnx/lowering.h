// One node of a model on its way to operators of DirectML: what the functions of the operator table are
// given.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx/graph_builder.h"
#include "onnx/node_facts.h"
#include "onnx/tensor.h"

namespace anydml::onnx {

// A value while a part of a program is compiled.
struct TraceValue {
  bool known = false;  // it has been computed, or comes from outside
  ElementType type = ElementType::kUndefined;
  Shape shape;
  Source source;                   // kNone: `constant`
  std::optional<Tensor> constant;  // its elements, where they are the same in every run
};

struct OperatorRow;

class Lowering : public NodeFacts {
 public:
  // `inputs` are null where they are absent, `host` where values are not known.
  Lowering(const ProgramNode& node, const OperatorRow& row, GraphBuilder* graph,
           std::vector<const TraceValue*> inputs, std::vector<std::optional<Tensor>> host)
      : NodeFacts(*node.proto, node.version),
        row_(row),
        graph_(*graph),
        inputs_(std::move(inputs)),
        host_(std::move(host)),
        results_(node.outputs.size()),
        node_(node) {}

  const OperatorRow& row() const { return row_; }
  GraphBuilder& graph() { return graph_; }

  size_t inputs() const { return inputs_.size(); }
  bool Has(size_t input) const { return input < inputs_.size() && inputs_[input] != nullptr; }
  size_t outputs() const { return results_.size(); }
  bool Wants(size_t output) const {
    return output < node_.outputs.size() && node_.outputs[output] != kAbsent;
  }

  ElementType type(size_t input) const { return inputs_[input]->type; }
  DataType dml_type(size_t input) const { return DmlType(type(input)); }
  const Shape& shape(size_t input) const { return inputs_[input]->shape; }
  size_t rank(size_t input) const { return shape(input).size(); }

  // The elements of an input that the table says has to be known; null when it is absent.
  const Tensor* Host(size_t input) const;
  std::vector<int64_t> HostInts(size_t input) const;
  std::vector<double> HostDoubles(size_t input) const;
  // The elements of any input, where they are constant.
  const Tensor* IfConstant(size_t input) const;

  // An input, packed; all of them are.
  View In(size_t input);
  View Constant(const Tensor& tensor);
  View New(DataType type, const Shape& shape) const { return PackedView(type, shape); }

  // `view` is packed and has as many elements as the shape.
  void Return(size_t output, const View& view, ElementType type, Shape shape);
  void Return(size_t output, Tensor constant);
  // The input's bytes.
  void Forward(size_t output, size_t input, Shape shape);

  std::vector<TraceValue> TakeResults() { return std::move(results_); }

 private:
  const OperatorRow& row_;
  GraphBuilder& graph_;
  const std::vector<const TraceValue*> inputs_;
  const std::vector<std::optional<Tensor>> host_;
  std::vector<TraceValue> results_;
  const ProgramNode& node_;
};

// A node whose inputs are all known, computed on the host.
class HostCall : public NodeFacts {
 public:
  HostCall(const ProgramNode& node, std::vector<const Tensor*> inputs)
      : NodeFacts(*node.proto, node.version), inputs_(std::move(inputs)), outputs(node.outputs.size()) {}

  size_t inputs() const { return inputs_.size(); }
  bool Has(size_t input) const { return input < inputs_.size() && inputs_[input] != nullptr; }
  const Tensor& In(size_t input) const { return *inputs_[input]; }

 private:
  const std::vector<const Tensor*> inputs_;

 public:
  std::vector<Tensor> outputs;
};

// Whether the host may compute it while a model is compiled: shapes and indices are small, weights are not.
inline constexpr int64_t kMaxHostElements = 1 << 16;

struct OperatorRow {
  const char* domain = nullptr;
  const char* name = nullptr;
  uint8_t min_inputs = 0;
  uint8_t max_inputs = 0;    // 255: any number
  uint32_t host_inputs = 0;  // bit i: the elements of input i have to be known
  Status (*lower)(Lowering& node) = nullptr;
  Status (*evaluate)(HostCall& call) = nullptr;  // null: only DirectML computes it
  int parameter = 0;      // what rows of one function differ in, often a DML_OPERATOR_TYPE
  bool forwards = false;  // the output has the bytes of input 0
  bool on_host = false;   // its results' sizes depend on data: the host computes it between two parts
  bool random = false;    // every run draws anew, so that nothing of it is constant
};

// What the row's functions say, unless an attribute that they read is of another kind.
Status LowerNode(const OperatorRow& row, Lowering& node);
Status EvaluateNode(const OperatorRow& row, HostCall& call);

// `lower` of operators that only `evaluate` computes.
inline Status OnHost(Lowering&) { return Unsupported("this type or size on the host"); }

// How many inputs there are, and that none is left out which has to be there. Functions rely on it, and on an
// output.
Status CheckInputs(const ProgramNode& node, const OperatorRow& row);

// Null when there is none. Versions are the functions' business.
const OperatorRow* FindOperator(std::string_view domain, std::string_view name);
// What to say where there is none.
std::string WhyUnknown(std::string_view domain);

}  // namespace anydml::onnx
