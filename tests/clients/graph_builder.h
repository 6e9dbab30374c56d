// In the style of a header-only expression library: expressions create operators as they are evaluated, and
// the graph's description is built from them at the end.
#ifndef ANYDML_TESTS_CLIENTS_GRAPH_BUILDER_H_
#define ANYDML_TESTS_CLIENTS_GRAPH_BUILDER_H_

#include <DirectML.h>
#include <wil/result.h>
#include <wrl/client.h>

#include <cstring>
#include <deque>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace client {

using Microsoft::WRL::ComPtr;
using Dimensions = std::vector<UINT>;

inline UINT ElementSize(DML_TENSOR_DATA_TYPE type) {
  switch (type) {
    case DML_TENSOR_DATA_TYPE_FLOAT64:
    case DML_TENSOR_DATA_TYPE_UINT64:
    case DML_TENSOR_DATA_TYPE_INT64:
      return 8;
    case DML_TENSOR_DATA_TYPE_FLOAT16:
    case DML_TENSOR_DATA_TYPE_UINT16:
    case DML_TENSOR_DATA_TYPE_INT16:
      return 2;
    case DML_TENSOR_DATA_TYPE_UINT8:
    case DML_TENSOR_DATA_TYPE_INT8:
      return 1;
    default:
      return 4;
  }
}

// A description that owns its arrays. The result of Get is valid while this object lives and does not move.
class Tensor {
 public:
  Tensor(DML_TENSOR_DATA_TYPE type, Dimensions sizes, Dimensions strides = {},
         DML_TENSOR_FLAGS flags = DML_TENSOR_FLAG_NONE)
      : type_(type), sizes_(std::move(sizes)), strides_(std::move(strides)), flags_(flags) {}

  DML_TENSOR_DATA_TYPE type() const { return type_; }
  const Dimensions& sizes() const { return sizes_; }

  UINT64 TotalBytes() const {
    UINT64 last = 0, packed = 1;
    for (size_t i = sizes_.size(); i-- > 0;) {
      last += (sizes_[i] - 1) * (strides_.empty() ? packed : strides_[i]);
      packed *= sizes_[i];
    }
    return ((last + 1) * ElementSize(type_) + 3) & ~UINT64{3};
  }

  const DML_TENSOR_DESC* Get() const {
    buffer_ = {type_,
               flags_,
               static_cast<UINT>(sizes_.size()),
               sizes_.data(),
               strides_.empty() ? nullptr : strides_.data(),
               TotalBytes(),
               0};
    desc_ = {DML_TENSOR_TYPE_BUFFER, &buffer_};
    return &desc_;
  }

 private:
  DML_TENSOR_DATA_TYPE type_;
  Dimensions sizes_;
  Dimensions strides_;
  DML_TENSOR_FLAGS flags_;
  mutable DML_BUFFER_TENSOR_DESC buffer_ = {};
  mutable DML_TENSOR_DESC desc_ = {};
};

class Graph;

// An input of the graph or an output of a node, viewed as a tensor.
struct Expression {
  Graph* graph;
  bool is_input;
  UINT index;   // of the input or the node
  UINT output;  // of the node
  Tensor tensor;
};

class Graph {
 public:
  explicit Graph(IDMLDevice* device) { THROW_IF_FAILED(device->QueryInterface(IID_PPV_ARGS(&device_))); }

  Expression Input(UINT index, Tensor tensor) {
    input_count_ = std::max(input_count_, index + 1);
    return {this, true, index, 0, std::move(tensor)};
  }

  // All inputs of the program, used or not.
  void SetInputCount(UINT count) { input_count_ = count; }

  template <typename T>
  Expression Constant(const std::vector<T>& values, Tensor tensor) {
    Node node;
    node.name = "constant";
    node.data.resize(values.size() * sizeof(T));
    memcpy(node.data.data(), values.data(), node.data.size());
    nodes_.push_back(std::move(node));
    return {this, false, static_cast<UINT>(nodes_.size() - 1), 0, std::move(tensor)};
  }

