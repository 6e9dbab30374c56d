// The fused and quantized operators of com.microsoft.
#include "support/onnx_run.h"

namespace anydml::onnx {
namespace {

Tensor Bytes(Shape shape, std::vector<int64_t> values) {
  return Typed(ElementType::kUInt8, std::move(shape), std::move(values));
}

TEST_F(OnnxRun, FusedProducts) {
  Load(ModelMaker(17)
           .Input("a", ElementType::kFloat, {2, 2})
           .Weight("b", Floats({2, 2}, {1, 0, 0, 1}))
           .Weight("c", Floats({2}, {-2, 0}))
           .Microsoft("FusedGemm", {"a", "b", "c"}, {"y"}, TextAttribute("activation", "LeakyRelu"),
                      FloatAttribute("activation_alpha", 0.5f))
           .Output("y"));
  EXPECT_EQ(Run({{"a", Floats({2, 2}, {1, 2, 3, 4})}}), (Numbers{-0.5, 2, 1, 4}));
  // Sequence rows before batches.
  Load(ModelMaker(17)
           .Input("a", ElementType::kFloat, {1, 2, 2})
           .Weight("b", Floats({2, 2, 1}, {1, 1, 2, 2}))
           .Microsoft("FusedMatMul", {"a", "b"}, {"y"}, IntAttribute("transBatchA", 1),
                      FloatAttribute("alpha", 2))
           .Output("y"));
  EXPECT_EQ(Run({{"a", Floats({1, 2, 2}, {1, 2, 3, 4})}}), (Numbers{6, 28}));
  EXPECT_EQ(shape_, (Shape{2, 1, 1}));
}

TEST_F(OnnxRun, FusedConvolutions) {
  Load(ModelMaker(17)
           .Input("x", ElementType::kFloat, {1, 1, 1, 3})
           .Input("z", ElementType::kFloat, {1, 1, 1, 3})
           .Weight("w", Floats({1, 1, 1, 1}, {2}))
           .Microsoft("FusedConv", {"x", "w", "", "z"}, {"y"}, TextAttribute("activation", "Relu"))
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({1, 1, 1, 3}, {1, 2, 3})}, {"z", Floats({1, 1, 1, 3}, {-5, 0, 1})}}),
            (Numbers{0, 4, 7}));
  Load(ModelMaker(17)
           .Input("x", ElementType::kFloat, {1, 1, 2, 2})
           .Weight("w", Floats({2, 1, 1, 2}, {1, 10, 100, 1000}))
           .Microsoft("NhwcConv", {"x", "w"}, {"y"})
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({1, 1, 2, 2}, {1, 2, 3, 4})}}), (Numbers{21, 2100, 43, 4300}));
}

TEST_F(OnnxRun, FusedSums) {
  Load(ModelMaker(17)
           .Input("x", ElementType::kFloat, {1, 1, 4})
           .Weight("b", Floats({4}, {1, 2, 0, 0}))
           .Microsoft("BiasSplitGelu", {"x", "b"}, {"y"})
           .Output("y"));
  const Numbers y = Run({{"x", Floats({1, 1, 4}, {1, 2, 0, 100})}});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(y[0], 0);
  EXPECT_NEAR(y[1], 400, 1e-3);
  Load(ModelMaker(17)
           .Input("x", ElementType::kFloat, {1, 1, 2})
           .Weight("b", Floats({2}, {1, 2}))
           .Microsoft("BiasAdd", {"x", "b", "x"}, {"y"})
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({1, 1, 2}, {3, 4})}}), (Numbers{7, 10}));
}

TEST_F(OnnxRun, FusedNormalizations) {
  Load(ModelMaker(17)
           .Input("x", ElementType::kFloat, {1, 1, 2, 2})
           .Weight("gamma", Floats({2}, {1, 2}))
           .Weight("beta", Floats({2}, {0, 1}))
           .Microsoft("GroupNorm", {"x", "gamma", "beta"}, {"y"}, IntAttribute("groups", 2),
                      FloatAttribute("epsilon", 0))
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({1, 1, 2, 2}, {1, 10, 3, 30})}}), (Numbers{-1, -1, 1, 3}));
  Load(ModelMaker(17)
           .Input("ids", ElementType::kInt32, {1, 2})
           .Weight("words", Floats({2, 2}, {0, 0, 3, 5}))
           .Weight("places", Floats({3, 2}, {1, 3, 0, 0, 7, 7}))
           .Weight("gamma", Floats({2}, {1, 1}))
           .Weight("beta", Floats({2}, {0, 0}))
           .Weight("mask", Typed(ElementType::kInt32, {1, 2}, {1, 0}))
           .Microsoft("EmbedLayerNormalization", {"ids", "", "words", "places", "", "gamma", "beta", "mask"},
                      {"y", "count", "sum"}, FloatAttribute("epsilon", 0))
           .Output("y")
           .Output("count", ElementType::kInt32)
           .Output("sum"));
  const std::map<std::string, Tensor> inputs = {{"ids", Typed(ElementType::kInt32, {1, 2}, {0, 1})}};
  EXPECT_EQ(Run(inputs), (Numbers{-1, 1, -1, 1}));
  EXPECT_EQ(Output(inputs, 1), (Numbers{1}));
  EXPECT_EQ(Output(inputs, 2), (Numbers{1, 3, 3, 5}));
}

