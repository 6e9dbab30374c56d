// Nodes that are resolved before a run, into a graph or away: branches with a constant condition, constants,
// loops that never run, and empty tensors.
#include "support/onnx_run.h"

namespace anydml::onnx {
namespace {

Tensor Truth(bool value) { return Typed(ElementType::kBool, {}, {value ? 1 : 0}); }

GraphProto Branch(std::vector<NodeProto> nodes, const std::string& output) {
  GraphProto graph;
  graph.nodes = std::move(nodes);
  graph.outputs.push_back(Declared(output, ElementType::kFloat, {2}));
  return graph;
}

// if a: (if b: -x * 3, else: x * 3) else: x + sum(x), which depends on an input
TEST_F(OnnxRun, BranchesInBranches) {
  GraphProto inner_yes = Branch({{"", "Neg", "", {"t"}, {"n"}, {}}}, "n");
  GraphProto inner_no = Branch({{"", "Identity", "", {"t"}, {"i"}, {}}}, "i");
  NodeProto inner{"", "If", "", {"b"}, {"z"}, {}};
  inner.attributes = {GraphAttribute("then_branch", inner_yes), GraphAttribute("else_branch", inner_no)};
  GraphProto yes = Branch({{"", "Mul", "", {"x", "three"}, {"t"}, {}}, inner}, "z");
  yes.initializers["three"] = Floats({}, {3});
  GraphProto no =
      Branch({{"", "ReduceSum", "", {"x"}, {"s"}, {}}, {"", "Add", "", {"x", "s"}, {"w"}, {}}}, "w");
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {2})
           .Input("a", ElementType::kBool, {})
           .Input("b", ElementType::kBool, {})
           .Node("If", {"a"}, {"y"}, GraphAttribute("then_branch", yes), GraphAttribute("else_branch", no))
           .Node("Abs", {"y"}, {"unused"})
           .Output("y"));
  const Tensor x = Floats({2}, {1, 2});
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(Run({{"x", x}, {"a", Truth(true)}, {"b", Truth(true)}}), (Numbers{-3, -6}));
    EXPECT_EQ(Run({{"x", x}, {"a", Truth(true)}, {"b", Truth(false)}}), (Numbers{3, 6}));
    EXPECT_EQ(Run({{"x", x}, {"a", Truth(false)}, {"b", Truth(true)}}), (Numbers{4, 5}));
  }
}

// A condition that changes with every run does not cause a compilation in every run.
TEST_F(OnnxRun, ConditionsOfManyValues) {
  const GraphProto yes = Branch({{"", "Neg", "", {"x"}, {"a"}, {}}}, "a");
  const GraphProto no = Branch({{"", "Identity", "", {"x"}, {"b"}, {}}}, "b");
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {2})
           .Input("n", ElementType::kInt64, {})
           .Weight("five", Ints({}, {5}))
           .Node("Less", {"n", "five"}, {"c"})
           .Node("If", {"c"}, {"y"}, GraphAttribute("then_branch", yes), GraphAttribute("else_branch", no))
           .Output("y"));
  for (int64_t n = 0; n < 12; ++n) {
    const double sign = n < 5 ? -1 : 1;
    EXPECT_EQ(Run({{"x", Floats({2}, {1, 2})}, {"n", Ints({}, {n})}}), (Numbers{sign, 2 * sign})) << n;
  }
}

// Eight-bit weights are dequantized once: 300 x 300 of them are too many for the host.
TEST_F(OnnxRun, LargeConstantsAreComputedOnce) {
  constexpr int64_t kSize = 300;
  std::vector<int64_t> weights(kSize * kSize);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<int64_t>(i * 7 % 251) - 125;
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {1, kSize})
           .Weight("w", Typed(ElementType::kInt8, {kSize, kSize}, weights))
           .Weight("scale", Floats({}, {0.5}))
           .Weight("zero", Typed(ElementType::kInt8, {}, {3}))
           .Node("DequantizeLinear", {"w", "scale", "zero"}, {"d"})
           .Node("Transpose", {"d"}, {"t"}, IntsAttribute("perm", {1, 0}))
           .Node("Add", {"t", "t"}, {"sum"})
           .Node("MatMul", {"x", "sum"}, {"y"})
           .Output("y"));
  std::vector<double> x(kSize, 0);
  x[2] = 1;
  const Numbers y = Run({{"x", Floats({1, kSize}, x)}});
  ASSERT_EQ(y.size(), kSize);
  for (size_t i = 0; i < kSize; ++i) EXPECT_EQ(y[i], static_cast<double>(weights[i * kSize + 2] - 3)) << i;
}

