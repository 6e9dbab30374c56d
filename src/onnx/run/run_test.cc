// Models on a device, against results computed by hand.
#include "support/onnx_run.h"

namespace anydml::onnx {
namespace {

TEST_F(OnnxRun, AChainBecomesOneGraph) {
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {-1, 2})
           .Weight("w", Floats({2, 2}, {1, -1, 2, 0}))
           .Weight("b", Floats({2}, {1, 1}))
           .Node("MatMul", {"x", "w"}, {"y"})
           .Node("Add", {"y", "b"}, {"s"})
           .Node("Relu", {"s"}, {"z"})
           .Output("z"));
  EXPECT_EQ(Run({{"x", Floats({1, 2}, {1, 1})}}), (Numbers{4, 0}));
  EXPECT_EQ(Run({{"x", Floats({2, 2}, {1, 1, 0, -1})}}), (Numbers{4, 0, 0, 1}));  // other sizes
  EXPECT_EQ(shape_, (Shape{2, 2}));
  EXPECT_EQ(Run({{"x", Floats({1, 2}, {0, 0})}}), (Numbers{1, 1}));
}

TEST_F(OnnxRun, ShapesAreComputedOnTheHost) {
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {-1, -1, 2})
           .Weight("zero", Ints({1}, {0}))
           .Weight("rest", Ints({1}, {-1}))
           .Node("Shape", {"x"}, {"shape"})
           .Node("Gather", {"shape", "zero"}, {"batch"}, IntAttribute("axis", 0))
           .Node("Concat", {"batch", "rest"}, {"wanted"}, IntAttribute("axis", 0))
           .Node("Reshape", {"x", "wanted"}, {"y"})
           .Node("Neg", {"y"}, {"z"})
           .Output("z"));
  EXPECT_EQ(Run({{"x", Floats({1, 2, 2}, {1, 2, 3, 4})}}), (Numbers{-1, -2, -3, -4}));
  EXPECT_EQ(shape_, (Shape{1, 4}));
}

TEST_F(OnnxRun, SizesThatDependOnDataSplitTheModel) {
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {-1})
           .Input("n", ElementType::kInt64, {1})
           .Weight("one", Ints({1}, {1}))
           .Node("Add", {"n", "one"}, {"count"})
           .Node("Expand", {"x", "count"}, {"y"})
           .Node("Neg", {"y"}, {"z"})
           .Output("z"));
  EXPECT_EQ(Run({{"x", Floats({1}, {2})}, {"n", Ints({1}, {2})}}), (Numbers{-2, -2, -2}));
  EXPECT_EQ(Run({{"x", Floats({1}, {2})}, {"n", Ints({1}, {0})}}), (Numbers{-2}));
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {-1})
           .Node("Relu", {"x"}, {"y"})
           .Node("NonZero", {"y"}, {"at"})
           .Node("Transpose", {"at"}, {"rows"})
           .Node("GatherND", {"x", "rows"}, {"z"})
           .Output("z"));
  EXPECT_EQ(Run({{"x", Floats({4}, {-1, 2, 0, 3})}}), (Numbers{2, 3}));
}

TEST_F(OnnxRun, ReinterpretationsNeedNoGraph) {
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {2, 3})
           .Node("Flatten", {"x"}, {"y"}, IntAttribute("axis", 0))
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({2, 3}, {1, 2, 3, 4, 5, 6})}}), (Numbers{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(shape_, (Shape{1, 6}));
}

TEST_F(OnnxRun, ConstantsAreWeights) {
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {2})
           .Node("Constant", {}, {"w"}, TensorAttribute("value", Floats({2}, {10, 20})))
           .Node("Mul", {"x", "w"}, {"y"})
           .Output("y")
           .Output("w"));
  EXPECT_EQ(Run({{"x", Floats({2}, {1, 2})}}), (Numbers{10, 40}));
}

TEST_F(OnnxRun, FunctionsAreInlined) {
  ModelMaker maker(13);
  maker.Input("x", ElementType::kFloat, {2}).Output("y");
  maker.Node("Twice", {"x"}, {"y"}, FloatAttribute("by", 3));
  maker.model.graph.nodes[0].domain = "own";
  FunctionProto& function = maker.model.functions.emplace_back();
  function.name = "Twice";
  function.domain = "own";
  function.inputs = {"a"};
  function.outputs = {"c"};
  NodeProto& leaky = function.nodes.emplace_back();
  leaky.type = "LeakyRelu";
  leaky.inputs = {"a"};
  leaky.outputs = {"b"};
  leaky.attributes.emplace_back().name = "alpha";
  leaky.attributes[0].reference = "by";
  NodeProto& add = function.nodes.emplace_back();
  add.type = "Add";
  add.inputs = {"b", "b"};
  add.outputs = {"c"};
  Load(std::move(maker));
  EXPECT_EQ(Run({{"x", Floats({2}, {1, -1})}}), (Numbers{2, -6}));
}

