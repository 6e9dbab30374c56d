#include "onnx/file/write_model.h"

#include <bit>
#include <cstring>

namespace anydml::onnx {
namespace {

// Appends the fields of one message.
class WireWriter {
 public:
  void Int(uint32_t field, int64_t value) {
    Varint(field << 3);
    Varint(static_cast<uint64_t>(value));
  }
  void Float(uint32_t field, float value) {
    Varint(field << 3 | 5);
    char bytes[sizeof(value)];
    std::memcpy(bytes, &value, sizeof(value));
    out_.append(bytes, sizeof(value));
  }
  void Bytes(uint32_t field, std::string_view value) {
    Varint(field << 3 | 2);
    Varint(value.size());
    out_ += value;
  }
  std::string Take() { return std::move(out_); }

 private:
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }

  std::string out_;
};

std::string_view Text(onnx::Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string WriteGraph(const GraphProto& graph, size_t most_bytes);

std::string WriteAttribute(const Attribute& attribute) {
  WireWriter out;
  out.Bytes(1, attribute.name);
  switch (attribute.kind) {
    case AttributeKind::kFloat:
      out.Float(2, attribute.number);
      break;
    case AttributeKind::kInt:
      out.Int(3, attribute.integer);
      break;
    case AttributeKind::kString:
      out.Bytes(4, attribute.text);
      break;
    case AttributeKind::kTensor:
      out.Bytes(5, WriteTensor("", attribute.tensor));
      break;
    case AttributeKind::kGraph:
      if (attribute.graph) out.Bytes(6, WriteGraph(*attribute.graph, SIZE_MAX));
      break;
    case AttributeKind::kFloats:
      for (const float number : attribute.numbers) out.Float(7, number);
      break;
    case AttributeKind::kInts:
      for (const int64_t integer : attribute.integers) out.Int(8, integer);
      break;
    case AttributeKind::kStrings:
      for (const std::string& text : attribute.texts) out.Bytes(9, text);
      break;
    case AttributeKind::kUndefined:
      break;
  }
  out.Int(20, static_cast<int64_t>(attribute.kind));
  if (!attribute.reference.empty()) out.Bytes(21, attribute.reference);
  return out.Take();
}

std::string WriteNode(const NodeProto& node) {
  WireWriter out;
  for (const std::string& input : node.inputs) out.Bytes(1, input);
  for (const std::string& output : node.outputs) out.Bytes(2, output);
  if (!node.name.empty()) out.Bytes(3, node.name);
  out.Bytes(4, node.type);
  for (const Attribute& attribute : node.attributes) out.Bytes(5, WriteAttribute(attribute));
  if (!node.domain.empty()) out.Bytes(7, node.domain);
  if (!node.overload.empty()) out.Bytes(8, node.overload);
  return out.Take();
}

uint32_t TypeField(ValueKind kind) {
  switch (kind) {
    case ValueKind::kTensor:
      return 1;
    case ValueKind::kSequence:
      return 4;
    case ValueKind::kOptional:
      return 9;
    case ValueKind::kOther:
      break;
  }
  return 5;
}

std::string WriteValue(const ValueProto& value) {
  WireWriter tensor, type, out;
  tensor.Int(1, static_cast<int64_t>(value.type));
  if (value.has_shape) {
    WireWriter shape;
    for (size_t i = 0; i < value.shape.size(); ++i) {
      WireWriter dimension;
      if (value.shape[i] >= 0) dimension.Int(1, value.shape[i]);
      if (value.shape[i] < 0 && !value.symbols[i].empty()) dimension.Bytes(2, value.symbols[i]);
      shape.Bytes(1, dimension.Take());
    }
    tensor.Bytes(2, shape.Take());
  }
  // Of what is no tensor only the kind: a map stands for kinds that are not known.
  type.Bytes(TypeField(value.kind), value.kind == ValueKind::kTensor ? tensor.Take() : "");
  out.Bytes(1, value.name);
  out.Bytes(2, type.Take());
  return out.Take();
}

// A TensorProto whose elements are elsewhere.
std::string WriteExternal(const std::string& name, const Tensor& tensor) {
  WireWriter out, location;
  for (const int64_t size : tensor.shape) out.Int(1, size);
  out.Int(2, static_cast<int64_t>(tensor.type));
  out.Bytes(8, name);
  location.Bytes(1, "location");
  location.Bytes(2, "weights");  // not read: who reads the model gives the elements by the tensor's name
  out.Bytes(13, location.Take());
  out.Int(14, 1);  // EXTERNAL
  return out.Take();
}

std::string WriteGraph(const GraphProto& graph, size_t most_bytes) {
  WireWriter out;
  for (const NodeProto& node : graph.nodes) out.Bytes(1, WriteNode(node));
  out.Bytes(2, graph.name);
  for (const auto& [name, tensor] : graph.initializers) {
    const bool external = tensor.data.size() > most_bytes;
    out.Bytes(5, external ? WriteExternal(name, tensor) : WriteTensor(name, tensor));
  }
  for (const ValueProto& input : graph.inputs) out.Bytes(11, WriteValue(input));
  for (const ValueProto& output : graph.outputs) out.Bytes(12, WriteValue(output));
  return out.Take();
}

std::string WriteOpset(const std::string& domain, int64_t version) {
  WireWriter out;
  out.Bytes(1, domain);
  out.Int(2, version);
  return out.Take();
}

}  // namespace

std::string WriteTensor(const std::string& name, const Tensor& tensor) {
  WireWriter out;
  for (const int64_t size : tensor.shape) out.Int(1, size);
  out.Int(2, static_cast<int64_t>(tensor.type));
  if (!name.empty()) out.Bytes(8, name);
  out.Bytes(9, Text(tensor.data));
  return out.Take();
}

std::string WriteModel(const Model& model, size_t most_bytes) {
  WireWriter out;
  out.Int(1, model.ir_version);
  if (!model.producer.empty()) out.Bytes(2, model.producer);
  out.Bytes(7, WriteGraph(model.graph, most_bytes));
  for (const auto& [domain, version] : model.opsets) out.Bytes(8, WriteOpset(domain, version));
  return out.Take();
}

}  // namespace anydml::onnx
