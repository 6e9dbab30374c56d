// Convolutions that exporters write as DequantizeLinear, Conv and QuantizeLinear.
#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include "client/scoped_variable.h"
#include "onnx/model/quantized_convolutions.h"
#include "support/onnx_run.h"

namespace anydml::onnx {
namespace {

constexpr int64_t kChannels = 8, kInputs = 16;

// Scales and biases differ between channels.
double ScaleOf(int64_t channel) { return channel % 4 < 2 ? 0.5 : 0.25; }
double BiasOf(int64_t channel) { return 4 + 0.25 * static_cast<double>(channel); }

// The result of a channel is the sum of the numbers (negated for every second channel), times its scale, plus
// its bias.
ModelMaker Quantised(ElementType type, int64_t zero, const NodeProto& activation, bool bias_is_quantised,
                     bool weights_have_zeros = false) {
  const ElementType of_weights = weights_have_zeros ? ElementType::kUInt8 : ElementType::kInt8;
  std::vector<int64_t> ones, zeros, bias_steps;
  Numbers scales, biases;
  for (int64_t channel = 0; channel < kChannels; ++channel) {
    zeros.push_back(weights_have_zeros ? 10 + channel : 0);
    ones.insert(ones.end(), kInputs, zeros.back() + (channel % 2 == 0 ? 1 : -1));
    scales.push_back(ScaleOf(channel));
    biases.push_back(BiasOf(channel));
    bias_steps.push_back(16 + channel);
  }
  ModelMaker maker(13);
  maker.Input("x", ElementType::kFloat, {1, kInputs, 1, 2})
      .Weight("half", Floats({}, {0.5}))
      .Weight("scale", Floats({}, {0.25}))
      .Weight("zero", Typed(type, {}, {zero}))
      .Weight("w", Typed(of_weights, {kChannels, kInputs, 1, 1}, ones))
      .Weight("ws", Floats({kChannels}, scales))
      .Weight("wz", Typed(of_weights, {kChannels}, zeros))
      .Weight("b32", Typed(ElementType::kInt32, {kChannels}, bias_steps))
      .Weight("bs", Floats({kChannels}, Numbers(kChannels, 0.25)))
      .Weight("b", Floats({kChannels}, biases))
      .Weight("low", Floats({}, {-1}))
      .Weight("high", Floats({}, {6}))
      .Node("QuantizeLinear", {"x", "half", "zero"}, {"xq"})
      .Node("DequantizeLinear", {"xq", "half", "zero"}, {"xd"})
      .Node("DequantizeLinear", {"w", "ws", weights_have_zeros ? "wz" : ""}, {"wd"}, IntAttribute("axis", 0));
  if (bias_is_quantised) maker.Node("DequantizeLinear", {"b32", "bs"}, {"bd"}, IntAttribute("axis", 0));
  maker.Node("Conv", {"xd", "wd", bias_is_quantised ? "bd" : "b"}, {"c"});
  if (!activation.type.empty()) maker.model.graph.nodes.push_back(activation);
  const char* const last = activation.type.empty() ? "c" : "a";
  maker.Node("QuantizeLinear", {last, "scale", "zero"}, {"q1"})
      .Node("QuantizeLinear", {last, "scale", "zero"}, {"q2"})  // as some exporters repeat it
      .Node("DequantizeLinear", {"q1", "scale", "zero"}, {"y1"})
      .Node("DequantizeLinear", {"q2", "scale", "zero"}, {"y2"})
      .Node("Sub", {"y1", "y2"}, {"none"})
      .Node("Add", {"y1", "none"}, {"y"})
      .Output("y");
  return maker;
}

size_t CountOf(const Model& model, const std::string& type) {
  return static_cast<size_t>(std::count_if(model.graph.nodes.begin(), model.graph.nodes.end(),
                                           [&](const NodeProto& node) { return node.type == type; }));
}

TEST_F(OnnxRun, QuantisedConvolutions) {
  const NodeProto none, relu = {"", "Relu", "", {"c"}, {"a"}, {}},
                        clip = {"", "Clip", "", {"c", "low", "high"}, {"a"}, {}};
  for (const auto& [type, zero] : {std::pair{ElementType::kInt8, int64_t{0}},
                                   {ElementType::kUInt8, 0},
                                   {ElementType::kUInt8, 100},
                                   {ElementType::kInt8, -7}}) {
    for (const NodeProto* const activation : {&none, &relu, &clip}) {
      for (const int which : {0, 1, 2, 3}) {
        const ModelMaker maker = Quantised(type, zero, *activation, which % 2 != 0, which / 2 != 0);
        Model taken = maker.model;
        TakeQuantizedConvolutions(&taken);
        EXPECT_EQ(CountOf(taken, "QLinearConv"), 1u);
        EXPECT_EQ(CountOf(taken, "Conv"), 0u);
        EXPECT_EQ(CountOf(taken, "QuantizeLinear"), 1u);
        EXPECT_EQ(CountOf(taken, "Relu"), 0u);
        Load(maker);
        // Positions with 16 times 0.5 and 16 times 1 in steps of 0.5.
        Numbers x, expected;
        for (int64_t i = 0; i < kInputs; ++i) x.insert(x.end(), {0.5, 1.1});
        const int64_t least = type == ElementType::kInt8 ? -128 : 0;
        const double bottom = 0.25 * static_cast<double>(least - zero), top = bottom + 0.25 * 255;
        for (int64_t channel = 0; channel < kChannels; ++channel) {
          for (const double sum : {8.0, 16.0}) {
            double y = (channel % 2 == 0 ? sum : -sum) * ScaleOf(channel) + BiasOf(channel);
            if (activation == &relu) y = std::max(y, 0.0);
            if (activation == &clip) y = std::clamp(y, -1.0, 6.0);
            expected.push_back(std::clamp(y, bottom, top));
          }
        }
        EXPECT_EQ(Run({{"x", Floats({1, kInputs, 1, 2}, x)}}), expected) << activation->type << zero;
      }
    }
  }
}

// Bytes above 5.0 are clipped.
TEST_F(OnnxRun, QuantisedConvolutionsOnADeviceOfALowerFeatureLevel) {
  const client::ScopedVariable level("ANYDML_FEATURE_LEVEL", "3.0");
  SetUp();
  std::vector<int64_t> ones(kChannels * kInputs, 1);
  std::fill_n(ones.begin(), kInputs, -1);  // of the first channel
  ModelMaker maker(13);
  maker.Input("x", ElementType::kFloat, {1, kInputs, 1, 1})
      .Weight("one", Floats({}, {1}))
      .Weight("zero", Typed(ElementType::kInt8, {}, {0}))
      .Weight("w", Typed(ElementType::kInt8, {kChannels, kInputs, 1, 1}, ones))
      .Node("QuantizeLinear", {"x", "one", "zero"}, {"xq"})
      .Node("DequantizeLinear", {"xq", "one", "zero"}, {"xd"})
      .Node("DequantizeLinear", {"w", "one", "zero"}, {"wd"})
      .Node("Conv", {"xd", "wd"}, {"c"})
      .Node("Relu", {"c"}, {"a"})
      .Node("QuantizeLinear", {"a", "one", "zero"}, {"q"})
      .Node("DequantizeLinear", {"q", "one", "zero"}, {"y"})
      .Output("y");
  Model taken = maker.model;
  TakeQuantizedConvolutions(&taken);
  EXPECT_EQ(CountOf(taken, "Clip"), 1u);
  Load(maker);
  Numbers expected(kChannels, kInputs);
  expected[0] = 0;
  EXPECT_EQ(Run({{"x", Floats({1, kInputs, 1, 1}, Numbers(kInputs, 1))}}), expected);
}

// Each of two channels has the sum of three neighbours, the second one with the other sign.
TEST_F(OnnxRun, QuantisedDepthwiseConvolutions) {
  constexpr int64_t kWidth = 40;
  Numbers x;
  for (int64_t i = 0; i < 2 * kWidth; ++i) x.push_back(static_cast<double>(i % 7) - 2);
  for (const int64_t opset : {10, 13}) {  // Clip takes its limits as attributes and as inputs
    for (const auto& [type, zero] : {std::pair{ElementType::kInt8, int64_t{0}},
                                     {ElementType::kInt8, -5},
                                     {ElementType::kUInt8, 100},
                                     {ElementType::kInt8, -128}}) {
      ModelMaker maker(opset);
      maker.Input("x", ElementType::kFloat, {1, 2, 1, kWidth})
          .Weight("one", Floats({}, {1}))
          .Weight("half", Floats({}, {0.5}))
          .Weight("zero", Typed(type, {}, {zero}))
          .Weight("given", Typed(ElementType::kInt8, {}, {0}))
          .Weight("w", Typed(ElementType::kInt8, {2, 1, 1, 3}, {1, 1, 1, -1, -1, -1}))
          .Weight("b", Floats({2}, {1, -1}))
          .Weight("low", Floats({}, {-1}))
          .Weight("high", Floats({}, {6}))
          .Node("QuantizeLinear", {"x", "one", "given"}, {"xq"})
          .Node("DequantizeLinear", {"xq", "one", "given"}, {"xd"})
          .Node("DequantizeLinear", {"w", "one"}, {"wd"})
          .Node("Conv", {"xd", "wd", "b"}, {"c"}, IntAttribute("group", 2),
                IntsAttribute("pads", {0, 1, 0, 1}));
      if (opset < 11) {
        maker.Node("Relu", {"c"}, {"a"});
      } else {
        maker.Node("Clip", {"c", "low", "high"}, {"a"});
      }
      maker.Node("QuantizeLinear", {"a", "half", "zero"}, {"q"})
          .Node("DequantizeLinear", {"q", "half", "zero"}, {"y"})
          .Output("y");
      Model taken = maker.model;
      TakeQuantizedConvolutions(&taken);
      EXPECT_EQ(CountOf(taken, "QLinearConv"), 1u);
      Load(maker);
      const int64_t least = type == ElementType::kInt8 ? -128 : 0;
      const double bottom = 0.5 * static_cast<double>(least - zero), top = bottom + 0.5 * 255;
      Numbers expected;
      for (int64_t channel = 0; channel < 2; ++channel) {
        for (int64_t i = 0; i < kWidth; ++i) {
          double sum = 1;
          for (int64_t at = std::max<int64_t>(i - 1, 0); at < std::min(i + 2, kWidth); ++at)
            sum += x[static_cast<size_t>(channel * kWidth + at)];
          const double y = channel == 0 ? sum : -sum;
          expected.push_back(
              std::clamp(opset < 11 ? std::max(y, 0.0) : std::clamp(y, -1.0, 6.0), bottom, top));
        }
      }
      EXPECT_EQ(Run({{"x", Floats({1, 2, 1, kWidth}, x)}}), expected) << opset << " " << zero;
    }
  }
}

TEST_F(OnnxRun, SixteenBits) {
  for (const auto& [type, zero, expected] :
       {std::tuple{ElementType::kInt16, int64_t{-3}, Numbers{-3, -1, -3, 32767, -32768}},
        {ElementType::kUInt16, int64_t{7}, Numbers{7, 9, 7, 65535, 0}}}) {
    Load(ModelMaker(21)
             .Input("x", ElementType::kFloat, {5})
             .Weight("scale", Floats({}, {2}))
             .Weight("zero", Typed(type, {}, {zero}))
             .Node("QuantizeLinear", {"x", "scale", "zero"}, {"q"})
             .Node("DequantizeLinear", {"q", "scale", "zero"}, {"y"})
             .Output("q", type)
             .Output("y"));
    const std::map<std::string, Tensor> inputs = {{"x", Floats({5}, {0, 3, -1, 1e9, -1e9})}};
    EXPECT_EQ(Run(inputs), expected);
    Numbers numbers;
    for (const double step : expected) numbers.push_back(2 * (step - static_cast<double>(zero)));
    EXPECT_EQ(Output(inputs, 1), numbers);
    // FLOAT16 does not have enough numbers for the steps in between.
    Load(ModelMaker(21)
             .Input("x", ElementType::kFloat16, {3})
             .Weight("scale", FromDoubles(ElementType::kFloat16, {}, Numbers{0.5}))
             .Weight("zero", Typed(type, {}, {zero}))
             .Node("QuantizeLinear", {"x", "scale", "zero"}, {"q"})
             .Output("q", type));
    const double x[] = {4096, 1, 65504};
    EXPECT_EQ(Run({{"x", FromDoubles(ElementType::kFloat16, {3}, x)}}),
              (Numbers{8192.0 + static_cast<double>(zero), 2.0 + static_cast<double>(zero), expected[3]}));
  }
}

// The last block is shorter: along axis 1, three elements have scale 1 and the others have scale 10.
TEST_F(OnnxRun, BlocksThatAreNotWhole) {
  struct Case {
    ElementType type;
    int64_t zero;
  };
  for (const auto& [type, zero] : std::vector<Case>{{ElementType::kUInt8, 0},
                                                    {ElementType::kUInt8, 3},
                                                    {ElementType::kInt8, -2},
                                                    {ElementType::kUInt4, 0},
                                                    {ElementType::kInt4, -2},
                                                    {ElementType::kInt16, 5},
                                                    {ElementType::kUInt16, 0}}) {
    for (const int64_t length : {4, 5, 6}) {
      const bool has_zero = zero != 0;
      const std::vector<std::string> with = {"x", "scale", "zero"}, without = {"x", "scale", ""};
      ModelMaker maker(21);
      maker.Input("x", ElementType::kFloat, {1, length, 2})
          .Weight("scale", Floats({1, 2, 2}, {1, 0.5, 10, 100}))
          .Weight("zero", Typed(type, {1, 2, 2}, {zero, 0, 1, zero}))
          .Node("QuantizeLinear", {"x", "scale", has_zero ? "zero" : ""}, {"q"}, IntAttribute("axis", 1),
                IntAttribute("block_size", 3), IntAttribute("output_dtype", static_cast<int64_t>(type)))
          .Node("DequantizeLinear", {"q", "scale", has_zero ? "zero" : ""}, {"y"}, IntAttribute("axis", 1),
                IntAttribute("block_size", 3))
          .Output("y")
          .Output("q", type);
      Load(maker);
      Numbers x, steps;
      for (int64_t i = 0; i < length; ++i) {
        for (const int64_t column : {0, 1}) {
          const bool first = i < 3;
          const double scale = first ? (column == 0 ? 1 : 0.5) : column == 0 ? 10 : 100;
          const double shift = !has_zero     ? 0
                               : first       ? static_cast<double>(column == 0 ? zero : 0)
                               : column == 0 ? 1.0
                                             : static_cast<double>(zero);
          const double step = static_cast<double>(i + 1);
          x.push_back((step - shift) * scale);
          steps.push_back(step);
        }
      }
      const std::map<std::string, Tensor> inputs = {{"x", Floats({1, length, 2}, x)}};
      EXPECT_EQ(Run(inputs), x) << Name(type) << " " << zero << " " << length;
      EXPECT_EQ(Output(inputs, 1), steps) << Name(type) << " " << zero << " " << length;
    }
  }
}

TEST_F(OnnxRun, BlocksOfABias) {
  Load(ModelMaker(21)
           .Input("x", ElementType::kInt32, {5})
           .Weight("scale", Floats({3}, {1, 10, 100}))
           .Node("DequantizeLinear", {"x", "scale"}, {"y"}, IntAttribute("axis", 0),
                 IntAttribute("block_size", 2))
           .Output("y"));
  EXPECT_EQ(Run({{"x", Typed(ElementType::kInt32, {5}, {1, 2, 3, -4, 5})}}), (Numbers{1, 2, 30, -40, 500}));
}

TEST_F(OnnxRun, BlocksThatAreOthersThanTheirSizeSays) {
  const auto failure = [&](const Tensor& scale, const Tensor& zero, int64_t size) {
    Load(ModelMaker(21)
             .Input("x", ElementType::kUInt8, {1, 4})
             .Weight("scale", scale)
             .Weight("zero", zero)
             .Node("DequantizeLinear", {"x", "scale", "zero"}, {"y"}, IntAttribute("block_size", size))
             .Output("y"));
    return Failure({{"x", Typed(ElementType::kUInt8, {1, 4}, {10, 20, 30, 40})}});
  };
  const Tensor two = Floats({1, 2}, {1, 10}), zeros = Typed(ElementType::kUInt8, {1, 2}, {0, 0});
  EXPECT_EQ(failure(two, zeros, 3), "");
  EXPECT_EQ(failure(two, zeros, 100),
            "DequantizeLinear-21: scale has the shape 1x2; block_size 100 along axis 1 of 1x4 needs 1x1");
  EXPECT_EQ(failure(Floats({2, 2}, {1, 1, 1, 1}), zeros, 2),
            "DequantizeLinear-21: scale has the shape 2x2; block_size 2 along axis 1 of 1x4 needs 1x2");
  EXPECT_EQ(failure(two, Typed(ElementType::kUInt8, {1, 4}, {0, 0, 0, 0}), 2),
            "DequantizeLinear-21: zero point has the shape 1x4; block_size 2 along axis 1 of 1x4 needs 1x2");
  EXPECT_EQ(failure(two, zeros, -1), "DequantizeLinear-21: block_size is -1; 0 or more is allowed");
}

// Nodes stay as they are if their results have other consumers or their weights are not constants.
TEST_F(OnnxRun, ConvolutionsThatOthersReadStayAsTheyAre) {
  const auto count = [](ModelMaker maker) {
    TakeQuantizedConvolutions(&maker.model);
    return CountOf(maker.model, "QLinearConv");
  };
  const NodeProto relu = {"", "Relu", "", {"c"}, {"a"}, {}};
  ModelMaker read = Quantised(ElementType::kInt8, 0, relu, false), given = read, blocks = read;
  EXPECT_EQ(count(read), 1u);
  read.Output("c");
  EXPECT_EQ(count(read), 0u);
  given.model.graph.initializers.erase("w");
  given.Input("w", ElementType::kInt8, {kChannels, kInputs, 1, 1});
  EXPECT_EQ(count(given), 0u);
  blocks.model.graph.initializers["half"] = Floats({2}, {1, 1});
  EXPECT_EQ(count(blocks), 0u);
}

// Nodes also stay if results would differ by more than a step, or if the model is invalid.
TEST_F(OnnxRun, QuantisedConvolutionsThatStayAsTheyAre) {
  const NodeProto relu = {"", "Relu", "", {"c"}, {"a"}, {}}, two = {"", "Relu", "", {"c", "x"}, {"a"}, {}};
  const auto count = [&](const NodeProto& activation, const std::function<void(GraphProto*)>& change) {
    ModelMaker maker = Quantised(ElementType::kUInt8, 100, activation, false);
    change(&maker.model.graph);
    TakeQuantizedConvolutions(&maker.model);
    return CountOf(maker.model, "QLinearConv");
  };
  EXPECT_EQ(count(relu, [](GraphProto*) {}), 1u);
  EXPECT_EQ(count(two, [](GraphProto*) {}), 0u);
  for (const float scale : {0.0f, -1.0f, INFINITY, NAN}) {
    EXPECT_EQ(count(relu, [&](GraphProto* graph) { graph->initializers["scale"] = Floats({}, {scale}); }), 0u)
        << scale;
  }
  const auto with_bias = [&](double bias) {
    return count(relu, [&](GraphProto* graph) {
      graph->initializers["b"] = Floats({kChannels}, Numbers(kChannels, bias));
    });
  };
  EXPECT_EQ(with_bias(0.1), 1u);  // 0 or 0.125; a step of the result is 0.25
  EXPECT_EQ(with_bias(0x1p28), 0u);
  EXPECT_EQ(count(relu,
                  [](GraphProto* graph) {
                    graph->initializers["scale"] = Floats({}, {0.01});
                    graph->initializers["b"] = Floats({kChannels}, Numbers(kChannels, 0.05));
                  }),
            0u);
  EXPECT_EQ(count(relu,
                  [](GraphProto* graph) {
                    NodeProto useless = {"", "QuantizeLinear", "", {"x", "half", "zero"}, {}, {}};
                    graph->nodes.push_back(useless);
                  }),
            1u);
}

// Names that already occur in the model.
TEST_F(OnnxRun, NamesBesideQuantisedConvolutions) {
  const NodeProto relu = {"", "Relu", "", {"c"}, {"a"}, {}};
  ModelMaker maker = Quantised(ElementType::kInt8, 0, relu, false);
  maker.Weight("quantised 1", Floats({}, {3})).Node("Add", {"y", "quantised 1"}, {"quantised 2"});
  maker.Output("quantised 2");
  Load(maker);
  const std::map<std::string, Tensor> inputs = {
      {"x", Floats({1, kInputs, 1, 2}, Numbers(static_cast<size_t>(2 * kInputs), 0.5))}};
  Numbers expected = Run(inputs);
  for (double& number : expected) number += 3;
  EXPECT_EQ(Output(inputs, 1), expected);
}

}  // namespace
}  // namespace anydml::onnx