TEST_F(OnnxRun, DoublesAreTheHosts) {
  Load(ModelMaker(13)
           .Input("x", ElementType::kDouble, {2})
           .Input("y", ElementType::kDouble, {2})
           .Node("Max", {"x", "y"}, {"z"})
           .Output("z", ElementType::kDouble));
  const double x[] = {1, 5}, y[] = {2, 3};
  EXPECT_EQ(Run({{"x", FromDoubles(ElementType::kDouble, {2}, x)},
                 {"y", FromDoubles(ElementType::kDouble, {2}, y)}}),
            (Numbers{2, 5}));
}

TEST_F(OnnxRun, Sequences) {
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {2})
           .Weight("at", Ints({}, {-1}))
           .Node("Neg", {"x"}, {"n"})
           .Node("SequenceConstruct", {"x", "n"}, {"s"})
           .Node("SequenceAt", {"s", "at"}, {"e"})
           .Node("Add", {"e", "e"}, {"y"})
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({2}, {1, 2})}}), (Numbers{-2, -4}));
}

TEST_F(OnnxRun, SumsOfProducts) {
  for (const auto& [equation, expected] :
       std::vector<std::pair<std::string, Numbers>>{{"ij,jk->ik", {5, 11, 11, 25}},
                                                    {"ij,kj->", {52}},
                                                    {"ij,ij->ji", {1, 9, 4, 16}},
                                                    {"ij,jk", {5, 11, 11, 25}}}) {
    Load(ModelMaker(13)
             .Input("a", ElementType::kFloat, {2, 2})
             .Input("b", ElementType::kFloat, {2, 2})
             .Node("Einsum", {"a", "b"}, {"y"}, TextAttribute("equation", equation))
             .Output("y"));
    const Tensor b = equation == "ij,ij->ji" || equation == "ij,kj->" ? Floats({2, 2}, {1, 2, 3, 4})
                                                                      : Floats({2, 2}, {1, 3, 2, 4});
    EXPECT_EQ(Run({{"a", Floats({2, 2}, {1, 2, 3, 4})}, {"b", b}}), expected) << equation;
  }
}

TEST_F(OnnxRun, ConvolutionsOfOneDimension) {
  Load(ModelMaker(11)
           .Input("x", ElementType::kFloat, {1, 1, 4})
           .Weight("w", Floats({1, 1, 2}, {1, 10}))
           .Node("Conv", {"x", "w"}, {"y"}, IntsAttribute("pads", {1, 0}))
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({1, 1, 4}, {1, 2, 3, 4})}}), (Numbers{10, 21, 32, 43}));
  EXPECT_EQ(shape_, (Shape{1, 1, 4}));
}

TEST_F(OnnxRun, SlicesBackwards) {
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {5})
           .Weight("start", Ints({1}, {-1}))
           .Weight("end", Ints({1}, {INT64_MIN}))
           .Weight("axes", Ints({1}, {0}))
           .Weight("steps", Ints({1}, {-2}))
           .Node("Slice", {"x", "start", "end", "axes", "steps"}, {"y"})
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({5}, {1, 2, 3, 4, 5})}}), (Numbers{5, 3, 1}));
}

TEST_F(OnnxRun, BranchesAndLoops) {
  GraphProto yes, no, body;
  yes.nodes.emplace_back().type = "Neg";
  yes.nodes[0].inputs = {"x"};  // of the enclosing graph
  yes.nodes[0].outputs = {"a"};
  yes.outputs.emplace_back().name = "a";
  no.nodes.emplace_back().type = "Abs";
  no.nodes[0].inputs = {"x"};
  no.nodes[0].outputs = {"b"};
  no.outputs.emplace_back().name = "b";
  ModelMaker branch(13);
  branch.Input("x", ElementType::kFloat, {2}).Input("c", ElementType::kBool, {}).Output("y");
  branch.Node("If", {"c"}, {"y"}, GraphAttribute("then_branch", std::move(yes)),
              GraphAttribute("else_branch", std::move(no)));
  Load(std::move(branch));
  const Tensor x = Floats({2}, {-1, 2});
  const int64_t truth[] = {1, 0};
  EXPECT_EQ(Run({{"x", x}, {"c", FromInts(ElementType::kBool, {}, {truth, 1})}}), (Numbers{1, -2}));
  EXPECT_EQ(Run({{"x", x}, {"c", FromInts(ElementType::kBool, {}, {truth + 1, 1})}}), (Numbers{1, 2}));

  for (const char* name : {"i", "go", "s"}) body.inputs.push_back(Declared(name, ElementType::kFloat, {}));
  for (const char* name : {"go_out", "t", "t_out"}) body.outputs.emplace_back().name = name;
  const auto add = [&body](const char* type, std::vector<std::string> inputs, const char* output) {
    NodeProto& node = body.nodes.emplace_back();
    node.type = type;
    node.inputs = std::move(inputs);
    node.outputs = {output};
  };
  add("Identity", {"go"}, "go_out");
  add("Add", {"s", "x"}, "t");
  add("Identity", {"t"}, "t_out");
  ModelMaker loop(13);
  loop.Input("x", ElementType::kFloat, {2}).Weight("n", Ints({}, {3})).Output("all");
  loop.Node("Loop", {"n", "", "x"}, {"last", "all"}, GraphAttribute("body", std::move(body)));
  Load(std::move(loop));
  EXPECT_EQ(Run({{"x", Floats({2}, {1, 2})}}), (Numbers{2, 4, 3, 6, 4, 8}));
  EXPECT_EQ(shape_, (Shape{3, 2}));
}

