// Invalid models that pass the reader: they must produce an error and have no other effect.
#include <cmath>

#include "support/onnx_run.h"

namespace anydml::onnx {
namespace {

constexpr int64_t kHuge = int64_t{1} << 40;

NodeProto MakeNode(std::string type, std::vector<std::string> inputs, std::vector<std::string> outputs) {
  NodeProto node;
  node.type = std::move(type);
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  return node;
}

GraphProto Body(std::vector<NodeProto> nodes, const std::string& output) {
  GraphProto graph;
  graph.nodes = std::move(nodes);
  graph.outputs.push_back({});
  graph.outputs[0].name = output;
  return graph;
}

class OnnxHostile : public OnnxRun {
 protected:
  // The error, whether loading or running reports it.
  std::string Refusal(ModelMaker maker, const std::map<std::string, Tensor>& inputs = {}) {
    auto model = std::make_unique<Model>(std::move(maker.model));
    const Status status = ModelSession::Create(std::move(model), device_.get(), &session_);
    return status.ok() ? Failure(inputs) : status.message();
  }
};

TEST_F(OnnxHostile, FourBitElementsAreNotJoined) {
  std::vector<std::string> parts(40, "x");
  EXPECT_NE(Refusal(ModelMaker(21)
                        .Weight("x", Tensor{ElementType::kUInt4, {1}, {}, nullptr})
                        .Node("SequenceConstruct", parts, {"s"})
                        .Node("ConcatFromSequence", {"s"}, {"y"}, IntAttribute("axis", 0))
                        .Output("y", ElementType::kUInt4)),
            "");
}

TEST_F(OnnxHostile, OneEmptyOutputOfSeveral) {
  Load(ModelMaker(11)
           .Input("x", ElementType::kFloat, {0})
           .Node("DynamicQuantizeLinear", {"x"}, {"y", "scale", "zero"})
           .Output("scale")
           .Output("y", ElementType::kUInt8));
  EXPECT_EQ(Run({{"x", Floats({0}, {})}}), Numbers{1});
}

TEST_F(OnnxHostile, MixedTypesOnTheHost) {
  for (const char* type : {"Add", "Equal"}) {
    EXPECT_NE(Refusal(ModelMaker(13)
                          .Weight("a", Ints({2}, {1, 2}))
                          .Weight("b", Floats({2}, {1, 2}))
                          .Node(type, {"a", "b"}, {"y"})
                          .Output("y")),
              "")
        << type;
  }
}

TEST_F(OnnxHostile, TypesThatNobodyKnows) {
  EXPECT_NE(
      Refusal(ModelMaker(13)
                  .Node("RandomUniform", {}, {"y"}, IntAttribute("dtype", 17), IntsAttribute("shape", {2}))
                  .Output("y")),
      "");
  EXPECT_EQ(FromDoubles(static_cast<ElementType>(17), {1}, std::vector<double>{1}).type,
            ElementType::kUndefined);
}

TEST_F(OnnxHostile, BoundsAndExponentsThatAreNoNumbers) {
  const Tensor text{ElementType::kString, {}, {}, nullptr};
  const std::map<std::string, Tensor> inputs = {{"x", Floats({2}, {1, 2})}};
  for (const char* type : {"Clip", "Pow"}) {
    EXPECT_NE(Refusal(ModelMaker(13)
                          .Input("x", ElementType::kFloat, {2})
                          .Weight("b", text)
                          .Node(type, {"x", "b"}, {"y"})
                          .Output("y"),
                      inputs),
              "")
        << type;
  }
  EXPECT_NE(Refusal(ModelMaker(6)
                        .Input("x", ElementType::kFloat, {2})
                        .Input("b", ElementType::kFloat, {})
                        .Node("Clip", {"x", "b"}, {"y"})
                        .Output("y"),
                    {{"x", Floats({2}, {1, 2})}, {"b", Floats({}, {1})}}),
            "");
}

TEST_F(OnnxHostile, AScaleOfManyElementsForAScalar) {
  EXPECT_NE(Refusal(ModelMaker(13)
                        .Input("x", ElementType::kFloat, {})
                        .Weight("s", Floats({2}, {1, 2}))
                        .Node("QuantizeLinear", {"x", "s"}, {"y"}, IntAttribute("axis", 0))
                        .Output("y", ElementType::kUInt8),
                    {{"x", Floats({}, {1})}}),
            "");
}

TEST_F(OnnxHostile, InputsThatAreLeftOut) {
  ModelMaker map(17);
  map.Input("x", ElementType::kFloat, {1})
      .Node("SequenceConstruct", {"x"}, {"s"})
      .Node("SequenceMap", {"s", ""}, {"t"},
            GraphAttribute("body", Body({MakeNode("Identity", {"x"}, {"o"})}, "o")))
      .Node("SequenceLength", {"t"}, {"y"})
      .Output("y", ElementType::kInt64);
  EXPECT_NE(Refusal(std::move(map), {{"x", Floats({1}, {1})}}), "");
  Load(ModelMaker(13).Node("RandomUniform", {""}, {"y"}, IntsAttribute("shape", {2})).Output("y"));
  EXPECT_EQ(Run({}).size(), 2u);
}

TEST_F(OnnxHostile, BoxesThatAreNoNumbers) {
  EXPECT_NE(Refusal(ModelMaker(11)
                        .Weight("b", Floats({1, 1, 4}, {0, 0, 1, 1}))
                        .Weight("s", Tensor{ElementType::kComplex64, {1, 1, 1}, {}, nullptr})
                        .Node("NonMaxSuppression", {"b", "s"}, {"y"})
                        .Output("y", ElementType::kInt64)),
            "");
}

// Each function's branches call the next function, or call each other endlessly.
TEST_F(OnnxHostile, FunctionsInBodiesOfFunctions) {
  for (const int functions : {2, 40}) {
    ModelMaker maker(17);
    maker.model.opsets["f"] = 1;
    for (int i = 0; i < functions; ++i) {
      const int next = functions == 2 ? 1 - i : i + 1;
      NodeProto call = MakeNode(StrCat("F", next), {"c"}, {"o"});
      call.domain = "f";
      NodeProto branch = MakeNode("If", {"c"}, {"y"});
      branch.attributes = {GraphAttribute("then_branch", Body({call}, "o")),
                           GraphAttribute("else_branch", Body({call}, "o"))};
      FunctionProto function;
      function.name = StrCat("F", i);
      function.domain = "f";
      function.inputs = {"c"};
      function.outputs = {"y"};
      function.nodes = {branch};
      function.opsets = {{"", 17}, {"f", 1}};
      maker.model.functions.push_back(std::move(function));
    }
    maker.Input("c", ElementType::kBool, {}).Node("F0", {"c"}, {"y"}).Output("y");
    maker.model.graph.nodes[0].domain = "f";
    EXPECT_NE(Refusal(std::move(maker), {{"c", Typed(ElementType::kBool, {}, {1})}}), "") << functions;
  }
}

TEST_F(OnnxHostile, SizesWithoutElements) {
  EXPECT_FALSE(ElementCount(Shape{kHuge, 0}));
  EXPECT_NE(Refusal(ModelMaker(13)
                        .Weight("x", Tensor{ElementType::kInt64, {kHuge, 0}, {}, nullptr})
                        .Node("Concat", {"x", "x"}, {"y"}, IntAttribute("axis", 1))
                        .Output("y", ElementType::kInt64)),
            "");
  EXPECT_NE(Refusal(ModelMaker(13)
                        .Weight("x", Tensor{ElementType::kFloat, {1 << 30, 0}, {}, nullptr})
                        .Node("SplitToSequence", {"x"}, {"s"})
                        .Node("SequenceLength", {"s"}, {"y"})
                        .Output("y", ElementType::kInt64)),
            "");
}

TEST_F(OnnxHostile, BatchesOfSequencesWithoutElements) {
  constexpr int64_t kMost = 4294967295;
  GraphProto body = Body({MakeNode("Constant", {}, {"t"})}, "t");
  body.nodes[0].attributes = {TensorAttribute("value", Floats({}, {5}))};
  body.inputs = {Declared("s", ElementType::kFloat, {-1})};
  body.outputs = {Declared("t", ElementType::kFloat, {})};
  const auto refusal = [&](const Shape& shape, const std::vector<int64_t>& lengths) {
    ModelMaker maker(8);
    maker.Weight("x", Tensor{ElementType::kFloat, shape, {}, nullptr});
    if (!lengths.empty()) maker.Weight("lengths", Ints({static_cast<int64_t>(lengths.size())}, lengths));
    return Refusal(maker
                       .Node("Scan", {lengths.empty() ? "" : "lengths", "x"}, {"y"},
                             IntAttribute("num_scan_inputs", 1), GraphAttribute("body", body))
                       .Output("y"));
  };
  for (const int64_t length : {0, 1})
    EXPECT_NE(refusal({1, kMost, 0}, {length}).find("without elements"), std::string::npos) << length;
  for (const Shape& shape : {Shape{kMost, 0, 1}, Shape{kMost, 1, 0}, Shape{1 << 10, 1 << 10, 0}})
    EXPECT_NE(refusal(shape, {}).find("without elements"), std::string::npos) << ShapeToString(shape);
  EXPECT_EQ(refusal({2, 3, 0}, {1, 3}), "");
  EXPECT_EQ(Run({}), (Numbers{5, 0, 0, 5, 5, 5}));
  EXPECT_EQ(shape_, (Shape{2, 3}));
  EXPECT_EQ(refusal({3, 3, 0}, {0, 2, 0}), "");
  EXPECT_EQ(Run({}), (Numbers{0, 0, 0, 5, 5, 0, 0, 0, 0}));
  EXPECT_EQ(refusal({2, 3, 0}, {0, 0}), "");
  EXPECT_EQ(Run({}), (Numbers(6, 0)));
  // If no sequence has steps, only the file determines the results' sizes.
  body.outputs = {Declared("t", ElementType::kFloat, {1 << 26})};
  EXPECT_NE(refusal({1, 2, 0}, {0}).find("without steps"), std::string::npos);
  body.outputs = {Declared("t", ElementType::kFloat, {1 << 19})};
  EXPECT_NE(refusal({40, 2, 0}, std::vector<int64_t>(40)).find("without steps"), std::string::npos);
}

TEST_F(OnnxHostile, SequencesOfSequences) {
  EXPECT_NE(Refusal(ModelMaker(13)
                        .Input("x", ElementType::kFloat, {1})
                        .Node("SequenceConstruct", {"x"}, {"s"})
                        .Node("SequenceConstruct", {"s", "s"}, {"t"})
                        .Node("SequenceLength", {"t"}, {"y"})
                        .Output("y", ElementType::kInt64),
                    {{"x", Floats({1}, {1})}}),
            "");
}

// A branch in a function sees the attributes and opset versions of the function.
TEST_F(OnnxHostile, BodiesOfFunctionsAreTheFunctions) {
  NodeProto leaky = MakeNode("LeakyRelu", {"x"}, {"o"});
  leaky.attributes = {FloatAttribute("alpha", 0)};
  leaky.attributes[0].reference = "a";
  NodeProto branch = MakeNode("If", {"c"}, {"y"});
  branch.attributes = {GraphAttribute("then_branch", Body({leaky}, "o")),
                       GraphAttribute("else_branch", Body({MakeNode("Softmax", {"x"}, {"p"})}, "p"))};
  FunctionProto function;
  function.name = "F";
  function.domain = "f";
  function.inputs = {"c", "x"};
  function.outputs = {"y"};
  function.nodes = {branch};
  function.opsets = {{"", 11}};
  ModelMaker maker(17);
  maker.model.opsets["f"] = 1;
  maker.model.functions = {function};
  maker.Input("c", ElementType::kBool, {})
      .Input("x", ElementType::kFloat, {1, 2, 2})
      .Node("F", {"c", "x"}, {"y"}, FloatAttribute("a", 0.5f))
      .Output("y");
  maker.model.graph.nodes[0].domain = "f";
  Load(std::move(maker));
  const Tensor x = Floats({1, 2, 2}, {-4, -4, -4, -4});
  EXPECT_EQ(Run({{"c", Typed(ElementType::kBool, {}, {1})}, {"x", x}}), (Numbers{-2, -2, -2, -2}));
  // Before version 13: over all dimensions from the axis on.
  EXPECT_EQ(Run({{"c", Typed(ElementType::kBool, {}, {0})}, {"x", x}}), (Numbers{0.25, 0.25, 0.25, 0.25}));
}

TEST_F(OnnxHostile, BroadcastAlongAnAxisOfOldVersions) {
  const auto add = [](int64_t axis, const Tensor& b) {
    return ModelMaker(6)
        .Input("x", ElementType::kFloat, {2, 2})
        .Weight("b", b)
        .Node("Add", {"x", "b"}, {"y"}, IntAttribute("broadcast", 1), IntAttribute("axis", axis))
        .Output("y");
  };
  const std::map<std::string, Tensor> inputs = {{"x", Floats({2, 2}, {0, 0, 0, 0})}};
  Load(add(0, Floats({2}, {1, 2})));
  EXPECT_EQ(Run(inputs), (Numbers{1, 1, 2, 2}));
  Load(add(1, Floats({2}, {1, 2})));
  EXPECT_EQ(Run(inputs), (Numbers{1, 2, 1, 2}));
  EXPECT_NE(Refusal(add(1, Floats({2, 1}, {1, 2})), inputs), "");
  EXPECT_NE(Refusal(add(5, Floats({2}, {1, 2})), inputs), "");
}

TEST_F(OnnxHostile, LargeIntegersStayExact) {
  constexpr int64_t kBeyond = int64_t{1} << 53;
  Load(ModelMaker(11)
           .Input("x", ElementType::kInt64, {3})
           .Node("Unique", {"x"}, {"y"})
           .Output("y", ElementType::kInt64));
  EXPECT_EQ(Run({{"x", Ints({3}, {kBeyond, kBeyond + 1, 5})}}).size(), 3u);
  Load(ModelMaker(11).Input("x", ElementType::kFloat, {5}).Node("Unique", {"x"}, {"y"}).Output("y"));
  const Numbers different = Run({{"x", Floats({5}, {NAN, 2, 1, -3, NAN})}});
  ASSERT_EQ(different.size(), 4u);
  EXPECT_EQ(Numbers(different.begin(), different.begin() + 3), (Numbers{-3, 1, 2}));
  EXPECT_TRUE(std::isnan(different[3]));
  Load(ModelMaker(11)
           .Weight("a", Ints({}, {kBeyond + 1}))
           .Weight("b", Ints({}, {kBeyond + 3}))
           .Weight("c", Ints({}, {1}))
           .Node("Range", {"a", "b", "c"}, {"y"})
           .Output("y", ElementType::kInt64));
  EXPECT_EQ(Run({}).size(), 2u);
}

TEST_F(OnnxRun, MoreSamplesThanAnybodyWaitsFor) {
  for (const std::string mode : {"avg", "max"}) {
    Load(ModelMaker(16)
             .Input("x", ElementType::kFloat, {1, 1, 2, 2})
             .Weight("rois", Floats({1, 4}, {0, 0, 1, 1}))
             .Weight("batch", Ints({1}, {0}))
             .Node("RoiAlign", {"x", "rois", "batch"}, {"y"}, TextAttribute("mode", mode),
                   IntAttribute("sampling_ratio", INT64_MAX))
             .Output("y"));
    EXPECT_NE(Failure({{"x", Floats({1, 1, 2, 2}, {1, 2, 3, 4})}}).find("unsupported: RoiAlign-16: "),
              std::string::npos);
  }
}

// Sizes whose product is 0, but which would take long to loop over.
TEST_F(OnnxHostile, NothingIsDoneAtOnce) {
  constexpr int64_t kMany = int64_t{1} << 30;
  Load(ModelMaker(13)
           .Weight("a", Typed(ElementType::kDouble, {kMany, 0, 3}, {}))
           .Weight("b", Typed(ElementType::kDouble, {3, 4}, std::vector<int64_t>(12, 1)))
           .Node("MatMul", {"a", "b"}, {"y"})
           .Output("y", ElementType::kDouble));
  EXPECT_EQ(Run({}), Numbers());
  EXPECT_EQ(shape_, (Shape{kMany, 0, 4}));
  Load(ModelMaker(22)
           .Input("x", ElementType::kFloat, {1, 0, 4, 4})
           .Weight("rois", Floats({1, 4}, {0, 0, 3, 3}))
           .Weight("batch", Ints({1}, {0}))
           .Node("RoiAlign", {"x", "rois", "batch"}, {"y"}, TextAttribute("mode", "max"),
                 IntAttribute("output_height", kMany), IntAttribute("output_width", kMany))
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({1, 0, 4, 4}, {})}}), Numbers());
}

