// Operators that the host computes, and graphs that replace operators that DirectML lacks.
#include <cmath>

#include "support/onnx_run.h"

namespace anydml::onnx {
namespace {

void ExpectNear(const Numbers& actual, const Numbers& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5) << i;
}

TEST_F(OnnxRun, TransformsOfAnyLength) {
  // Means of 1, 0, 0 and of three equal numbers; three is no power of two.
  for (const bool flat : {false, true}) {
    Load(ModelMaker(20)
             .Input("x", ElementType::kFloat, {1, 3, 1})
             .Node("DFT", {"x"}, {"y"})
             .Node("DFT", {"y"}, {"z"}, IntAttribute("inverse", 1))
             .Output("y")
             .Output("z"));
    const std::map<std::string, Tensor> inputs = {
        {"x", flat ? Floats({1, 3, 1}, {1, 1, 1}) : Floats({1, 3, 1}, {1, 0, 0})}};
    ExpectNear(Run(inputs), flat ? Numbers{3, 0, 0, 0, 0, 0} : Numbers{1, 0, 1, 0, 1, 0});
    ExpectNear(Output(inputs, 1), flat ? Numbers{1, 0, 1, 0, 1, 0} : Numbers{1, 0, 0, 0, 0, 0});
  }
}

TEST_F(OnnxRun, FramesOfASignal) {
  Load(ModelMaker(17)
           .Input("x", ElementType::kFloat, {1, 4, 1})
           .Weight("step", Ints({}, {2}))
           .Weight("length", Ints({}, {2}))
           .Node("STFT", {"x", "step", "", "length"}, {"y"})
           .Output("y"));
  ExpectNear(Run({{"x", Floats({1, 4, 1}, {1, 2, 3, 5})}}), {3, 0, -1, 0, 8, 0, -2, 0});
  EXPECT_EQ(shape_, (Shape{1, 2, 2, 2}));
}

TEST_F(OnnxRun, ScattersThatReduce) {
  for (const auto& [how, expected] : std::vector<std::pair<std::string, Numbers>>{
           {"add", {4, 2, 8}}, {"mul", {3, 2, 15}}, {"max", {3, 2, 5}}, {"min", {1, 2, 3}}}) {
    Load(ModelMaker(18)
             .Input("x", ElementType::kFloat, {3})
             .Weight("at", Ints({2}, {0, -1}))
             .Weight("updates", Floats({2}, {3, 5}))
             .Node("ScatterElements", {"x", "at", "updates"}, {"y"}, TextAttribute("reduction", how))
             .Output("y"));
    EXPECT_EQ(Run({{"x", Floats({3}, {1, 2, 3})}}), expected) << how;
  }
  Load(ModelMaker(18)
           .Input("x", ElementType::kFloat, {2, 2})
           .Input("at", ElementType::kInt64, {2, 1})
           .Weight("updates", Floats({2, 2}, {1, 2, 3, 4}))
           .Node("ScatterND", {"x", "at", "updates"}, {"y"}, TextAttribute("reduction", "add"))
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({2, 2}, {0, 0, 0, 0})}, {"at", Ints({2, 1}, {1, 1})}}), (Numbers{0, 0, 4, 6}));
  EXPECT_EQ(Failure({{"x", Floats({2, 2}, {0, 0, 0, 0})}, {"at", Ints({2, 1}, {1, 2})}}),
            "ScatterND-18: index 2 of an axis of 2");
}

TEST_F(OnnxRun, TypesThatOnlyTheHostHas) {
  Load(ModelMaker(18)
           .Input("x", ElementType::kDouble, {2, 2})
           .Weight("axis", Ints({1}, {1}))
           .Node("ReduceL2", {"x", "axis"}, {"y"}, IntAttribute("keepdims", 0))
           .Output("y", ElementType::kDouble));
  const double x[] = {3, 4, 6, 8};
  EXPECT_EQ(Run({{"x", FromDoubles(ElementType::kDouble, {2, 2}, x)}}), (Numbers{5, 10}));
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {3})
           .Node("Cast", {"x"}, {"h"}, IntAttribute("to", static_cast<int64_t>(ElementType::kBFloat16)))
           .Node("Cast", {"h"}, {"y"}, IntAttribute("to", static_cast<int64_t>(ElementType::kFloat)))
           .Output("y"));
  // Ties round to even: 257 is between 256 and 258, 259 between 258 and 260.
  EXPECT_EQ(Run({{"x", Floats({3}, {1.5, 257, 259})}}), (Numbers{1.5, 256, 260}));
  Load(ModelMaker(20)
           .Input("x", ElementType::kBFloat16, {1, 1})
           .Node("Gelu", {"x"}, {"y"})
           .Output("y", ElementType::kBFloat16));
  EXPECT_EQ(Failure({{"x", Typed(ElementType::kBFloat16, {1, 1}, {1})}}),
            "unsupported: Gelu-20: input 0 of bfloat16");
  Load(ModelMaker(15)
           .Input("x", ElementType::kInt64, {3})
           .Weight("n", Ints({3}, {3, 0, -1}))
           .Node("Pow", {"x", "n"}, {"y"})
           .Output("y", ElementType::kInt64));
  EXPECT_EQ(Run({{"x", Ints({3}, {-2, 7, 5})}}), (Numbers{-8, 1, 0}));
}