TEST_F(OnnxRun, QuantizedElements) {
  const Tensor half = Floats({}, {0.5}), one = Floats({}, {1}), ten = Bytes({}, {10});
  Load(ModelMaker(17)
           .Input("x", ElementType::kUInt8, {2})
           .Weight("half", half)
           .Weight("one", one)
           .Weight("ten", ten)
           .Microsoft("QLinearMul", {"x", "half", "ten", "x", "one", "", "one", "ten"}, {"y"})
           .Output("y", ElementType::kUInt8));
  EXPECT_EQ(Run({{"x", Bytes({2}, {12, 20})}}), (Numbers{22, 110}));  // (x - 10) / 2 * x + 10
  Load(ModelMaker(17)
           .Input("x", ElementType::kUInt8, {1, 2})
           .Weight("half", half)
           .Weight("one", one)
           .Weight("none", Bytes({}, {0}))
           .Weight("ten", ten)
           .Microsoft("QLinearConcat", {"one", "ten", "x", "half", "ten", "x", "one", "none"}, {"y"},
                      IntAttribute("axis", 1))
           .Output("y", ElementType::kUInt8));
  EXPECT_EQ(Run({{"x", Bytes({1, 2}, {12, 20})}}), (Numbers{11, 15, 22, 30}));
  Load(ModelMaker(17)
           .Input("x", ElementType::kUInt8, {1, 2, 1, 2})
           .Weight("half", half)
           .Weight("one", one)
           .Weight("ten", ten)
           .Microsoft("QLinearGlobalAveragePool", {"x", "half", "ten", "one", "ten"}, {"y"},
                      IntAttribute("channels_last", 1))
           .Output("y", ElementType::kUInt8));
  EXPECT_EQ(Run({{"x", Bytes({1, 2, 1, 2}, {12, 20, 16, 40})}}), (Numbers{12, 20}));
  EXPECT_EQ(shape_, (Shape{1, 1, 1, 2}));
  Load(ModelMaker(17)
           .Input("x", ElementType::kUInt8, {2})
           .Weight("half", half)
           .Weight("one", one)
           .Weight("ten", ten)
           .Microsoft("QLinearLeakyRelu", {"x", "one", "ten", "half", "ten"}, {"y"},
                      FloatAttribute("alpha", 0.5))
           .Output("y", ElementType::kUInt8));
  EXPECT_EQ(Run({{"x", Bytes({2}, {8, 13})}}), (Numbers{8, 16}));
}

TEST_F(OnnxRun, QuantizedProducts) {
  Load(
      ModelMaker(17)
          .Input("a", ElementType::kUInt8, {1, 2})
          .Weight("one", Floats({}, {1}))
          .Weight("two", Floats({}, {2}))
          .Weight("zero", Bytes({}, {1}))
          .Weight("b", Bytes({2, 2}, {1, 2, 3, 4}))
          .Weight("c", Typed(ElementType::kInt32, {2}, {5, 6}))
          .Microsoft("QGemm", {"a", "one", "zero", "b", "two", "zero", "c"}, {"y"}, IntAttribute("transB", 1))
          .Output("y"));
  // (a - 1) * (b - 1)^T = {1*0 + 2*1, 1*2 + 2*3}, + c, * 2
  EXPECT_EQ(Run({{"a", Bytes({1, 2}, {2, 3})}}), (Numbers{14, 28}));
  Load(ModelMaker(17)
           .Input("a", ElementType::kFloat, {1, 1, 2})
           .Weight("b", Bytes({2, 1}, {2, 4}))
           .Weight("scale", Floats({1}, {0.5}))
           .Weight("bias", Floats({1}, {1}))
           .Microsoft("DynamicQuantizeMatMul", {"a", "b", "scale", "", "bias"}, {"y"})
           .Output("y"));
  EXPECT_EQ(Run({{"a", Floats({1, 1, 2}, {0, 255})}}), (Numbers{511}));
}

TEST_F(OnnxRun, QuantizedRecurrence) {
  // All weights are 0 except the cell gate's, which is 1: half of tanh(1) enters the cell, and half of the
  // cell's tanh leaves it.
  Load(ModelMaker(17)
           .Input("x", ElementType::kFloat, {1, 1, 1})
           .Weight("w", Bytes({1, 1, 4}, {1, 1, 1, 3}))
           .Weight("r", Bytes({1, 1, 4}, {1, 1, 1, 1}))
           .Weight("scale", Floats({1}, {0.5}))
           .Weight("one", Bytes({1}, {1}))
           .Microsoft("DynamicQuantizeLSTM",
                      {"x", "w", "r", "", "", "", "", "", "scale", "one", "scale", "one"}, {"y"},
                      IntAttribute("hidden_size", 1))
           .Output("y"));
  const Numbers y = Run({{"x", Floats({1, 1, 1}, {1})}});
  ASSERT_EQ(y.size(), 1u);
  EXPECT_NEAR(y[0], 0.18170, 1e-4);  // tanh(0.76159 / 2) / 2
}