TEST_F(OnnxHostile, RegionsOfNoBatch) {
  EXPECT_NE(Refusal(ModelMaker(16)
                        .Input("x", ElementType::kFloat, {1, 1, 2, 2})
                        .Weight("rois", Floats({1, 4}, {0, 0, 1, 1}))
                        .Weight("batch", Floats({1}, {0}))
                        .Node("RoiAlign", {"x", "rois", "batch"}, {"y"}, TextAttribute("mode", "max"))
                        .Output("y"),
                    {{"x", Floats({1, 1, 2, 2}, {1, 2, 3, 4})}}),
            "");
}

TEST_F(OnnxHostile, SamplesOfManyDimensions) {
  for (const size_t rank : {size_t{40}, size_t{20000}}) {
    Shape grid(rank, 1);
    grid.back() = static_cast<int64_t>(rank) - 2;
    EXPECT_NE(Refusal(ModelMaker(20)
                          .Weight("x", Floats(Shape(rank, 1), {1}))
                          .Weight("grid", Floats(grid, Numbers(rank - 2, 0.1)))
                          .Node("GridSample", {"x", "grid"}, {"y"}, TextAttribute("padding_mode", "border"))
                          .Output("y")),
              "");
  }
}

// Names that are defined twice or not at all, around nodes that are folded into a convolution.
TEST_F(OnnxHostile, NamesAroundConvolutions) {
  const std::map<std::string, Tensor> x = {{"x", Floats({1, 1, 1, 1}, {1})}};
  ModelMaker twice(13);
  twice.Input("x", ElementType::kFloat, {1, 1, 1, 1})
      .Weight("f", Floats({1, 1, 1, 1}, {2}))
      .Weight("k", Floats({1}, {3}))
      .Weight("w", Floats({1}, {4}))
      .Node("Conv", {"x", "f"}, {"a"})
      .Node("Add", {"a", "k"}, {"w"})
      .Node("Conv", {"x", "f"}, {"c"})
      .Node("Mul", {"c", "w"}, {"y"})
      .Output("y");
  EXPECT_NE(Refusal(twice, x).find("\"w\""), std::string::npos);
  ModelMaker none(13);
  none.Input("x", ElementType::kFloat, {1, 1, 1, 1})
      .Weight("f", Floats({1, 1, 1, 1}, {2}))
      .Weight("k", Floats({1}, {3}))
      .Node("Conv", {"x", "f"}, {""})
      .Node("Add", {"", "k"}, {"y"})
      .Output("y");
  EXPECT_NE(Refusal(none, x), "");
}

}  // namespace
}  // namespace anydml::onnx
