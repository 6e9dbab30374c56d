// Small models for tests, written as a list of nodes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "onnx/file/model.h"

namespace anydml::onnx {

inline Attribute IntAttribute(std::string name, int64_t value) {
  Attribute attribute;
  attribute.name = std::move(name);
  attribute.kind = AttributeKind::kInt;
  attribute.integer = value;
  return attribute;
}

inline Attribute IntsAttribute(std::string name, std::vector<int64_t> values) {
  Attribute attribute;
  attribute.name = std::move(name);
  attribute.kind = AttributeKind::kInts;
  attribute.integers = std::move(values);
  return attribute;
}

inline Attribute FloatAttribute(std::string name, float value) {
  Attribute attribute;
  attribute.name = std::move(name);
  attribute.kind = AttributeKind::kFloat;
  attribute.number = value;
  return attribute;
}

inline Attribute FloatsAttribute(std::string name, std::vector<float> values) {
  Attribute attribute;
  attribute.name = std::move(name);
  attribute.kind = AttributeKind::kFloats;
  attribute.numbers = std::move(values);
  return attribute;
}

inline Attribute TextAttribute(std::string name, std::string value) {
  Attribute attribute;
  attribute.name = std::move(name);
  attribute.kind = AttributeKind::kString;
  attribute.text = std::move(value);
  return attribute;
}

inline Attribute TextsAttribute(std::string name, std::vector<std::string> values) {
  Attribute attribute;
  attribute.name = std::move(name);
  attribute.kind = AttributeKind::kStrings;
  attribute.texts = std::move(values);
  return attribute;
}

inline Attribute TensorAttribute(std::string name, Tensor tensor) {
  Attribute attribute;
  attribute.name = std::move(name);
  attribute.kind = AttributeKind::kTensor;
  attribute.tensor = std::move(tensor);
  return attribute;
}

inline Attribute GraphAttribute(std::string name, GraphProto graph) {
  Attribute attribute;
  attribute.name = std::move(name);
  attribute.kind = AttributeKind::kGraph;
  attribute.graph = std::make_shared<GraphProto>(std::move(graph));
  return attribute;
}

inline ValueProto Declared(std::string name, ElementType type, Shape shape) {
  ValueProto value;
  value.name = std::move(name);
  value.type = type;
  value.has_shape = true;
  value.symbols.resize(shape.size());
  value.shape = std::move(shape);
  return value;
}

inline Tensor Floats(Shape shape, std::vector<double> values) {
  return FromDoubles(ElementType::kFloat, std::move(shape), values);
}
inline Tensor Ints(Shape shape, std::vector<int64_t> values) { return Int64Tensor(std::move(shape), values); }

inline Tensor Typed(ElementType type, Shape shape, std::vector<int64_t> values) {
  return FromInts(type, std::move(shape), values);
}

// Outputs are declared without sizes, because inference is under test.
struct ModelMaker {
  Model model;

  explicit ModelMaker(int64_t opset) {
    model.ir_version = 8;
    model.opsets[""] = opset;
  }

  ModelMaker& Input(std::string name, ElementType type, Shape shape) {
    model.graph.inputs.push_back(Declared(std::move(name), type, std::move(shape)));
    return *this;
  }
  ModelMaker& Weight(const std::string& name, Tensor tensor) {
    model.graph.initializers[name] = std::move(tensor);
    return *this;
  }
  template <typename... Attributes>
  ModelMaker& Node(std::string type, std::vector<std::string> inputs, std::vector<std::string> outputs,
                   Attributes... attributes) {
    NodeProto& node = model.graph.nodes.emplace_back();
    node.type = std::move(type);
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    (node.attributes.push_back(std::move(attributes)), ...);
    return *this;
  }
  // Of the domain "com.microsoft".
  template <typename... Attributes>
  ModelMaker& Microsoft(std::string type, std::vector<std::string> inputs, std::vector<std::string> outputs,
                        Attributes... attributes) {
    Node(std::move(type), std::move(inputs), std::move(outputs), std::move(attributes)...);
    model.graph.nodes.back().domain = "com.microsoft";
    model.opsets["com.microsoft"] = 1;
    return *this;
  }
  ModelMaker& Output(std::string name, ElementType type = ElementType::kFloat) {
    ValueProto value;
    value.name = std::move(name);
    value.type = type;
    model.graph.outputs.push_back(std::move(value));
    return *this;
  }
};

}  // namespace anydml::onnx