  // An absent optional input is null.
  std::vector<Expression> Add(DML_OPERATOR_TYPE type, const void* desc,
                              const std::vector<const Expression*>& inputs,
                              const std::vector<Tensor>& outputs) {
    Node node;
    const DML_OPERATOR_DESC operator_desc = {type, desc};
    THROW_IF_FAILED(device_->CreateOperator(&operator_desc, IID_PPV_ARGS(&node.op)));
    node.name = "node " + std::to_string(nodes_.size());
    for (const Expression* input : inputs) {
      node.inputs.push_back(input == nullptr ? std::nullopt : std::optional<Expression>(*input));
    }
    nodes_.push_back(std::move(node));
    std::vector<Expression> results;
    for (const Tensor& output : outputs) {
      results.push_back(
          {this, false, static_cast<UINT>(nodes_.size() - 1), static_cast<UINT>(results.size()), output});
    }
    return results;
  }

  // An absent output has no edge.
  HRESULT TryCompile(DML_EXECUTION_FLAGS flags, const std::vector<const Expression*>& outputs,
                     IDMLCompiledOperator** compiled) {
    std::deque<DML_OPERATOR_GRAPH_NODE_DESC> operators;
    std::deque<DML_CONSTANT_DATA_GRAPH_NODE_DESC> constants;
    std::deque<DML_INPUT_GRAPH_EDGE_DESC> from_inputs;
    std::deque<DML_INTERMEDIATE_GRAPH_EDGE_DESC> between;
    std::deque<DML_OUTPUT_GRAPH_EDGE_DESC> to_outputs;
    std::vector<DML_GRAPH_NODE_DESC> nodes;
    std::vector<DML_GRAPH_EDGE_DESC> input_edges, intermediate_edges, output_edges;
    for (const Node& node : nodes_) {
      const auto index = static_cast<UINT>(nodes.size());
      if (node.op == nullptr) {
        constants.push_back({node.data.data(), node.data.size(), node.name.c_str()});
        nodes.push_back({DML_GRAPH_NODE_TYPE_CONSTANT, &constants.back()});
        continue;
      }
      operators.push_back({node.op.Get(), node.name.c_str()});
      nodes.push_back({DML_GRAPH_NODE_TYPE_OPERATOR, &operators.back()});
      for (UINT i = 0; i < node.inputs.size(); ++i) {
        if (!node.inputs[i]) continue;
        const Expression& input = *node.inputs[i];
        if (input.is_input) {
          from_inputs.push_back({input.index, index, i, nullptr});
          input_edges.push_back({DML_GRAPH_EDGE_TYPE_INPUT, &from_inputs.back()});
        } else {
          between.push_back({input.index, input.output, index, i, "edge"});
          intermediate_edges.push_back({DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &between.back()});
        }
      }
    }
    for (UINT i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == nullptr) continue;
      // An edge from an input directly to an output is not possible.
      THROW_HR_IF(E_INVALIDARG, outputs[i]->is_input);
      to_outputs.push_back({outputs[i]->index, outputs[i]->output, i, "result"});
      output_edges.push_back({DML_GRAPH_EDGE_TYPE_OUTPUT, &to_outputs.back()});
    }
    const DML_GRAPH_DESC desc = {input_count_,
                                 static_cast<UINT>(outputs.size()),
                                 static_cast<UINT>(nodes.size()),
                                 nodes.data(),
                                 static_cast<UINT>(input_edges.size()),
                                 input_edges.data(),
                                 static_cast<UINT>(output_edges.size()),
                                 output_edges.data(),
                                 static_cast<UINT>(intermediate_edges.size()),
                                 intermediate_edges.data()};
    return device_->CompileGraph(&desc, flags, IID_PPV_ARGS(compiled));
  }

  ComPtr<IDMLCompiledOperator> Compile(const std::vector<const Expression*>& outputs,
                                       DML_EXECUTION_FLAGS flags = DML_EXECUTION_FLAG_NONE) {
    ComPtr<IDMLCompiledOperator> compiled;
    THROW_IF_FAILED(TryCompile(flags, outputs, compiled.GetAddressOf()));
    return compiled;
  }

 private:
  struct Node {
    ComPtr<IDMLOperator> op;  // null: a constant
    std::vector<std::optional<Expression>> inputs;
    std::vector<BYTE> data;
    std::string name;
  };

  ComPtr<IDMLDevice1> device_;
  UINT input_count_ = 0;
  std::vector<Node> nodes_;
};

