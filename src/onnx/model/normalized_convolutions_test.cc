// Convolutions followed by BatchNormalization, Mul and Add with constants.
#include <algorithm>
#include <cmath>

#include "onnx/model/normalized_convolutions.h"
#include "support/onnx_run.h"

namespace anydml::onnx {
namespace {

constexpr int64_t kGroups = 2, kIn = 2, kOut = 3;  // channels per group
constexpr int64_t kPlanes = kGroups * kIn, kFilters = kGroups * kOut, kPixels = 5;

double TapOf(int64_t in, int64_t out) {
  return 0.5 * static_cast<double>(in + 1) - 0.25 * static_cast<double>(out);
}
double OffsetOf(int64_t channel) { return static_cast<double>(channel) - 2; }
double FactorOf(int64_t channel) { return channel % 2 == 0 ? 2 : -0.5; }
double ShiftOf(int64_t channel) { return 3 - static_cast<double>(channel); }

Numbers Each(double (*of)(int64_t)) {
  Numbers numbers;
  for (int64_t channel = 0; channel < kFilters; ++channel) numbers.push_back(of(channel));
  return numbers;
}

Tensor X() {
  Numbers numbers;
  for (int64_t i = 0; i < kPlanes * kPixels; ++i) numbers.push_back(static_cast<double>(i % 7) - 3);
  return Floats({1, kPlanes, 1, kPixels}, numbers);
}

// 1x1 filters in two groups, in the layout that Conv or ConvTranspose uses.
ModelMaker Convolving(bool transposed, bool has_bias) {
  Numbers weights;
  for (int64_t group = 0; group < kGroups; ++group) {
    for (int64_t i = 0; i < kIn * kOut; ++i) {
      const int64_t in = transposed ? i / kOut : i % kIn, out = transposed ? i % kOut : i / kIn;
      weights.push_back(TapOf(group * kIn + in, group * kOut + out));
    }
  }
  ModelMaker maker(13);
  maker.Input("x", ElementType::kFloat, {1, kPlanes, 1, kPixels})
      .Weight("w", Floats(transposed ? Shape{kPlanes, kOut, 1, 1} : Shape{kFilters, kIn, 1, 1}, weights))
      .Weight("b", Floats({kFilters}, Each(OffsetOf)))
      .Weight("scale", Floats({kFilters}, Each(FactorOf)))
      .Weight("shift", Floats({kFilters}, Each(ShiftOf)))
      .Weight("mean", Floats({kFilters}, Each([](int64_t c) { return 0.125 * static_cast<double>(c); })))
      .Weight("variance", Floats({kFilters}, Each([](int64_t c) { return c == 1 ? 0.25 : 4.0; })))
      .Weight("of_channels", Floats({kFilters, 1, 1}, Each(FactorOf)))
      .Weight("of_channels4", Floats({1, kFilters, 1, 1}, Each(ShiftOf)))
      .Weight("of_pixels", Floats({kPixels}, Numbers(kPixels, 2)))
      .Weight("two", Floats({}, {2}))
      .Weight("more", Floats({1, 1, 1, 1, 1}, {2}))
      .Node(transposed ? "ConvTranspose" : "Conv", {"x", "w", has_bias ? "b" : ""}, {"c"},
            IntAttribute("group", kGroups));
  return maker;
}

// `after` maps a channel's sum to the expected result.
template <typename After>
Numbers Expected(bool has_bias, const After& after) {
  const Numbers x = ToDoubles(X());
  Numbers y;
  for (int64_t channel = 0; channel < kFilters; ++channel) {
    for (int64_t pixel = 0; pixel < kPixels; ++pixel) {
      double sum = has_bias ? OffsetOf(channel) : 0;
      for (int64_t i = 0; i < kIn; ++i) {
        const int64_t in = channel / kOut * kIn + i;
        sum += TapOf(in, channel) * x[static_cast<size_t>(in * kPixels + pixel)];
      }
      y.push_back(after(sum, channel));
    }
  }
  return y;
}

size_t NodesOf(const ModelMaker& maker) {
  Model folded = maker.model;
  FoldNormalizations(&folded);
  return folded.graph.nodes.size();
}

class Normalised : public OnnxRun {
 protected:
  void ExpectNear(const ModelMaker& maker, const Numbers& expected) {
    Load(maker);
    const Numbers y = Run({{"x", X()}});
    ASSERT_EQ(y.size(), expected.size());
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_NEAR(y[i], expected[i], 1e-5 * (1 + std::fabs(expected[i]))) << i;
  }
};

TEST_F(Normalised, ByBatchNormalizationAndSteps) {
  for (const bool transposed : {false, true}) {
    for (const bool has_bias : {false, true}) {
      ModelMaker maker = Convolving(transposed, has_bias);
      maker.Node("BatchNormalization", {"c", "scale", "shift", "mean", "variance"}, {"n"})
          .Node("Mul", {"of_channels", "n"}, {"m"})
          .Node("Add", {"m", "of_channels4"}, {"a"})
          .Node("Mul", {"a", "two"}, {"y"})
          .Output("y");
      EXPECT_EQ(NodesOf(maker), 1u);
      ExpectNear(maker, Expected(has_bias, [](double sum, int64_t c) {
                   const double variance = c == 1 ? 0.25 : 4.0, mean = 0.125 * static_cast<double>(c);
                   const double n = (sum - mean) / std::sqrt(variance + 1e-5) * FactorOf(c) + ShiftOf(c);
                   return (n * FactorOf(c) + ShiftOf(c)) * 2;
                 }));
    }
  }
}

TEST_F(Normalised, OnlyWhereNobodyElseReadsTheSums) {
  ModelMaker maker = Convolving(false, true);
  maker.Node("Mul", {"c", "two"}, {"m"}).Node("Add", {"m", "c"}, {"y"}).Output("y");
  EXPECT_EQ(NodesOf(maker), 3u);
  ExpectNear(maker, Expected(true, [](double sum, int64_t) { return 3 * sum; }));
  ModelMaker output = Convolving(false, true);
  output.Node("Mul", {"c", "two"}, {"y"}).Output("c").Output("y");
  EXPECT_EQ(NodesOf(output), 2u);
}

TEST_F(Normalised, OnlyByNumbersOfChannels) {
  ModelMaker pixels = Convolving(false, false);
  pixels.Node("Mul", {"c", "of_pixels"}, {"y"}).Output("y");
  EXPECT_EQ(NodesOf(pixels), 2u);
  ExpectNear(pixels, Expected(false, [](double sum, int64_t) { return 2 * sum; }));
  ModelMaker rank = Convolving(false, false);  // the result has five dimensions
  rank.Node("Mul", {"c", "more"}, {"y"}).Output("y");
  EXPECT_EQ(NodesOf(rank), 2u);
  Load(rank);
  Run({{"x", X()}});
  EXPECT_EQ(shape_, (Shape{1, 1, kFilters, 1, kPixels}));
  ModelMaker infinite = Convolving(false, false);
  infinite.Weight("infinite", Floats({}, {HUGE_VAL})).Node("Add", {"c", "infinite"}, {"y"}).Output("y");
  EXPECT_EQ(NodesOf(infinite), 2u);
}

// Nor if the model is invalid: the reader of that node reports it.
TEST_F(Normalised, NotWhereANameIsGivenTwice) {
  ModelMaker maker = Convolving(false, false);
  maker.Node("Relu", {"x"}, {"c"}).Node("Mul", {"c", "two"}, {"y"}).Output("y");
  EXPECT_EQ(NodesOf(maker), 3u);
}

// New filters stay in memory: with two of them, the second would exceed the limit.
TEST_F(Normalised, OnlySoManyFilters) {
  constexpr int64_t kMany = 1600;
  ModelMaker maker(13);
  maker.Input("x", ElementType::kFloat, {1, kMany, 1, 1})
      .Weight("w", Floats({kMany, kMany, 1, 1}, Numbers(kMany * kMany, 0.5)))
      .Weight("two", Floats({}, {2}))
      .Node("Conv", {"x", "w"}, {"c"})
      .Node("Mul", {"c", "two"}, {"m"})
      .Node("Conv", {"m", "w"}, {"d"})
      .Node("Mul", {"d", "two"}, {"e"})
      .Node("Add", {"e", "two"}, {"y"})
      .Output("y");
  EXPECT_EQ(NodesOf(maker), 4u);
}

}  // namespace
}  // namespace anydml::onnx