// Adjacent filters: every output is one product plus the bias.
TEST_F(OnnxRun, TransposedConvolutionsOfOneTap) {
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {1, 2, 1, 2})
           .Weight("w", Floats({2, 2, 1, 2}, {1, 2, 3, 4, 10, 20, 30, 40}))
           .Weight("b", Floats({2}, {0.5, 0.25}))
           .Node("ConvTranspose", {"x", "w", "b"}, {"y"}, IntsAttribute("strides", {1, 2}))
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({1, 2, 1, 2}, {1, 2, 3, 4})}}),
            (Numbers{31.5, 62.5, 42.5, 84.5, 93.25, 124.25, 126.25, 168.25}));
  EXPECT_EQ(shape_, (Shape{1, 2, 1, 4}));
}

TEST_F(OnnxRun, LoopsWithoutIterationsCollectNothing) {
  GraphProto body;
  for (const char* name : {"i", "go", "s"}) body.inputs.push_back(Declared(name, ElementType::kFloat, {}));
  body.nodes = {{"", "Identity", "", {"go"}, {"go_out"}, {}},
                {"", "Add", "", {"s", "x"}, {"t"}, {}},
                {"", "Neg", "", {"t"}, {"u"}, {}}};
  body.outputs = {Declared("go_out", ElementType::kBool, {}), Declared("t", ElementType::kFloat, {2}),
                  Declared("u", ElementType::kFloat, {2, -1})};
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {2})
           .Weight("n", Ints({}, {0}))
           .Node("Loop", {"n", "", "x"}, {"last", "all"}, GraphAttribute("body", body))
           .Output("all")
           .Output("last"));
  EXPECT_EQ(Run({{"x", Floats({2}, {1, 2})}}), Numbers{});
  EXPECT_EQ(shape_, (Shape{0, 2, 0}));
  EXPECT_EQ(Output({{"x", Floats({2}, {1, 2})}}, 1), (Numbers{1, 2}));
}

TEST_F(OnnxRun, ProductsAndScalesOfNothing) {
  Load(ModelMaker(13)
           .Input("a", ElementType::kFloat, {2, -1})
           .Input("b", ElementType::kFloat, {-1, 3})
           .Node("MatMul", {"a", "b"}, {"y"})
           .Output("y"));
  EXPECT_EQ(Run({{"a", Floats({2, 0}, {})}, {"b", Floats({0, 3}, {})}}), Numbers(6, 0));
  EXPECT_EQ(shape_, (Shape{2, 3}));
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {-1})
           .Node("DynamicQuantizeLinear", {"x"}, {"q", "scale", "zero"})
           .Output("q")
           .Output("scale")
           .Output("zero"));
  EXPECT_EQ(Run({{"x", Floats({0}, {})}}), Numbers{});
  EXPECT_EQ(Output({{"x", Floats({0}, {})}}, 1), Numbers{1});
  EXPECT_EQ(Output({{"x", Floats({0}, {})}}, 2), Numbers{0});
}

TEST_F(OnnxRun, ScansOverNothingEnd) {
  GraphProto body;
  body.inputs = {Declared("s", ElementType::kFloat, {-1})};
  body.nodes = {{"", "Neg", "", {"s"}, {"t"}, {}}};
  body.outputs = {Declared("t", ElementType::kFloat, {-1})};
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {-1, -1})
           .Node("Scan", {"x"}, {"y"}, IntAttribute("num_scan_inputs", 1), GraphAttribute("body", body))
           .Output("y"));
  EXPECT_NE(Failure({{"x", Floats({4000000000, 0}, {})}}).find("steps over sequences without elements"),
            std::string::npos);
  EXPECT_EQ(Run({{"x", Floats({0, 3}, {})}}), Numbers{});
  EXPECT_EQ(shape_, (Shape{0, 0}));
}

}  // namespace
}  // namespace anydml::onnx