// The same bytes as another tensor.
inline Expression Reinterpret(Expression value, Tensor tensor) {
  value.tensor = std::move(tensor);
  return value;
}

template <typename Desc>
Expression Binary(DML_OPERATOR_TYPE type, const Expression& a, const Expression& b) {
  const Tensor output(a.tensor.type(), a.tensor.sizes());
  const Desc desc = {a.tensor.Get(), b.tensor.Get(), output.Get()};
  return a.graph->Add(type, &desc, {&a, &b}, {output})[0];
}

inline Expression operator+(const Expression& a, const Expression& b) {
  return Binary<DML_ELEMENT_WISE_ADD_OPERATOR_DESC>(DML_OPERATOR_ELEMENT_WISE_ADD, a, b);
}
inline Expression operator-(const Expression& a, const Expression& b) {
  return Binary<DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC>(DML_OPERATOR_ELEMENT_WISE_SUBTRACT, a, b);
}
inline Expression operator*(const Expression& a, const Expression& b) {
  return Binary<DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC>(DML_OPERATOR_ELEMENT_WISE_MULTIPLY, a, b);
}

// value * scale + bias
inline Expression Scaled(const Expression& value, float scale, float bias) {
  const Tensor output(value.tensor.type(), value.tensor.sizes());
  const DML_SCALE_BIAS scale_bias = {scale, bias};
  const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC desc = {value.tensor.Get(), output.Get(), &scale_bias};
  return value.graph->Add(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &desc, {&value}, {output})[0];
}
inline Expression operator*(float scale, const Expression& value) { return Scaled(value, scale, 0); }
inline Expression operator+(const Expression& value, float bias) { return Scaled(value, 1, bias); }

inline Expression Identity(const Expression& value) {
  const Tensor output(value.tensor.type(), value.tensor.sizes());
  const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC desc = {value.tensor.Get(), output.Get(), nullptr};
  return value.graph->Add(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &desc, {&value}, {output})[0];
}

inline Expression Relu(const Expression& value) {
  const Tensor output(value.tensor.type(), value.tensor.sizes());
  const DML_ACTIVATION_RELU_OPERATOR_DESC desc = {value.tensor.Get(), output.Get()};
  return value.graph->Add(DML_OPERATOR_ACTIVATION_RELU, &desc, {&value}, {output})[0];
}

inline Expression Cast(const Expression& value, DML_TENSOR_DATA_TYPE type) {
  const Tensor output(type, value.tensor.sizes());
  const DML_CAST_OPERATOR_DESC desc = {value.tensor.Get(), output.Get()};
  return value.graph->Add(DML_OPERATOR_CAST, &desc, {&value}, {output})[0];
}

inline Expression Softmax(const Expression& value, UINT axis) {
  const Tensor output(value.tensor.type(), value.tensor.sizes());
  const DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC desc = {value.tensor.Get(), output.Get(), 1, &axis};
  return value.graph->Add(DML_OPERATOR_ACTIVATION_SOFTMAX1, &desc, {&value}, {output})[0];
}

inline Expression Sum(const Expression& value, UINT axis) {
  Dimensions sizes = value.tensor.sizes();
  sizes[axis] = 1;
  const Tensor output(value.tensor.type(), sizes);
  const DML_REDUCE_OPERATOR_DESC desc = {DML_REDUCE_FUNCTION_SUM, value.tensor.Get(), output.Get(), 1, &axis};
  return value.graph->Add(DML_OPERATOR_REDUCE, &desc, {&value}, {output})[0];
}

inline std::vector<Expression> Split(const Expression& value, UINT axis, const std::vector<UINT>& parts) {
  std::vector<Tensor> outputs;
  for (const UINT part : parts) {
    Dimensions sizes = value.tensor.sizes();
    sizes[axis] = part;
    outputs.emplace_back(value.tensor.type(), sizes);
  }
  std::vector<DML_TENSOR_DESC> descs;
  for (const Tensor& output : outputs) descs.push_back(*output.Get());
  const DML_SPLIT_OPERATOR_DESC desc = {value.tensor.Get(), static_cast<UINT>(descs.size()), descs.data(),
                                        axis};
  return value.graph->Add(DML_OPERATOR_SPLIT, &desc, {&value}, outputs);
}

