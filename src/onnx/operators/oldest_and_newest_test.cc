// Rarely used operators, old and new.
#include <cmath>

#include "support/onnx_run.h"

namespace anydml::onnx {
namespace {

TEST_F(OnnxRun, OldOperatorsOfImages) {
  const Tensor x = Floats({1, 2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  Load(ModelMaker(7)
           .Input("x", ElementType::kFloat, {1, 2, 2, 2})
           .Node("ImageScaler", {"x"}, {"y"}, FloatAttribute("scale", 2), FloatsAttribute("bias", {1, -1}))
           .Output("y"));
  EXPECT_EQ(Run({{"x", x}}), (Numbers{3, 5, 7, 9, 9, 11, 13, 15}));
  Load(ModelMaker(7)
           .Input("x", ElementType::kFloat, {1, 2, 2, 2})
           .Node("Crop", {"x"}, {"y"}, IntsAttribute("border", {1, 0, 0, 1}))  // left, top, right, bottom
           .Output("y"));
  EXPECT_EQ(Run({{"x", x}}), (Numbers{2, 6}));
  Load(ModelMaker(7)
           .Input("x", ElementType::kFloat, {1, 2, 2, 2})
           .Node("Crop", {"x"}, {"y"}, IntsAttribute("border", {0, 1, 0, 0}), IntsAttribute("scale", {1, 2}))
           .Output("y"));
  EXPECT_EQ(Run({{"x", x}}), (Numbers{3, 4, 7, 8}));
  Load(ModelMaker(7)
           .Input("x", ElementType::kFloat, {1, 2, 2, 2})
           .Node("Crop", {"x"}, {"y"}, IntsAttribute("border", {2, 0, 0, 0}))
           .Output("y"));
  EXPECT_NE(Failure({{"x", x}}).find("from 2 on 0 of 2 pixels"), std::string::npos);
  Load(ModelMaker(7)
           .Input("x", ElementType::kFloat, {2})
           .Node("Affine", {"x"}, {"y"}, FloatAttribute("alpha", 3), FloatAttribute("beta", 1))
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({2}, {1, 2})}}), (Numbers{4, 7}));
}

TEST_F(OnnxRun, BitsAsAnotherType) {
  Load(ModelMaker(26)
           .Input("x", ElementType::kFloat, {2})
           .Node("BitCast", {"x"}, {"y"}, IntAttribute("to", static_cast<int64_t>(ElementType::kInt32)))
           .Output("y", ElementType::kInt32));
  EXPECT_EQ(Run({{"x", Floats({2}, {1, -2})}}), (Numbers{0x3f800000, -0x40000000}));
  Load(ModelMaker(26)
           .Input("x", ElementType::kFloat, {2})
           .Node("BitCast", {"x"}, {"y"}, IntAttribute("to", static_cast<int64_t>(ElementType::kInt64)))
           .Output("y", ElementType::kInt64));
  EXPECT_NE(Failure({{"x", Floats({2}, {1, -2})}}).find("which have 32 and 64 bits"), std::string::npos);
}

TEST_F(OnnxRun, GatesTimesValues) {
  Load(ModelMaker(28)
           .Input("a", ElementType::kFloat, {2})
           .Input("b", ElementType::kFloat, {2})
           .Node("SwiGLU", {"a", "b"}, {"y"}, FloatAttribute("alpha", 2))
           .Output("y"));
  const Numbers y = Run({{"a", Floats({2}, {0, 1})}, {"b", Floats({2}, {5, 3})}});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(y[0], 0);
  EXPECT_NEAR(y[1], 3 / (1 + std::exp(-2.0)), 1e-6);
}

TEST_F(OnnxRun, ConvolutionsThatRememberTheirInput) {
  for (const bool with_past : {false, true}) {
    ModelMaker maker(27);
    std::vector<std::string> names = {"x", "w"};
    if (with_past) maker.Weight("past", Floats({1, 1, 1}, {10})), names.insert(names.end(), {"", "past"});
    maker.Input("x", ElementType::kFloat, {1, 1, 3}).Weight("w", Floats({1, 1, 2}, {1, 2}));
    maker.Node("CausalConvWithState", names, {"y", "present"}).Output("y").Output("present");
    Load(std::move(maker));
    const std::map<std::string, Tensor> inputs = {{"x", Floats({1, 1, 3}, {1, 2, 3})}};
    EXPECT_EQ(Run(inputs), (Numbers{with_past ? 12.0 : 2.0, 5, 8}));
    EXPECT_EQ(Output(inputs, 1), (Numbers{3}));
  }
}

// One head with one number: the state decays by half, and its prediction for the key is subtracted from the
// value.
TEST_F(OnnxRun, AttentionAsARecurrence) {
  Load(ModelMaker(27)
           .Input("x", ElementType::kFloat, {1, 2, 1})
           .Weight("decay", Floats({1, 2, 1}, {std::log(0.5), std::log(0.5)}))
           .Weight("beta", Floats({1, 2, 1}, {1, 0.5}))
           .Weight("past", Floats({1, 1, 1, 1}, {2}))
           .Node("LinearAttention", {"x", "x", "x", "past", "decay", "beta"}, {"y", "present"},
                 IntAttribute("q_num_heads", 1), IntAttribute("kv_num_heads", 1))
           .Output("y")
           .Output("present"));
  // 2/2 = 1, + 3 * 1 * (3 - 1 * 3) = 1; times 3. Then 0.5, + 2 * 0.5 * (2 - 0.5 * 2) = 1.5; times 2.
  const std::map<std::string, Tensor> inputs = {{"x", Floats({1, 2, 1}, {3, 2})}};
  EXPECT_EQ(Run(inputs), (Numbers{3, 3}));
  EXPECT_EQ(Output(inputs, 1), (Numbers{1.5}));
}

TEST_F(OnnxRun, ProductsOfWhatDirectMlDoesNotMultiply) {
  for (const ElementType type : {ElementType::kDouble, ElementType::kInt32, ElementType::kUInt64}) {
    Load(ModelMaker(13)
             .Input("a", type, {2, 1, 2})
             .Weight("b", Typed(type, {2, 3}, {1, 2, 3, 4, 5, 6}))
             .Node("MatMul", {"a", "b"}, {"y"})
             .Output("y", type));
    EXPECT_EQ(Run({{"a", Typed(type, {2, 1, 2}, {1, 2, 3, 4})}}), (Numbers{9, 12, 15, 19, 26, 33}));
    EXPECT_EQ(shape_, (Shape{2, 1, 3}));
  }
  const ElementType type = ElementType::kDouble;
  Load(ModelMaker(13)
           .Input("a", type, {2, 1})
           .Weight("b", Typed(type, {3, 2}, {1, 4, 2, 5, 3, 6}))
           .Weight("c", Typed(type, {3}, {1, 0, 1}))
           .Node("Gemm", {"a", "b", "c"}, {"y"}, IntAttribute("transA", 1), IntAttribute("transB", 1),
                 FloatAttribute("alpha", 2), FloatAttribute("beta", 3))
           .Output("y", type));
  EXPECT_EQ(Run({{"a", Typed(type, {2, 1}, {1, 2})}}), (Numbers{21, 24, 33}));
  Load(ModelMaker(26)
           .Input("x", type, {3})
           .Weight("axis", Ints({}, {0}))
           .Node("CumProd", {"x", "axis"}, {"y"}, IntAttribute("exclusive", 1))
           .Output("y", type));
  EXPECT_EQ(Run({{"x", Typed(type, {3}, {2, 3, 4})}}), (Numbers{1, 2, 6}));
}

TEST_F(OnnxRun, FunctionsOfDoubles) {
  const ElementType type = ElementType::kDouble;
  const Numbers x = {-1.5, 0.25, 3};
  for (const auto& [name, function] : std::vector<std::pair<std::string, double (*)(double)>>{
           {"Sin", std::sin}, {"Cos", std::cos}, {"Tan", std::tan}, {"Tanh", std::tanh}, {"Erf", std::erf}}) {
    Load(ModelMaker(13).Input("x", type, {3}).Node(name, {"x"}, {"y"}).Output("y", type));
    EXPECT_EQ(Run({{"x", FromDoubles(type, {3}, x)}}),
              (Numbers{function(x[0]), function(x[1]), function(x[2])}));
  }
  Load(ModelMaker(13).Input("x", type, {3}).Node("Relu", {"x"}, {"y"}).Output("y", type));
  EXPECT_EQ(Run({{"x", FromDoubles(type, {3}, x)}}), (Numbers{0, 0.25, 3}));
  Load(ModelMaker(13)
           .Input("x", type, {3})
           .Node("IsInf", {"x"}, {"y"}, IntAttribute("detect_negative", 0))
           .Output("y", ElementType::kBool));
  EXPECT_EQ(Run({{"x", FromDoubles(type, {3}, Numbers{-HUGE_VAL, HUGE_VAL, 1})}}), (Numbers{0, 1, 0}));
}

TEST_F(OnnxRun, HalfASpectrumBackToASignal) {
  Load(ModelMaker(20)
           .Input("x", ElementType::kFloat, {1, 3, 2})
           .Node("DFT", {"x"}, {"y"}, IntAttribute("inverse", 1), IntAttribute("onesided", 1))
           .Output("y"));
  // The transform of 1, 2, 3, 4; the imaginary parts of the first and last element are ignored.
  const Numbers y = Run({{"x", Floats({1, 3, 2}, {10, 7, -2, 2, -2, 9})}});
  ASSERT_EQ(shape_, (Shape{1, 4, 1}));
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(y[i], static_cast<double>(i + 1), 1e-6);
}

}  // namespace
}  // namespace anydml::onnx
