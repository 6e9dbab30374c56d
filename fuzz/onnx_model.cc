#include "onnx_model.h"

#include "base/status.h"
#include "onnx/operators/operator_list.h"
#include "support/onnx_models.h"

namespace anydml::fuzz {
namespace {

using onnx::Attribute;
using onnx::ElementType;
using onnx::GraphProto;
using onnx::NodeProto;
using onnx::Shape;
using onnx::Tensor;

constexpr ElementType kTypes[] = {ElementType::kFloat,   ElementType::kFloat,  ElementType::kFloat,
                                  ElementType::kInt64,   ElementType::kInt64,  ElementType::kInt32,
                                  ElementType::kFloat16, ElementType::kBool,   ElementType::kUInt8,
                                  ElementType::kInt8,    ElementType::kDouble, ElementType::kUInt32};

// Small, because valid large models would take long.
Shape AnyShape(ByteSource& source) {
  Shape shape(source.Between(0, 4));
  for (int64_t& size : shape) size = source.OneIn(16) ? source.Between(0, 9) : source.Between(1, 4);
  return shape;
}

int64_t AnyNumber(ByteSource& source) {
  constexpr int64_t kOdd[] = {INT64_MIN, INT64_MAX, INT32_MAX, -1000, 1 << 20, int64_t{1} << 32};
  return source.OneIn(32) ? source.Any(kOdd) : static_cast<int64_t>(source.Between(0, 8)) - 2;
}

std::vector<int64_t> AnyNumbers(ByteSource& source, size_t count) {
  std::vector<int64_t> numbers(count);
  for (int64_t& number : numbers) number = AnyNumber(source);
  return numbers;
}

size_t CountOf(const Shape& shape) {
  size_t count = 1;
  for (const int64_t size : shape) count *= static_cast<size_t>(size);
  return count;
}

// With few distinct elements, because bytes have more effect elsewhere.
Tensor AnyTensor(ByteSource& source, ElementType type, const Shape& shape) {
  const std::vector<int64_t> few = AnyNumbers(source, source.Between(1, 4));
  std::vector<int64_t> elements(CountOf(shape));
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = few[i % few.size()];
  return onnx::FromInts(type, shape, elements);
}

class Maker {
 public:
  explicit Maker(ByteSource& source) : source_(source), type_(source.Any(kTypes)), shape_(AnyShape(source)) {}

  onnx::Model Make() {
    onnx::Model model;
    model.ir_version = 8;
    model.opsets[""] = source_.OneIn(4) ? source_.Between(1, 25) : 17;
    model.opsets["com.microsoft"] = 1;
    Fill(&model.graph, 0);
    return model;
  }

 private:
  // Most values have the same type, so that many operators take them.
  ElementType Type() { return source_.OneIn(4) ? source_.Any(kTypes) : type_; }
  Shape SomeShape() { return source_.OneIn(4) ? AnyShape(source_) : shape_; }

  std::string NewName() { return StrCat("v", names_++); }

  // Usually an existing value.
  std::string AnyValue() {
    if (values_.empty() || source_.OneIn(32)) return source_.OneIn(2) ? "" : "nothing";
    // Later values are more likely, so that nodes depend on each other.
    const auto last = static_cast<uint32_t>(values_.size() - 1);
    return values_[last - std::min(last, source_.Between(0, 5))];
  }

  void Fill(GraphProto* graph, int depth) {
    const size_t outside = values_.size();
    for (uint32_t i = depth == 0 ? source_.Between(1, 3) : source_.Between(0, 1); i > 0; --i) {
      graph->inputs.push_back(onnx::Declared(NewName(), Type(), SomeShape()));
      if (source_.OneIn(32)) graph->inputs.back().has_shape = false;
      values_.push_back(graph->inputs.back().name);
    }
    for (uint32_t i = source_.Between(0, 3); i > 0; --i) {
      const std::string name = NewName();
      graph->initializers[name] = AnyTensor(source_, Type(), SomeShape());
      values_.push_back(name);
    }
    for (uint32_t i = source_.Between(1, depth == 0 ? 5 : 2); i > 0; --i)
      graph->nodes.push_back(AnyNode(depth));
    for (uint32_t i = source_.Between(1, 2); i > 0; --i) {
      onnx::ValueProto output;
      output.name = AnyValue();
      output.type = Type();
      graph->outputs.push_back(output);
    }
    values_.resize(outside);  // invisible outside the body
  }