TEST_F(OnnxRun, WeightsInBlocks) {
  Load(ModelMaker(17)
           .Input("a", ElementType::kFloat, {1, 4})
           .Weight("b", Bytes({1, 1, 4}, {129, 127, 128, 130}))
           .Weight("scale", Floats({1}, {2}))
           .Microsoft("MatMulNBits", {"a", "b", "scale"}, {"y"}, IntAttribute("K", 4), IntAttribute("N", 1),
                      IntAttribute("bits", 8), IntAttribute("block_size", 4))
           .Output("y"));
  EXPECT_EQ(Run({{"a", Floats({1, 4}, {1, 2, 3, 4})}}), (Numbers{14}));  // 2 * (1 - 2 + 8)
  // Two columns of three numbers in blocks of two. The second block is padded (15), and each column's zero
  // points take one and a half bytes.
  Load(ModelMaker(17)
           .Input("a", ElementType::kFloat, {1, 3})
           .Weight("b", Bytes({2, 2, 1}, {0x21, 0xF3, 0x54, 0xF6}))
           .Weight("scale", Floats({4}, {1, 2, 1, 1}))
           .Weight("zero", Bytes({2}, {0x31, 0x64}))
           .Microsoft("MatMulNBits", {"a", "b", "scale", "zero"}, {"y"}, IntAttribute("K", 3),
                      IntAttribute("N", 2), IntAttribute("block_size", 2))
           .Output("y"));
  EXPECT_EQ(Run({{"a", Floats({1, 3}, {1, 10, 100})}}), (Numbers{10, 10}));
  // One block each: 1 2 and 3 around 1 and 0.
  Load(ModelMaker(17)
           .Input("a", ElementType::kFloat, {1, 2})
           .Weight("b", Bytes({2, 1, 1}, {0x21, 0x03}))
           .Weight("scale", Floats({2}, {1, 1}))
           .Weight("zero", Bytes({2}, {0x01, 0x00}))
           .Microsoft("MatMulNBits", {"a", "b", "scale", "zero"}, {"y"}, IntAttribute("K", 2),
                      IntAttribute("N", 2), IntAttribute("block_size", 2))
           .Output("y"));
  EXPECT_EQ(Run({{"a", Floats({1, 2}, {1, 10})}}), (Numbers{10, 3}));
  // Two rows of four numbers, blocks of two: 9 8 7 10 and 8 8 12 4 around 8.
  Load(ModelMaker(17)
           .Input("at", ElementType::kInt64, {1})
           .Weight("data", Bytes({2, 2}, {0x89, 0xA7, 0x88, 0x4C}))
           .Weight("scale", Floats({2, 2}, {1, 2, 1, 0.5}))
           .Microsoft("GatherBlockQuantized", {"data", "at", "scale"}, {"y"}, IntAttribute("block_size", 2))
           .Output("y"));
  EXPECT_EQ(Run({{"at", Ints({1}, {1})}}), (Numbers{0, 0, 2, -2}));
  EXPECT_EQ(Run({{"at", Ints({1}, {0})}}), (Numbers{1, 0, -2, 4}));
}

TEST_F(OnnxRun, RowsInBlocksThatAreNotWhole) {
  // Two rows of six numbers, blocks of four: -7 .. -2 and 1 .. 6 around 8.
  const auto load = [&](const Tensor& scale) {
    Load(ModelMaker(17)
             .Input("at", ElementType::kInt64, {-1})
             .Weight("data", Bytes({2, 3}, {0x21, 0x43, 0x65, 0xA9, 0xCB, 0xED}))
             .Weight("scale", scale)
             .Microsoft("GatherBlockQuantized", {"data", "at", "scale"}, {"y"}, IntAttribute("block_size", 4))
             .Output("y"));
  };
  load(Floats({2, 2}, {1, 10, 2, 100}));
  EXPECT_EQ(Run({{"at", Ints({2}, {1, 0})}}), (Numbers{2, 4, 6, 8, 500, 600, -7, -6, -5, -4, -30, -20}));
  EXPECT_EQ(shape_, (Shape{2, 6}));
  load(Floats({2, 3}, {1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(
      Failure({{"at", Ints({1}, {0})}}),
      "com.microsoft.GatherBlockQuantized-1: scales have the shape 2x3; block_size 4 for 6 columns needs "
      "2x2");
}

}  // namespace
}  // namespace anydml::onnx