TEST_F(OnnxRun, RandomNumbersFollowTheirSeed) {
  // NumPy's first random numbers after seed(0).
  const auto uniform = [](std::vector<Attribute> attributes) {
    ModelMaker maker(15);
    maker.Node("RandomUniform", {}, {"y"}, IntsAttribute("shape", {2})).Output("y");
    for (Attribute& attribute : attributes)
      maker.model.graph.nodes[0].attributes.push_back(std::move(attribute));
    return maker;
  };
  Load(uniform({FloatAttribute("seed", 0)}));
  const Numbers first = Run({});
  ExpectNear(first, {0.5488135, 0.7151894});
  EXPECT_EQ(Run({}), first);
  Load(uniform({}));
  EXPECT_NE(Run({}), Run({}));
  Load(ModelMaker(15)
           .Input("x", ElementType::kFloat, {1000})
           .Node("RandomNormalLike", {"x"}, {"r"}, FloatAttribute("mean", 5), FloatAttribute("scale", 2))
           .Node("ReduceMean", {"r"}, {"y"}, IntAttribute("keepdims", 0))
           .Output("y"));
  EXPECT_NEAR(Run({{"x", Floats({1000}, Numbers(1000, 0))}})[0], 5, 0.4);
  Load(ModelMaker(15)
           .Input("x", ElementType::kFloat, {1, 3})
           .Node("Multinomial", {"x"}, {"y"}, IntAttribute("sample_size", 4))
           .Output("y", ElementType::kInt32));
  EXPECT_EQ(Run({{"x", Floats({1, 3}, {-INFINITY, 0, -INFINITY})}}), (Numbers{1, 1, 1, 1}));
  Load(ModelMaker(15).Input("x", ElementType::kFloat, {3}).Node("Bernoulli", {"x"}, {"y"}).Output("y"));
  EXPECT_EQ(Run({{"x", Floats({3}, {0, 1, 0})}}), (Numbers{0, 1, 0}));
}

TEST_F(OnnxRun, WindowsThatMove) {
  // One filter tap, with an offset of half an element downwards and with mask 0 at the second position.
  Load(ModelMaker(19)
           .Input("x", ElementType::kFloat, {1, 1, 2, 2})
           .Weight("w", Floats({1, 1, 1, 1}, {2}))
           .Weight("b", Floats({1}, {1}))
           .Weight("offset", Floats({1, 2, 2, 2}, {0.5, 0.5, 0, 0, 0, 0, 0, 1}))
           .Weight("mask", Floats({1, 1, 2, 2}, {1, 0, 1, 1}))
           .Node("DeformConv", {"x", "w", "offset", "b", "mask"}, {"y"})
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({1, 1, 2, 2}, {1, 2, 3, 4})}}), (Numbers{5, 1, 7, 1}));
}

TEST_F(OnnxRun, CutAndPaddedAroundTheMiddle) {
  Load(ModelMaker(18)
           .Input("x", ElementType::kFloat, {1, 4})
           .Weight("shape", Ints({2}, {2, 3}))
           .Node("CenterCropPad", {"x", "shape"}, {"y"})
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({1, 4}, {1, 2, 3, 4})}}), (Numbers{1, 2, 3, 0, 0, 0}));
  EXPECT_EQ(shape_, (Shape{2, 3}));
}

TEST_F(OnnxRun, CachesAreWrittenInPlace) {
  for (const std::string mode : {"linear", "circular"}) {
    Load(ModelMaker(24)
             .Input("x", ElementType::kFloat, {2, 3, 1})
             .Weight("update", Floats({2, 2, 1}, {7, 8, 9, 10}))
             .Weight("at", Ints({2}, {1, mode == "linear" ? 0 : 2}))
             .Node("TensorScatter", {"x", "update", "at"}, {"y"}, TextAttribute("mode", mode))
             .Output("y"));
    EXPECT_EQ(Run({{"x", Floats({2, 3, 1}, {1, 2, 3, 4, 5, 6})}}),
              mode == "linear" ? (Numbers{1, 7, 8, 9, 10, 6}) : (Numbers{1, 7, 8, 10, 5, 9}));
  }
}

TEST_F(OnnxRun, GridsAreMoved) {
  Load(ModelMaker(20)
           .Input("theta", ElementType::kFloat, {1, 2, 3})
           .Weight("size", Ints({4}, {1, 1, 1, 2}))
           .Node("AffineGrid", {"theta", "size"}, {"y"})
           .Output("y"));
  EXPECT_EQ(Run({{"theta", Floats({1, 2, 3}, {1, 0, 0, 0, 1, 3})}}), (Numbers{-0.5, 3, 0.5, 3}));
}

TEST_F(OnnxRun, BatchesNormalizeThemselvesInTraining) {
  Load(ModelMaker(15)
           .Input("x", ElementType::kFloat, {2, 1})
           .Weight("one", Floats({1}, {1}))
           .Weight("zero", Floats({1}, {0}))
           .Node("BatchNormalization", {"x", "one", "zero", "zero", "one"}, {"y", "mean", "variance"},
                 IntAttribute("training_mode", 1), FloatAttribute("epsilon", 0),
                 FloatAttribute("momentum", 0.5))
           .Output("y")
           .Output("mean")
           .Output("variance"));
  const std::map<std::string, Tensor> inputs = {{"x", Floats({2, 1}, {1, 5})}};
  ExpectNear(Run(inputs), {-1, 1});
  ExpectNear(Output(inputs, 1), {1.5});
  ExpectNear(Output(inputs, 2), {2.5});
}

}  // namespace
}  // namespace anydml::onnx
