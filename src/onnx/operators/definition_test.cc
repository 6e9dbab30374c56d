// Corner cases of ONNX's definitions, as its own tests and onnxruntime interpret them.
#include <cmath>
#include <limits>

#include "support/onnx_run.h"

namespace anydml::onnx {
namespace {

// Activations with a parameter consume both lists in order; list positions do not match activation positions.
TEST_F(OnnxRun, ActivationsTakeTheirNumbersInOrder) {
  Load(ModelMaker(14)
           .Input("x", ElementType::kFloat, {1, 1, 1})
           .Weight("w", Floats({2, 1, 1}, {1, 1}))
           .Weight("r", Floats({2, 1, 1}, {0, 0}))
           .Node("RNN", {"x", "w", "r"}, {"", "y"}, IntAttribute("hidden_size", 1),
                 TextAttribute("direction", "bidirectional"),
                 TextsAttribute("activations", {"Softsign", "HardSigmoid"}),
                 FloatsAttribute("activation_alpha", {0.25}), FloatsAttribute("activation_beta", {0.125}))
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({1, 1, 1}, {1})}}), (Numbers{0.5, 0.375}));
}

TEST_F(OnnxRun, NoAxesLeaveWhatIsNoReduction) {
  for (const auto& [type, expected] :
       std::vector<std::pair<std::string, Numbers>>{{"ReduceL1", {2, 0.5}},
                                                    {"ReduceL2", {2, 0.5}},
                                                    {"ReduceSumSquare", {4, 0.25}},
                                                    {"ReduceSum", {-2, 0.5}}}) {
    Load(ModelMaker(18)
             .Input("x", ElementType::kFloat, {2, 1})
             .Node(type, {"x"}, {"y"}, IntAttribute("noop_with_empty_axes", 1))
             .Output("y"));
    EXPECT_EQ(Run({{"x", Floats({2, 1}, {-2, 0.5})}}), expected) << type;
    EXPECT_EQ(shape_, (Shape{2, 1})) << type;
  }
  Load(ModelMaker(18)
           .Input("x", ElementType::kDouble, {2})
           .Node("ReduceLogSum", {"x"}, {"y"}, IntAttribute("noop_with_empty_axes", 1))
           .Output("y", ElementType::kDouble));
  EXPECT_EQ(Run({{"x", FromDoubles(ElementType::kDouble, {2}, Numbers{1, std::exp(2.0)})}}), (Numbers{0, 2}));
}

TEST_F(OnnxRun, IntegersAreReducedByEveryFunction) {
  for (const auto& [type, expected] :
       std::vector<std::pair<std::string, Numbers>>{{"ReduceMean", {-2, 1}},  // towards 0
                                                    {"ReduceL1", {7, 3}},
                                                    {"ReduceL2", {5, 2}},
                                                    {"ReduceSumSquare", {25, 5}}}) {
    for (const ElementType element : {ElementType::kInt32, ElementType::kInt64}) {
      Load(ModelMaker(13)
               .Input("x", element, {2, 2})
               .Node(type, {"x"}, {"y"}, IntsAttribute("axes", {1}), IntAttribute("keepdims", 0))
               .Output("y", element));
      if (type == "ReduceMean")
        EXPECT_EQ(Run({{"x", Typed(element, {2, 2}, {-4, -1, 1, 2})}}), expected);
      else
        EXPECT_EQ(Run({{"x", Typed(element, {2, 2}, {-4, 3, 1, 2})}}), expected) << type;
    }
  }
}

TEST_F(OnnxRun, TheLargestOfNothingIsTheLeastNumber) {
  for (const auto& [element, expected] : std::vector<std::pair<ElementType, double>>{
           {ElementType::kBool, 0}, {ElementType::kInt8, -128}, {ElementType::kUInt16, 0}}) {
    Load(ModelMaker(20)
             .Input("x", element, {0, 2})
             .Weight("axes", Ints({1}, {0}))
             .Node("ReduceMax", {"x", "axes"}, {"y"}, IntAttribute("keepdims", 0))
             .Output("y", element));
    EXPECT_EQ(Run({{"x", Typed(element, {0, 2}, {})}}), (Numbers{expected, expected}));
  }
}

TEST_F(OnnxRun, SlicesThatGoDownFromBeforeTheFirstElementHaveIt) {
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {3})
           .Weight("starts", Ints({1}, {-9}))
           .Weight("ends", Ints({1}, {-10}))
           .Weight("axes", Ints({1}, {0}))
           .Weight("steps", Ints({1}, {-1}))
           .Node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"})
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({3}, {7, 8, 9})}}), (Numbers{7}));
}

TEST_F(OnnxRun, FewerIndicesThanElementsAlongOtherAxes) {
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {2, 3})
           .Weight("i", Ints({3, 2}, {1, 0, 0, 1, 1, 1}))
           .Node("GatherElements", {"x", "i"}, {"y"}, IntAttribute("axis", 0))
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({2, 3}, {1, 2, 3, 4, 5, 6})}}), (Numbers{4, 2, 1, 5, 4, 5}));
}