inline Expression Join(const std::vector<const Expression*>& values, UINT axis) {
  Dimensions sizes = values[0]->tensor.sizes();
  sizes[axis] = 0;
  std::vector<DML_TENSOR_DESC> descs;
  for (const Expression* value : values) {
    sizes[axis] += value->tensor.sizes()[axis];
    descs.push_back(*value->tensor.Get());
  }
  const Tensor output(values[0]->tensor.type(), sizes);
  const DML_JOIN_OPERATOR_DESC desc = {static_cast<UINT>(descs.size()), descs.data(), output.Get(), axis};
  return values[0]->graph->Add(DML_OPERATOR_JOIN, &desc, values, {output})[0];
}

// The values and their indices.
inline std::vector<Expression> TopK(const Expression& value, UINT axis, UINT k) {
  Dimensions sizes = value.tensor.sizes();
  sizes[axis] = k;
  const std::vector<Tensor> outputs = {{value.tensor.type(), sizes}, {DML_TENSOR_DATA_TYPE_UINT32, sizes}};
  const DML_TOP_K1_OPERATOR_DESC desc = {
      value.tensor.Get(), outputs[0].Get(), outputs[1].Get(), axis, k, DML_AXIS_DIRECTION_DECREASING};
  return value.graph->Add(DML_OPERATOR_TOP_K1, &desc, {&value}, outputs);
}

struct GemmOptions {
  const Expression* c = nullptr;
  bool transpose_b = false;
  float alpha = 1;
  bool relu = false;
};

inline Expression Gemm(const Expression& a, const Expression& b, const GemmOptions& options = {}) {
  Dimensions sizes = a.tensor.sizes();
  sizes[3] = b.tensor.sizes()[options.transpose_b ? 2 : 3];
  const Tensor output(a.tensor.type(), sizes);
  const DML_ACTIVATION_RELU_OPERATOR_DESC relu = {};
  const DML_OPERATOR_DESC activation = {DML_OPERATOR_ACTIVATION_RELU, &relu};
  const DML_GEMM_OPERATOR_DESC desc = {
      a.tensor.Get(),
      b.tensor.Get(),
      options.c == nullptr ? nullptr : options.c->tensor.Get(),
      output.Get(),
      DML_MATRIX_TRANSFORM_NONE,
      options.transpose_b ? DML_MATRIX_TRANSFORM_TRANSPOSE : DML_MATRIX_TRANSFORM_NONE,
      options.alpha,
      1,
      options.relu ? &activation : nullptr};
  return a.graph->Add(DML_OPERATOR_GEMM, &desc, {&a, &b, options.c}, {output})[0];
}

// 3x3, padded so that height and width stay.
inline Expression Convolution3x3(const Expression& input, const Expression& filter, const Expression* bias) {
  Dimensions sizes = input.tensor.sizes();
  sizes[1] = filter.tensor.sizes()[0];
  const Tensor output(input.tensor.type(), sizes);
  const UINT ones[] = {1, 1};
  const UINT zeros[] = {0, 0};
  const DML_CONVOLUTION_OPERATOR_DESC desc = {input.tensor.Get(),
                                              filter.tensor.Get(),
                                              bias == nullptr ? nullptr : bias->tensor.Get(),
                                              output.Get(),
                                              DML_CONVOLUTION_MODE_CROSS_CORRELATION,
                                              DML_CONVOLUTION_DIRECTION_FORWARD,
                                              2,
                                              ones,
                                              ones,
                                              ones,
                                              ones,
                                              zeros,
                                              1,
                                              nullptr};
  return input.graph->Add(DML_OPERATOR_CONVOLUTION, &desc, {&input, &filter, bias}, {output})[0];
}

inline Expression Filled(Graph* graph, const Tensor& tensor, float value) {
  DML_SCALAR_UNION scalar = {};
  scalar.Float32 = value;
  const DML_FILL_VALUE_CONSTANT_OPERATOR_DESC desc = {tensor.Get(), DML_TENSOR_DATA_TYPE_FLOAT32, scalar};
  return graph->Add(DML_OPERATOR_FILL_VALUE_CONSTANT, &desc, {}, {tensor})[0];
}

}  // namespace client

#endif  // ANYDML_TESTS_CLIENTS_GRAPH_BUILDER_H_
