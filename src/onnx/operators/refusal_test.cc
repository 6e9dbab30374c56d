// Invalid models with wrong sizes or attribute types that no other check detects.
#include "support/onnx_run.h"

namespace anydml::onnx {
namespace {

class OnnxRefusal : public OnnxRun {
 protected:
  // The error for a model with one node, whose inputs are zeros of these shapes.
  std::string FailureOf(int64_t opset, const std::string& type, const std::vector<Shape>& shapes,
                        const std::vector<Attribute>& attributes = {}, const std::string& domain = "",
                        size_t outputs = 1) {
    std::vector<Tensor> inputs;
    for (const Shape& shape : shapes)
      inputs.push_back(Floats(shape, Numbers(static_cast<size_t>(*ElementCount(shape)), 0)));
    return FailureWith(opset, type, inputs, attributes, domain, outputs);
  }
  std::string FailureWith(int64_t opset, const std::string& type, const std::vector<Tensor>& tensors,
                          const std::vector<Attribute>& attributes, const std::string& domain = "",
                          size_t outputs = 1) {
    ModelMaker maker(opset);
    maker.model.opsets["com.microsoft"] = 1;
    NodeProto node;
    node.type = type;
    node.domain = domain;
    node.attributes = attributes;
    std::map<std::string, Tensor> inputs;
    for (const Tensor& tensor : tensors) {
      node.inputs.push_back(StrCat("x", node.inputs.size()));
      maker.Input(node.inputs.back(), tensor.type, tensor.shape);
      inputs[node.inputs.back()] = tensor;
    }
    for (size_t i = 0; i < outputs; ++i) {
      node.outputs.push_back(StrCat("y", i));
      maker.Output(node.outputs.back());
    }
    maker.model.graph.nodes.push_back(node);
    Load(std::move(maker));
    return Failure(inputs);
  }
};

TEST_F(OnnxRefusal, AttributesOfAnotherKind) {
  const Shape x = {2, 2};
  EXPECT_EQ(FailureOf(16, "LeakyRelu", {x}, {IntAttribute("alpha", 1)}),
            "LeakyRelu-16: attribute alpha is an INT but must be a FLOAT");
  EXPECT_EQ(FailureOf(11, "ReduceSum", {x}, {TensorAttribute("axes", Ints({1}, {0}))}),
            "ReduceSum-11: attribute axes is a TENSOR but must be INTS");
  EXPECT_EQ(FailureOf(13, "Softmax", {x}, {FloatAttribute("axis", 0)}),
            "Softmax-13: attribute axis is a FLOAT but must be an INT");
  EXPECT_EQ(FailureOf(13, "Transpose", {x}, {TextAttribute("perm", "10")}),
            "Transpose-13: attribute perm is a STRING but must be INTS");
  EXPECT_EQ(FailureOf(13, "Gemm", {x, x}, {FloatAttribute("transB", 1)}),
            "Gemm-13: attribute transB is a FLOAT but must be an INT");
  EXPECT_EQ(FailureOf(20, "Gelu", {x}, {IntsAttribute("approximate", {1})}),
            "Gelu-20: attribute approximate is INTS but must be a STRING");
  EXPECT_EQ(FailureOf(14, "RNN", {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, {TextAttribute("activations", "Relu")}),
            "RNN-14: attribute activations is a STRING but must be STRINGS");
  EXPECT_EQ(FailureOf(13, "Concat", {x, x}), "Concat-13: attribute axis is missing; it has no default");
  // No node reads it.
  EXPECT_EQ(FailureOf(13, "Relu", {x}, {FloatAttribute("axis", 1)}), "");
}

// Old files omit the attribute's type.
TEST_F(OnnxRefusal, AttributesOfNoKind) {
  Attribute alpha = FloatAttribute("alpha", 0.5f);
  alpha.kind = AttributeKind::kUndefined;
  EXPECT_EQ(FailureOf(16, "LeakyRelu", {{2}}, {alpha}), "");
  EXPECT_EQ(FailureOf(1, "LpPool", {{1, 1, 2}}, {FloatAttribute("p", 2), IntsAttribute("kernel_shape", {2})}),
            "");
}

// A valid attribute of old files, which is ignored.
TEST_F(OnnxRefusal, TypesAsText) {
  EXPECT_EQ(FailureOf(5, "Cast", {{2}}, {TextAttribute("to", "INT32")}),
            "unsupported: Cast-5: to INT32, a type as text");
}

// On the host's path, and where several nodes are fused.
TEST_F(OnnxRefusal, AttributesOfAnotherKindOfConstants) {
  Load(ModelMaker(13)
           .Weight("a", Ints({2}, {1, 2}))
           .Node("Concat", {"a", "a"}, {"y"}, FloatAttribute("axis", 0))
           .Output("y", ElementType::kInt64));
  EXPECT_EQ(Failure({}), "Concat-13: attribute axis is a FLOAT but must be an INT");
  Load(ModelMaker(15)
           .Input("x", ElementType::kFloat, {1, 1, 1})
           .Weight("w", Floats({1, 1, 1}, {1}))
           .Weight("one", Floats({1}, {1}))
           .Node("Conv", {"x", "w"}, {"c"})
           .Node("BatchNormalization", {"c", "one", "one", "one", "one"}, {"y"}, IntAttribute("epsilon", 1))
           .Output("y"));
  EXPECT_EQ(Failure({{"x", Floats({1, 1, 1}, {1})}}),
            "BatchNormalization-15: attribute epsilon is an INT but must be a FLOAT");
}

TEST_F(OnnxRefusal, SizesThatDoNotFit) {
  const auto lengths = [](int64_t count) { return Ints({count}, std::vector<int64_t>(size_t(count), 1)); };
  const Tensor sequences = Floats({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(FailureWith(10, "ReverseSequence", {sequences, lengths(3)}, {}), "");
  for (const int64_t count : {1, 2, 4, 5})
    EXPECT_EQ(FailureWith(10, "ReverseSequence", {sequences, lengths(count)}, {}),
              StrCat("ReverseSequence-10: sequence_lens has the shape ", count, "; 3 is allowed"));
  EXPECT_EQ(FailureWith(10, "ReverseSequence", {sequences, lengths(2)}, {IntAttribute("batch_axis", 0)}),
            "ReverseSequence-10: time_axis and batch_axis are both 0; they must differ");
  for (const Shape& bias : std::vector<Shape>{{1}, {2}, {3}, {4, 2}})
    EXPECT_EQ(FailureOf(11, "ConvTranspose", {{1, 1, 2, 2}, {1, 4, 2, 2}, bias},
                        {IntsAttribute("strides", {2, 2})}),
              StrCat("ConvTranspose-11: B has the shape ", ShapeToString(bias), "; 4 is allowed"));
  EXPECT_EQ(FailureOf(18, "GroupNormalization", {{1, 4, 1}, {2}, {4}}, {IntAttribute("num_groups", 2)}),
            "GroupNormalization-18: bias has the shape 4; 2 is allowed");
  EXPECT_EQ(FailureOf(6, "InstanceNormalization", {{1, 2, 2}, {1}, {2}}),
            "InstanceNormalization-6: scale has the shape 1; 2 is allowed");
}

TEST_F(OnnxRefusal, SizesThatDoNotFitFusedOperators) {
  for (const char* const type : {"BiasGelu", "FastGelu"}) {
    EXPECT_EQ(FailureOf(17, type, {{2, 4}, {4}}, {}, "com.microsoft"), "");
    EXPECT_EQ(FailureOf(17, type, {{2, 4}, {3}}, {}, "com.microsoft"),
              StrCat("com.microsoft.", type, "-1: bias has the shape 3; 4 is allowed"));
  }
  const Shape x = {2, 3, 4}, width = {4};
  const auto skip = [&](const Shape& added) {
    return FailureOf(17, "SkipSimplifiedLayerNormalization", {x, added, width}, {}, "com.microsoft");
  };
  for (const Shape& added : std::vector<Shape>{x, {1, 3, 4}, {3, 4}}) EXPECT_EQ(skip(added), "");
  for (const Shape& added : std::vector<Shape>{{2, 2, 4}, {2, 3, 2}, {4}, {2, 1, 4}})
    EXPECT_EQ(skip(added), StrCat("com.microsoft.SkipSimplifiedLayerNormalization-1: skip has the shape ",
                                  ShapeToString(added), "; 2x3x4, 1x3x4 and 3x4 are allowed"));
  EXPECT_EQ(FailureOf(17, "SkipLayerNormalization", {x, x, width, width, {2}}, {}, "com.microsoft"),
            "com.microsoft.SkipLayerNormalization-1: bias has the shape 2; 4 is allowed");
  const Tensor bytes = Typed(ElementType::kUInt8, {2, 2}, {1, 2, 3, 4}), one = Floats({}, {1}),
               zero = Typed(ElementType::kUInt8, {}, {0});
  const Tensor weights = Typed(ElementType::kUInt8, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  EXPECT_EQ(
      FailureWith(17, "MatMulIntegerToFloat",
                  {bytes, weights, one, one, zero, zero, Floats({4}, {0, 0, 0, 0})}, {}, "com.microsoft"),
      "");
  EXPECT_EQ(FailureWith(17, "MatMulIntegerToFloat",
                        {bytes, weights, one, one, zero, zero, Floats({2}, {0, 0})}, {}, "com.microsoft"),
            "com.microsoft.MatMulIntegerToFloat-1: bias has the shape 2; 4 is allowed");
}

TEST_F(OnnxRefusal, AttributesThatContradictInputs) {
  EXPECT_EQ(FailureOf(13, "Split", {{7}}, {}, "", 2),
            "Split-13: an axis of 7 is not 2 equal parts; split has to say the sizes");
  EXPECT_EQ(FailureOf(18, "Split", {{7}}, {IntAttribute("num_outputs", 2)}, "", 2), "");
  EXPECT_EQ(FailureOf(18, "Split", {{6}}, {IntAttribute("num_outputs", 2)}, "", 3),
            "Split-18: num_outputs is 2; there are 3 outputs");
  EXPECT_EQ(FailureWith(18, "Split", {Floats({2}, {1, 2}), Ints({2}, {1, 1})},
                        {IntAttribute("num_outputs", 2)}, "", 2),
            "Split-18: split and num_outputs are both given; one of them is allowed");
  for (const char* const type : {"Conv", "ConvTranspose"})
    EXPECT_EQ(FailureOf(11, type, {{1, 1, 4, 4}, {1, 1, 2, 2}}, {IntsAttribute("kernel_shape", {3, 3})}),
              StrCat(type, "-11: kernel_shape is 3x3; the filter's sizes are 2x2"));
  EXPECT_EQ(FailureWith(13, "GatherElements", {Floats({2}, {1, 2}), Ints({}, {0})}, {}),
            "GatherElements-13: indices scalar for data 2; the same rank is allowed");
  EXPECT_EQ(FailureOf(14, "RNN", {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, {IntAttribute("hidden_size", 2)}),
            "RNN-14: hidden_size is 2; R 1x1x1 has 1");
  EXPECT_EQ(FailureOf(26, "BitCast", {{1}}, {IntAttribute("to", int64_t{1} << 40)}),
            "BitCast-26: to is 1099511627776, which is no type");
}

TEST_F(OnnxRefusal, WeightsAreNotReplaced) {
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {1})
           .Input("w", ElementType::kFloat, {1})
           .Weight("w", Floats({1}, {2}))
           .Node("Add", {"x", "w"}, {"y"})
           .Output("y"));
  const Tensor one = Floats({1}, {1});
  EXPECT_EQ(Run({{"x", one}}), (Numbers{3}));
  EXPECT_EQ(Failure({{"x", one}, {"w", one}}),
            "\"w\" has a value in the model, which cannot be replaced; inputs are x");
  EXPECT_EQ(Failure({{"x", one}, {"z", one}}), "the model has no input \"z\"; it has x");
}

}  // namespace
}  // namespace anydml::onnx