TEST_F(OnnxRun, SizesAreWhatSinglePrecisionMakesOfScales) {
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {1, 1, 1, 5})
           .Weight("scales", Floats({4}, {1, 1, 1, 2.6}))
           .Node("Resize", {"x", "", "scales"}, {"y"})
           .Output("y"));
  Run({{"x", Floats({1, 1, 1, 5}, {1, 2, 3, 4, 5})}});
  EXPECT_EQ(shape_, (Shape{1, 1, 1, 13}));
}

// Version 10 rounds positions up when it downsamples and down when it upsamples.
TEST_F(OnnxRun, TheFirstResizeRoundsByDirection) {
  for (const auto& [scales, expected] : std::vector<std::pair<Numbers, Numbers>>{
           {{1, 1, 0.6, 0.6}, {1, 3}}, {{1, 1, 2, 0.6}, {1, 3, 1, 3, 5, 7, 5, 7}}}) {
    Load(ModelMaker(10)
             .Input("x", ElementType::kFloat, {1, 1, 2, 4})
             .Weight("scales", Floats({4}, scales))
             .Node("Resize", {"x", "scales"}, {"y"})
             .Output("y"));
    EXPECT_EQ(Run({{"x", Floats({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})}}), expected);
  }
}

// The maximum is over the weighted contributions of the four neighbours, not over samples.
TEST_F(OnnxRun, TheLargestOfARegionIsOfWeightedElements) {
  Load(ModelMaker(16)
           .Input("x", ElementType::kFloat, {1, 1, 2, 2})
           .Weight("rois", Floats({1, 4}, {0, 0, 1, 1}))
           .Weight("batch", Ints({1}, {0}))
           .Node("RoiAlign", {"x", "rois", "batch"}, {"y"}, IntAttribute("sampling_ratio", 1),
                 TextAttribute("mode", "max"),
                 TextAttribute("coordinate_transformation_mode", "output_half_pixel"))
           .Output("y"));
  EXPECT_EQ(Run({{"x", Floats({1, 1, 2, 2}, {4, 8, 12, 16})}}), (Numbers{4}));
  EXPECT_EQ(Run({{"x", Floats({1, 1, 2, 2}, {-4, -8, -12, -16})}}), (Numbers{-1}));
}

TEST_F(OnnxRun, VolumesAreSampled) {
  for (const auto& [mode, expected] :
       std::vector<std::pair<std::string, Numbers>>{{"linear", {3.5, 6, 0.875}}, {"nearest", {0, 6, 0}}}) {
    Load(ModelMaker(20)
             .Input("x", ElementType::kFloat, {1, 1, 2, 2, 2})
             // The centre; x = 0, y = 1, z = 1 in units of elements; and half an element outside.
             .Weight("grid", Floats({1, 1, 1, 3, 3}, {0, 0, 0, -0.5, 0.5, 0.5, 1, 1, 1}))
             .Node("GridSample", {"x", "grid"}, {"y"}, TextAttribute("mode", mode))
             .Output("y"));
    EXPECT_EQ(Run({{"x", Floats({1, 1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7})}}), expected) << mode;
    EXPECT_EQ(shape_, (Shape{1, 1, 1, 1, 3}));
  }
}

// Some converters declare a body's iteration number and condition with shape {1}.
TEST_F(OnnxRun, LoopsNumberTheirIterationsAsTheBodyDeclares) {
  for (const Shape& shape : {Shape{}, Shape{1}}) {
    GraphProto body;
    body.inputs = {Declared("i", ElementType::kInt64, shape), Declared("c", ElementType::kBool, shape),
                   Declared("s", ElementType::kInt64, {})};
    ModelMaker nodes(9);
    nodes.Node("Size", {"i"}, {"n"}).Node("Shape", {"i"}, {"d"}).Node("Size", {"d"}, {"rank"});
    nodes.Node("Add", {"s", "rank"}, {"t"}).Node("Identity", {"c"}, {"go"});
    body.nodes = nodes.model.graph.nodes;
    body.outputs = {Declared("go", ElementType::kBool, shape), Declared("t", ElementType::kInt64, {})};
    Load(ModelMaker(9)
             .Input("s", ElementType::kInt64, {})
             .Weight("n", Ints({}, {3}))
             .Node("Loop", {"n", "", "s"}, {"y"}, GraphAttribute("body", body))
             .Output("y", ElementType::kInt64));
    EXPECT_EQ(Run({{"s", Ints({}, {0})}}), (Numbers{3.0 * static_cast<double>(shape.size())}));
  }
}