TEST_F(OnnxRun, ABranchMayWriteANameThatExistsAround) {
  GraphProto branch;
  branch.nodes.push_back({"", "Neg", "", {"x"}, {"z"}, {}});
  branch.outputs.push_back(Declared("z", ElementType::kFloat, {1}));
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {1})
           .Input("c", ElementType::kBool, {})
           .Node("If", {"c"}, {"z"}, GraphAttribute("then_branch", branch),
                 GraphAttribute("else_branch", branch))
           .Output("z"));
  const int64_t yes = 1;
  EXPECT_EQ(Run({{"x", Floats({1}, {2})}, {"c", FromInts(ElementType::kBool, {}, {&yes, 1})}}), Numbers{-2});
}

// The product is too large for the host. Its factors belong only to the part and must exist when the device
// reads them.
TEST_F(OnnxRun, ComputedConstantsLiveUntilTheyAreRead) {
  constexpr int64_t kSize = 300;
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {1})
           .Weight("zero", Ints({}, {0}))
           .Weight("one", Ints({}, {1}))
           .Weight("size", Ints({}, {kSize}))
           .Weight("row", Ints({2}, {1, kSize}))
           .Weight("column", Ints({2}, {kSize, 1}))
           .Node("Range", {"zero", "size", "one"}, {"r"})
           .Node("Cast", {"r"}, {"f"}, IntAttribute("to", 1))
           .Node("Reshape", {"f", "column"}, {"a"})
           .Node("Reshape", {"f", "row"}, {"b"})
           .Node("MatMul", {"a", "b"}, {"p"})
           .Node("Mul", {"p", "x"}, {"z"})
           .Output("z"));
  const Numbers product = Run({{"x", Floats({1}, {1})}});
  ASSERT_EQ(product.size(), kSize * kSize);
  for (int64_t i = 0; i < kSize * kSize; ++i) {
    ASSERT_EQ(product[static_cast<size_t>(i)], static_cast<double>(i / kSize * (i % kSize))) << i;
  }
}

TEST_F(OnnxRun, SaysWhatWasExpected) {
  Load(ModelMaker(13).Input("x", ElementType::kFloat, {-1, 2}).Node("Relu", {"x"}, {"y"}).Output("y"));
  EXPECT_EQ(Failure({}), "input \"x\" is missing: ?x2 of float");
  EXPECT_EQ(Failure({{"x", Floats({3}, {1, 2, 3})}}),
            "input \"x\" is 3 of float; the model takes ?x2 of float");
  EXPECT_EQ(Failure({{"x", Ints({1, 2}, {1, 2})}}),
            "input \"x\" is 1x2 of int64; the model takes ?x2 of float");
  Load(ModelMaker(13).Input("x", ElementType::kFloat, {2}).Node("Nothing", {"x"}, {"y"}).Output("y"));
  EXPECT_EQ(Failure({{"x", Floats({2}, {1, 2})}}), "unsupported: Nothing-13: no such operator is known");
}

// A loop of 2^62 steps, which the waiting thread stops.
TEST_F(OnnxRun, LoopsCanBeStopped) {
  GraphProto body;
  body.inputs = {Declared("i", ElementType::kInt64, {}), Declared("c", ElementType::kBool, {}),
                 Declared("s", ElementType::kFloat, {})};
  body.outputs = {Declared("c", ElementType::kBool, {}), Declared("s", ElementType::kFloat, {})};
  const int64_t many = int64_t{1} << 62;
  ModelMaker maker(13);
  maker.Input("x", ElementType::kFloat, {})
      .Weight("many", Int64Tensor({}, {&many, 1}))
      .Node("Loop", {"many", "", "x"}, {"y"}, GraphAttribute("body", body))
      .Output("y");
  maker.model.graph.nodes[0].name = "spin";
  Load(std::move(maker));
  int asked = 0;
  session_->set_poll([&] { return ++asked < 10 ? Status() : Status(Code::kFail, "stopped"); });
  EXPECT_EQ(Failure({{"x", Floats({}, {1})}}), "Loop-13 (\"spin\"): stopped");
  EXPECT_EQ(asked, 10);
}

}  // namespace
}  // namespace anydml::onnx
