// Edge cases in which DirectML and ONNX differ, and devices with lower feature levels.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "client/scoped_variable.h"
#include "support/onnx_run.h"

namespace anydml::onnx {
namespace {

TEST_F(OnnxRun, RegionsAreAPixelWideWhereNothingIsShifted) {
  const Tensor ramp = Floats({1, 1, 2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  for (const auto& [mode, expected] : std::vector<std::pair<std::string, Numbers>>{
           {"output_half_pixel", {3.5, 4.5}}, {"half_pixel", {0.5, 2}}}) {
    Load(ModelMaker(16)
             .Input("x", ElementType::kFloat, {1, 1, 2, 4})
             .Weight("rois", Floats({2, 4}, {1, 0, 1, 0, 1, 0, 4, 1}))  // a point, and 3 x 1 pixels
             .Weight("batch", Ints({2}, {0, 0}))
             .Node("RoiAlign", {"x", "rois", "batch"}, {"y"}, IntAttribute("sampling_ratio", 1),
                   TextAttribute("coordinate_transformation_mode", mode))
             .Output("y"));
    EXPECT_EQ(Run({{"x", ramp}}), expected) << mode;
  }
}

TEST_F(OnnxRun, SequencesWithoutStepsHaveNoState) {
  Load(ModelMaker(14)
           .Input("x", ElementType::kFloat, {-1, 2, 1})
           .Input("lengths", ElementType::kInt32, {2})
           .Weight("w", Floats({1, 1, 1}, {1}))
           .Weight("r", Floats({1, 1, 1}, {0}))
           .Weight("h", Floats({1, 2, 1}, {5, 6}))
           .Node("RNN", {"x", "w", "r", "", "lengths", "h"}, {"", "y"}, IntAttribute("hidden_size", 1))
           .Output("y"));
  const Tensor lengths = Typed(ElementType::kInt32, {2}, {0, 1});
  const Numbers y = Run({{"x", Floats({1, 2, 1}, {1, 0.5})}, {"lengths", lengths}});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(y[0], 0);
  EXPECT_NEAR(y[1], std::tanh(0.5), 1e-6);
  EXPECT_EQ(Run({{"x", Floats({0, 2, 1}, {})}, {"lengths", lengths}}), (Numbers{0, 0}));
}

TEST_F(OnnxRun, KernelsAreStretchedByHalves) {
  Load(ModelMaker(18)
           .Input("x", ElementType::kFloat, {1, 1, 1, 4})
           .Weight("scales", Floats({4}, {1, 1, 1, 0.5}))
           .Node("Resize", {"x", "", "scales"}, {"y"}, TextAttribute("mode", "linear"),
                 IntAttribute("antialias", 1))
           .Output("y"));
  // Around 0.5 and 2.5: weights of 1/8, 3/8, 3/8, 1/8, with the first and last elements repeated outside.
  EXPECT_EQ(Run({{"x", Floats({1, 1, 1, 4}, {0, 8, 16, 80})}}), (Numbers{5, 47}));
}

// ceil(-1 / 2) + 1 outputs; none without rounding up.
TEST_F(OnnxRun, WindowsLargerThanTheirInputAreRoundedUp) {
  for (const auto& [type, expected] :
       std::vector<std::pair<std::string, double>>{{"MaxPool", 4}, {"AveragePool", 2.5}, {"LpPool", 10}}) {
    for (const int64_t ceil : {1, 0}) {
      ModelMaker maker(22);
      maker.Input("x", ElementType::kFloat, {1, 1, 2, 2})
          .Node(type, {"x"}, {"y"}, IntsAttribute("kernel_shape", {3, 3}), IntsAttribute("strides", {2, 2}),
                IntAttribute("ceil_mode", ceil))
          .Output("y");
      if (type == "LpPool") maker.model.graph.nodes[0].attributes.push_back(IntAttribute("p", 1));
      Load(std::move(maker));
      const Tensor x = Floats({1, 1, 2, 2}, {1, 2, 3, 4});
      if (ceil != 0) {
        EXPECT_EQ(Run({{"x", x}}), (Numbers{expected})) << type;
        EXPECT_EQ(shape_, (Shape{1, 1, 1, 1})) << type;
      } else {
        EXPECT_EQ(Failure({{"x", x}}), StrCat(type, "-22: a window of 3 over 2 elements"));
      }
    }
  }
}

TEST_F(OnnxRun, BatchesOfOneDimensionHaveOneChannel) {
  for (const int64_t training : {0, 1}) {
    Load(ModelMaker(15)
             .Input("x", ElementType::kFloat, {4})
             .Weight("scale", Floats({1}, {2}))
             .Weight("bias", Floats({1}, {1}))
             .Weight("mean", Floats({1}, {3}))
             .Weight("variance", Floats({1}, {1}))
             .Node("BatchNormalization", {"x", "scale", "bias", "mean", "variance"}, {"y"},
                   FloatAttribute("epsilon", 0), IntAttribute("training_mode", training))
             .Output("y"));
    const Numbers y = Run({{"x", Floats({4}, {2, 4, 2, 4})}});
    EXPECT_EQ(y, (Numbers{-1, 3, -1, 3})) << training;
    EXPECT_EQ(shape_, (Shape{4}));
  }
}

// Too long for matrix products: uses DirectML's kernels, which agree except at the edges.
TEST_F(OnnxRun, LongAxesAreResizedWithoutMatrices) {
  constexpr int64_t kWidth = 12000;
  Load(ModelMaker(18)
           .Input("x", ElementType::kFloat, {1, 1, 1, kWidth})
           .Weight("scales", Floats({4}, {1, 1, 1, 0.5}))
           .Node("Resize", {"x", "", "scales"}, {"y"}, TextAttribute("mode", "linear"),
                 IntAttribute("antialias", 1))
           .Output("y"));
  Numbers ramp(kWidth);
  std::iota(ramp.begin(), ramp.end(), 0);
  const Numbers y = Run({{"x", Floats({1, 1, 1, kWidth}, ramp)}});
  ASSERT_EQ(y.size(), static_cast<size_t>(kWidth / 2));
  for (const size_t i : {10, 3000, 5900}) EXPECT_NEAR(y[i], 2.0 * static_cast<double>(i) + 0.5, 1e-2);
}

TEST_F(OnnxRun, ScalesOfABiasNeedNoAxis) {
  Load(ModelMaker(13)
           .Input("x", ElementType::kInt32, {2})
           .Weight("scale", Floats({2}, {2, 3}))
           .Node("DequantizeLinear", {"x", "scale"}, {"y"})
           .Output("y"));
  EXPECT_EQ(Run({{"x", Typed(ElementType::kInt32, {2}, {5, -7})}}), (Numbers{10, -21}));
}

// Before 6.2 graphs have no nodes for constants.
TEST_F(OnnxRun, ConstantsOnADeviceOfALowerFeatureLevel) {
  const client::ScopedVariable level("ANYDML_FEATURE_LEVEL", "5.0");
  SetUp();
  Load(ModelMaker(14)
           .Input("x", ElementType::kFloat, {1, 1, 1})
           .Weight("w", Floats({1, 1, 1}, {1}))
           .Weight("r", Floats({1, 1, 1}, {2}))
           .Weight("h", Floats({1, 1, 1}, {0.25}))
           .Weight("shift", Floats({1}, {3}))
           .Node("RNN", {"x", "w", "r", "", "", "h"}, {"", "y"}, IntAttribute("hidden_size", 1))
           .Node("Add", {"y", "shift"}, {"z"})
           .Output("z"));
  for (const double x : {0.0, 1.0}) {
    const Numbers z = Run({{"x", Floats({1, 1, 1}, {x})}});
    ASSERT_EQ(z.size(), 1u);
    EXPECT_NEAR(z[0], std::tanh(x + 0.5) + 3, 1e-5);
  }
}

// Runs without the debug layer keep their buffers.
class OnnxPreparedRun : public OnnxRun {
 protected:
  void SetUp() override {
    OnnxRun::SetUp();
    client::SessionOptions options;
    options.adapter = device_->adapter().id;
    options.debug = false;
    ASSERT_EQ(client::Session::Create(options, &device_).message(), "");
  }
  Tensor Result(const std::map<std::string, Tensor>& inputs) {
    std::vector<NamedResult> results;
    EXPECT_EQ(session_->Run(inputs, &results).message(), "");
    return results.empty() ? Tensor() : results[0].tensor;
  }
};

// As docs/python.md says about models; with the debug layer a message reports it.
TEST_F(OnnxPreparedRun, IndicesOutOfRangeAreClamped) {
  const ModelMaker maker = ModelMaker(13)
                               .Input("x", ElementType::kFloat, {3})
                               .Input("i", ElementType::kInt64, {1})
                               .Node("Gather", {"x", "i"}, {"y"})
                               .Output("y");
  const std::map<std::string, Tensor> inputs = {{"x", Floats({3}, {1, 2, 3})}, {"i", Ints({1}, {5})}};
  Load(maker);
  EXPECT_EQ(ToDoubles(Result(inputs)), (Numbers{3}));
  session_.reset();
  OnnxRun::SetUp();
  Load(maker);
  EXPECT_NE(Failure(inputs).find("IndicesTensor[0] is 5"), std::string::npos) << Failure(inputs);
}

TEST_F(OnnxPreparedRun, ResultsOfAMegabyteAreNotOverwritten) {
  constexpr int64_t kCount = 300000;
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {-1})
           .Weight("one", Floats({1}, {1}))
           .Node("Add", {"x", "one"}, {"y"})
           .Output("y"));
  const Tensor ones = Floats({kCount}, Numbers(kCount, 1)), twos = Floats({kCount}, Numbers(kCount, 2));
  const Tensor first = Result({{"x", ones}}), second = Result({{"x", twos}}), third = Result({{"x", ones}});
  EXPECT_EQ(ToDoubles(first), Numbers(kCount, 2));
  EXPECT_EQ(ToDoubles(second), Numbers(kCount, 3));
  EXPECT_EQ(ToDoubles(third), Numbers(kCount, 2));
  EXPECT_EQ(Run({{"x", twos}}), Numbers(kCount, 3));
  EXPECT_FALSE(session_->device_seconds());
  session_->set_timed();
  EXPECT_EQ(Run({{"x", ones}}), Numbers(kCount, 2));
  ASSERT_TRUE(session_->device_seconds());
  EXPECT_GT(*session_->device_seconds(), 0);
}

// Weights packed for other sizes are either packed identically or not shared.
TEST_F(OnnxPreparedRun, SizesThatShareWeights) {
  constexpr int64_t kSize = 1472;  // more than one comparison block
  Numbers reversed(kSize * kSize, 0);
  for (size_t i = 0; i < kSize; ++i) reversed[i * kSize + (kSize - 1 - i)] = 1;
  Load(ModelMaker(13)
           .Input("x", ElementType::kFloat, {-1, kSize})
           .Weight("w", Floats({kSize, kSize}, reversed))
           .Node("MatMul", {"x", "w"}, {"y"})
           .Output("y"));
  for (const int64_t rows : {3, 40, 1, 41, 3, 2, 5, 6, 7, 40, 8}) {
    Numbers x(static_cast<size_t>(rows * kSize));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 1000);
    Numbers expected = x;
    for (auto row = expected.begin(); row != expected.end(); row += kSize) std::reverse(row, row + kSize);
    EXPECT_EQ(Run({{"x", Floats({rows, kSize}, x)}}), expected) << rows;
  }
}

// Version 8 scans each element of a batch by itself.
TEST_F(OnnxRun, ScansOfABatch) {
  GraphProto body;
  body.inputs = {Declared("s", ElementType::kFloat, {1}), Declared("x", ElementType::kFloat, {1})};
  body.nodes = {{"", "Add", "", {"s", "x"}, {"t"}, {}}, {"", "Neg", "", {"t"}, {"n"}, {}}};
  body.outputs = {Declared("t", ElementType::kFloat, {1}), Declared("n", ElementType::kFloat, {1})};
  for (const bool backwards : {false, true}) {
    Load(ModelMaker(8)
             .Input("lengths", ElementType::kInt64, {2})
             .Input("s", ElementType::kFloat, {2, 1})
             .Input("x", ElementType::kFloat, {2, 3, 1})
             .Node("Scan", {"lengths", "s", "x"}, {"t", "n"}, IntAttribute("num_scan_inputs", 1),
                   IntsAttribute("directions", {backwards}), GraphAttribute("body", body))
             .Output("t")
             .Output("n"));
    const std::map<std::string, Tensor> inputs = {{"lengths", Ints({2}, {3, 2})},
                                                  {"s", Floats({2, 1}, {0, 100})},
                                                  {"x", Floats({2, 3, 1}, {1, 2, 3, 4, 5, 6})}};
    EXPECT_EQ(Run(inputs), (Numbers{6, 109}));
    EXPECT_EQ(Output(inputs, 1),
              backwards ? (Numbers{-3, -5, -6, -105, -109, 0}) : (Numbers{-1, -3, -6, -104, -109, 0}));
    EXPECT_EQ(shape_, (Shape{2, 3, 1}));
  }
}

TEST_F(OnnxRun, WordsAreCounted) {
  // 2, 3, 5 and 4 separately; 5 6, 7 8 and 6 7 together.
  const auto load = [this](const char* mode, int64_t skips) {
    Load(ModelMaker(9)
             .Input("x", ElementType::kInt64, {-1, -1})
             .Node("TfIdfVectorizer", {"x"}, {"y"}, TextAttribute("mode", mode),
                   IntAttribute("min_gram_length", 1), IntAttribute("max_gram_length", 2),
                   IntAttribute("max_skip_count", skips), IntsAttribute("ngram_counts", {0, 4}),
                   IntsAttribute("ngram_indexes", {6, 5, 4, 3, 2, 1, 0}),
                   IntsAttribute("pool_int64s", {2, 3, 5, 4, 5, 6, 7, 8, 6, 7}))
             .Output("y"));
  };
  const std::map<std::string, Tensor> inputs = {{"x", Ints({2, 6}, {1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8})}};
  load("TF", 0);
  EXPECT_EQ(Run(inputs), (Numbers{0, 0, 0, 0, 0, 3, 0, 1, 0, 1, 0, 1, 0, 0}));
  EXPECT_EQ(shape_, (Shape{2, 7}));
  load("IDF", 5);  // 7 . . 8, and others
  EXPECT_EQ(Run(inputs), (Numbers{0, 0, 0, 0, 0, 1, 0, 1, 1, 1, 0, 1, 0, 0}));
  EXPECT_EQ(Failure({{"x", Ints({1, 0}, {})}}), "");
}

TEST_F(OnnxRun, NoMoreWordsThanAnyNGramHas) {
  const auto load = [this](int64_t skips) {
    Load(ModelMaker(9)
             .Input("x", ElementType::kInt64, {-1})
             .Node("TfIdfVectorizer", {"x"}, {"y"}, TextAttribute("mode", "TF"),
                   IntAttribute("min_gram_length", 1), IntAttribute("max_gram_length", INT64_MAX),
                   IntAttribute("max_skip_count", skips), IntsAttribute("ngram_counts", {0, 1, 3, 3}),
                   IntsAttribute("ngram_indexes", {0, 1}), IntsAttribute("pool_int64s", {7, 7, 7}))
             .Output("y"));
  };
  constexpr int64_t kCount = 100000;
  const Tensor x = Ints({kCount}, std::vector<int64_t>(kCount, 7));
  load(0);
  EXPECT_EQ(Run({{"x", x}}), (Numbers{kCount, kCount - 1}));
  load(INT64_MAX);
  EXPECT_EQ(Run({{"x", Ints({3}, {7, 7, 7})}}), (Numbers{3, 3}));
  EXPECT_NE(Failure({{"x", x}}).find("left out, in 100000 words"), std::string::npos);
}

TEST_F(OnnxRun, UnknownModesAreRefused) {
  struct Case {
    const char *type, *attribute, *allowed;
    std::vector<Shape> inputs;
  };
  const Shape image = {1, 4, 2, 2};
  for (const Case& c : std::vector<Case>{
           {"GridSample",
            "mode",
            "\"linear\", \"nearest\", \"cubic\", \"bilinear\", \"bicubic\"",
            {image, image}},
           {"GridSample", "padding_mode", "\"zeros\", \"border\", \"reflection\"", {image, image}},
           {"RoiAlign", "mode", "\"avg\", \"max\"", {image, {1, 4}, {1}}},
           {"Gelu", "approximate", "\"none\", \"tanh\"", {image}},
           {"BitShift", "direction", "\"RIGHT\", \"LEFT\"", {image, image}},
           {"DepthToSpace", "mode", "\"DCR\", \"CRD\"", {image}},
           {"RNN",
            "direction",
            "\"forward\", \"reverse\", \"bidirectional\"",
            {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}},
           {"MaxPool", "auto_pad", "\"NOTSET\", \"SAME_UPPER\", \"SAME_LOWER\", \"VALID\", \"\"", {image}},
       }) {
    ModelMaker maker(20);
    std::map<std::string, Tensor> inputs;
    std::vector<std::string> names;
    for (const Shape& shape : c.inputs) {
      names.push_back(std::string(1, static_cast<char>('a' + names.size())));
      maker.Input(names.back(), ElementType::kFloat, shape);
      inputs[names.back()] = Floats(shape, Numbers(static_cast<size_t>(*ElementCount(shape)), 0));
    }
    maker.Node(c.type, names, {"y"}, TextAttribute(c.attribute, "sideways"), IntAttribute("blocksize", 2),
               IntsAttribute("kernel_shape", {1, 1}));
    Load(std::move(maker.Output("y")));
    EXPECT_NE(Failure(inputs).find(StrCat(c.attribute, " is \"sideways\"; allowed: ", c.allowed)),
              std::string::npos)
        << Failure(inputs);
  }
}

// Before version 10 the mask has the data's type.
TEST_F(OnnxRun, MasksOfOldDropouts) {
  for (const int64_t opset : {7, 9, 10}) {
    Load(ModelMaker(opset)
             .Input("x", ElementType::kFloat, {3})
             .Node("Dropout", {"x"}, {"y", "mask"})
             .Output("y")
             .Output("mask", opset < 10 ? ElementType::kFloat : ElementType::kBool));
    std::vector<NamedResult> results;
    ASSERT_EQ(session_->Run({{"x", Floats({3}, {1, 2, 3})}}, &results).message(), "");
    EXPECT_EQ(results[1].tensor.type, opset < 10 ? ElementType::kFloat : ElementType::kBool) << opset;
    EXPECT_EQ(ToDoubles(results[1].tensor), (Numbers{1, 1, 1})) << opset;
  }
}

// If the host cannot compute it either, the error gives DirectML's reason.
TEST_F(OnnxRun, RefusalsHaveDirectMlsReason) {
  const Shape shape(9, 1);
  Load(ModelMaker(13).Input("x", ElementType::kFloat, shape).Node("ReduceMean", {"x"}, {"y"}).Output("y"));
  EXPECT_EQ(Failure({{"x", Floats(shape, {1})}}),
            "unsupported: ReduceMean-13: REDUCE: InputTensor.DimensionCount is 9; it must be at most 8; nor "
            "on the host");
}

}  // namespace
}  // namespace anydml::onnx