TEST_F(OnnxRun, LayersOfHalfNumbersHaveWholeStatistics) {
  for (const int64_t version : {16, 17}) {
    Load(ModelMaker(version)
             .Input("x", ElementType::kFloat16, {1, 2})
             .Weight("scale", Floats({2}, {1, 1}))
             .Node("LayerNormalization", {"x", "scale"}, {"y", "mean"}, FloatAttribute("epsilon", 0))
             .Output("y", version < 17 ? ElementType::kFloat : ElementType::kFloat16)
             .Output("mean"));
    std::vector<NamedResult> results;
    ASSERT_EQ(
        session_->Run({{"x", FromDoubles(ElementType::kFloat16, {1, 2}, Numbers{1, 3})}}, &results).message(),
        "");
    EXPECT_EQ(results[0].tensor.type, version < 17 ? ElementType::kFloat : ElementType::kFloat16);
    EXPECT_EQ(ToDoubles(results[0].tensor), (Numbers{-1, 1}));
    EXPECT_EQ(results[1].tensor.type, ElementType::kFloat);
    EXPECT_EQ(ToDoubles(results[1].tensor), (Numbers{2}));
  }
}

// FLOAT16 cannot represent 2049, and the square of 1001 exceeds its range.
TEST_F(OnnxRun, StatisticsOfHalfNumbersAreComputedInSinglePrecision) {
  Load(ModelMaker(17)
           .Input("x", ElementType::kFloat16, {1, 2})
           .Weight("scale", FromDoubles(ElementType::kFloat16, {2}, Numbers{1, 1}))
           .Node("LayerNormalization", {"x", "scale"}, {"y", "mean", "inverse"}, FloatAttribute("epsilon", 0))
           .Output("mean")
           .Output("inverse"));
  const std::map<std::string, Tensor> inputs = {
      {"x", FromDoubles(ElementType::kFloat16, {1, 2}, Numbers{1048, 3050})}};
  EXPECT_EQ(Run(inputs), (Numbers{2049}));
  EXPECT_NEAR(Output(inputs, 1)[0], 1 / 1001.0, 1e-9);
}

TEST_F(OnnxRun, RootMeanSquaresHaveTheTypeOfTheirScale) {
  for (const auto& [name, version] : std::vector<std::pair<std::string, int64_t>>{
           {"RMSNormalization", 23}, {"SimplifiedLayerNormalization", 17}}) {
    for (const auto& [x, scale] : {std::pair(ElementType::kFloat16, ElementType::kFloat),
                                   std::pair(ElementType::kFloat, ElementType::kFloat16)}) {
      Load(ModelMaker(version)
               .Input("x", x, {1, 2})
               .Weight("scale", FromDoubles(scale, {2}, Numbers{4097, 0.5}))
               .Node(name, {"x", "scale"}, {"y"}, FloatAttribute("epsilon", 0))
               .Output("y", scale));
      std::vector<NamedResult> results;
      ASSERT_EQ(session_->Run({{"x", FromDoubles(x, {1, 2}, Numbers{2, -2})}}, &results).message(), "");
      EXPECT_EQ(results[0].tensor.type, scale);
      // FLOAT16 rounds it to 4096.
      EXPECT_EQ(ToDoubles(results[0].tensor),
                (Numbers{scale == ElementType::kFloat ? 4097.0 : 4096.0, -0.5}));
    }
  }
}

TEST_F(OnnxRun, IntegersBelowZeroAreZero) {
  for (const ElementType type :
       {ElementType::kInt8, ElementType::kInt16, ElementType::kInt32, ElementType::kInt64}) {
    Load(ModelMaker(14).Input("x", type, {3}).Node("Relu", {"x"}, {"y"}).Output("y", type));
    EXPECT_EQ(Run({{"x", Typed(type, {3}, {-128, 0, 127})}}), (Numbers{0, 0, 127}));
  }
}

TEST_F(OnnxRun, WithoutALimitIntegersAreNotClipped) {
  for (const ElementType type : {ElementType::kInt64, ElementType::kUInt64, ElementType::kInt32}) {
    Load(ModelMaker(13)
             .Input("x", type, {2})
             .Weight("least", Typed(type, {}, {5}))
             .Node("Clip", {"x", "least"}, {"y"})
             .Output("y", type));
    EXPECT_EQ(Run({{"x", Typed(type, {2}, {3, 1000000000})}}), (Numbers{5, 1e9}));
  }
}

TEST_F(OnnxRun, FourBitsAreCast) {
  for (const ElementType type : {ElementType::kInt4, ElementType::kUInt4}) {
    Load(ModelMaker(21)
             .Input("x", ElementType::kFloat, {3})
             .Node("Cast", {"x"}, {"q"}, IntAttribute("to", static_cast<int64_t>(type)))
             .Node("Cast", {"q"}, {"y"}, IntAttribute("to", static_cast<int64_t>(ElementType::kFloat)))
             .Output("y")
             .Output("q", type));
    const double last = type == ElementType::kInt4 ? -3 : 13;
    const std::map<std::string, Tensor> inputs = {{"x", Floats({3}, {1, 7, last})}};
    EXPECT_EQ(Run(inputs), (Numbers{1, 7, last}));
    EXPECT_EQ(Output(inputs, 1), (Numbers{1, 7, last}));
  }
}

}  // namespace
}  // namespace anydml::onnx
