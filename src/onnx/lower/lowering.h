// One node of a model while it is lowered to DirectML operators: the argument of the operator table's
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onnx/file/tensor.h"
#include "onnx/lower/graph_builder.h"
#include "onnx/model/node_facts.h"

namespace anydml::onnx {

// A value while a part of a program is compiled.
struct TraceValue {
  bool known = false;  // it has been computed, or comes from outside
  ElementType type = ElementType::kUndefined;
  Shape shape;
  Source source;                   // kNone: `constant` has the value
  std::optional<Tensor> constant;  // its elements, if they are the same in every run
};

struct OperatorRow;

class Lowering : public NodeFacts {
 public:
  // `inputs` are null if absent, `host` if values are not known.
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

  // The elements of an input that the table declares as required to be known; null if it is absent.
  const Tensor* Host(size_t input) const;
  std::vector<int64_t> HostInts(size_t input) const;
  std::vector<double> HostDoubles(size_t input) const;
  // The elements of any input, if they are constant.
  const Tensor* IfConstant(size_t input) const;

  // An input, which is packed.
  View In(size_t input);
  View Constant(const Tensor& tensor);
  View New(DataType type, const Shape& shape) const { return PackedView(type, shape); }

  // `view` is packed and has as many elements as the shape.
  void Return(size_t output, const View& view, ElementType type, Shape shape);
  void Return(size_t output, Tensor constant);
  // Returns the input's bytes.
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

// A node with known inputs, computed on the host.
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

// The most elements for computing on the host while a model is compiled: shapes and indices are small,
// weights are not.
inline constexpr int64_t kMaxHostElements = 1 << 16;

struct OperatorRow {
  const char* domain = nullptr;
  const char* name = nullptr;
  uint8_t min_inputs = 0;
  uint8_t max_inputs = 0;    // 255: any number
  uint32_t host_inputs = 0;  // bit i: the elements of input i must be known
  Status (*lower)(Lowering& node) = nullptr;
  Status (*evaluate)(HostCall& call) = nullptr;  // null: only DirectML computes it
  int parameter = 0;      // what distinguishes rows with the same function, often a DML_OPERATOR_TYPE
  bool forwards = false;  // the output has the bytes of input 0
  bool on_host = false;   // sizes of results depend on data: the host computes it between two parts
  bool random = false;    // every run draws new numbers, so no result is constant
};

// The result of the row's functions, or an error if an attribute that they read has the wrong kind.
Status LowerNode(const OperatorRow& row, Lowering& node);
Status EvaluateNode(const OperatorRow& row, HostCall& call);

// `lower` for operators that only `evaluate` computes.
inline Status OnHost(Lowering&) { return Unsupported("this type or size on the host"); }

// Checks the number of inputs, and that required ones are present. Functions rely on that, and on at least
// one output.
Status CheckInputs(const ProgramNode& node, const OperatorRow& row);

// Null if there is none. The functions check versions.
const OperatorRow* FindOperator(std::string_view domain, std::string_view name);
// The error message for an unknown operator.
std::string WhyUnknown(std::string_view domain);

}  // namespace anydml::onnx