  NodeProto AnyNode(int depth) {
    static const std::vector<const onnx::OperatorRow*> rows = onnx::AllOperators();
    NodeProto node;
    uint32_t least = 0, most = 4, results = source_.OneIn(4) ? source_.Between(0, 4) : 1;
    if (depth == 0 && source_.OneIn(12)) {
      constexpr const char* kWithGraphs[] = {"If", "Loop", "Scan"};
      node.type = source_.Any(kWithGraphs);
      for (const char* name : {"then_branch", "else_branch", "body"}) {
        GraphProto graph;
        Fill(&graph, depth + 1);
        node.attributes.push_back(onnx::GraphAttribute(name, std::move(graph)));
      }
    } else if (source_.OneIn(64)) {
      node.type = "NobodyKnows";
    } else {
      const onnx::OperatorRow& row = *source_.Any(rows);
      node.type = row.name;
      node.domain = row.domain;
      least = row.min_inputs;
      most = std::min<uint32_t>(row.max_inputs, least + 4);
    }
    const uint32_t count =
        source_.OneIn(16) ? source_.Between(0, 6) : source_.Between(least, std::max(least, most));
    for (uint32_t i = 0; i < count; ++i) node.inputs.push_back(AnyValue());
    for (uint32_t i = source_.OneIn(2) ? source_.Between(1, 3) : 0; i > 0; --i)
      node.attributes.push_back(AnyAttribute());
    for (uint32_t i = 0; i < results; ++i) {
      node.outputs.push_back(NewName());
      values_.push_back(node.outputs.back());
    }
    return node;
  }

  Attribute AnyAttribute() {
    constexpr const char* kInt[] = {"axis",        "keepdims",
                                    "group",       "transA",
                                    "transB",      "to",
                                    "ceil_mode",   "num_outputs",
                                    "exclusive",   "reverse",
                                    "batch_axis",  "select_last_index",
                                    "blocksize",   "largest",
                                    "sorted",      "num_heads",
                                    "hidden_size", "count_include_pad",
                                    "allowzero",   "noop_with_empty_axes"};
    constexpr const char* kInts[] = {"axes",           "perm",         "kernel_shape", "pads",
                                     "strides",        "dilations",    "split",        "shape",
                                     "output_padding", "output_shape", "starts",       "ends"};
    constexpr const char* kFloat[] = {"alpha", "beta",  "epsilon", "momentum",
                                      "bias",  "lambd", "scale",   "ratio"};
    constexpr const char* kText[] = {"mode",         "auto_pad",   "direction",
                                     "reduction",    "equation",   "coordinate_transformation_mode",
                                     "nearest_mode", "approximate"};
    constexpr const char* kTexts[] = {
        "linear",  "nearest", "cubic",      "SAME_UPPER",    "SAME_LOWER", "VALID", "bidirectional",
        "reverse", "reflect", "edge",       "wrap",          "add",        "max",   "ij,jk->ik",
        "...i->i", "tanh",    "asymmetric", "align_corners", "mean",       "sum",   ""};
    switch (source_.Between(0, 4)) {
      case 0:
        return onnx::IntAttribute(source_.Any(kInt), AnyNumber(source_));
      case 1:
        return onnx::IntsAttribute(source_.Any(kInts), AnyNumbers(source_, source_.Between(0, 5)));
      case 2:
        return onnx::FloatAttribute(source_.Any(kFloat), static_cast<float>(AnyNumber(source_)));
      case 3:
        return onnx::TextAttribute(source_.Any(kText), source_.Any(kTexts));
      default:
        return onnx::TensorAttribute("value", AnyTensor(source_, source_.Any(kTypes), AnyShape(source_)));
    }
  }

  ByteSource& source_;
  const ElementType type_;
  const Shape shape_;
  int names_ = 0;
  std::vector<std::string> values_;
};

}  // namespace

onnx::Model AnyModel(ByteSource& source) { return Maker(source).Make(); }

std::map<std::string, Tensor> AnyInputs(ByteSource& source, const onnx::Model& model) {
  std::map<std::string, Tensor> inputs;
  for (const onnx::ValueProto& input : model.graph.inputs) {
    inputs[input.name] = AnyTensor(source, input.type, input.has_shape ? input.shape : AnyShape(source));
  }
  return inputs;
}

}  // namespace anydml::fuzz
