// Resampling against results computed by hand and ONNX's examples.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <random>

#include "ops/resample/cpu/axis_table.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

constexpr uint32_t kNearest = 0, kLinear = 1, kIncreasing = 0, kDecreasing = 1;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Floats = std::vector<float>;
using Sizes = std::vector<uint32_t>;

// A value per dimension, or one for all.
struct Map {
  Floats scales;
  Floats input_offsets = {0.5f};
  Floats output_offsets = {-0.5f};
};

Floats Repeated(const Floats& values, size_t rank) {
  return values.size() == 1 ? Floats(rank, values[0]) : values;
}

OperatorDesc Resample3(const TensorDesc& input, const TensorDesc& output, uint32_t mode, uint32_t rounding,
                       const Map& map, bool antialiased) {
  return MakeDesc("RESAMPLE3", {{"InputTensor", input},
                                {"OutputTensor", output},
                                {"InterpolationMode", mode},
                                {"RoundingDirection", rounding},
                                {"DimensionCount", input.rank},
                                {"Scales", Repeated(map.scales, input.rank)},
                                {"InputPixelOffsets", Repeated(map.input_offsets, input.rank)},
                                {"OutputPixelOffsets", Repeated(map.output_offsets, input.rank)},
                                {"Antialiased", antialiased ? 1u : 0u}});
}

template <typename T>
std::vector<T> Resampled(const OperatorDesc& desc, const std::vector<T>& values) {
  const RunResult result = ExpectAllAgree(desc, {Scattered(*desc.inputs()[0], values)});
  return Gathered<T>(*desc.outputs()[0], result.outputs[0]);
}

Floats Linear(const Sizes& from, const Sizes& to, const Map& map, const Floats& values,
              bool antialiased = false) {
  return Resampled(Resample3(Packed(DataType::kFloat32, from), Packed(DataType::kFloat32, to), kLinear,
                             kDecreasing, map, antialiased),
                   values);
}

// RESAMPLE, RESAMPLE1: ties round up.
Floats NearestHalfUp(uint32_t to, float scale, const Floats& values) {
  const TensorDesc input = Packed(DataType::kFloat32, {static_cast<uint32_t>(values.size())});
  return Resampled(MakeDesc("RESAMPLE", {{"InputTensor", input},
                                         {"OutputTensor", Packed(DataType::kFloat32, {to})},
                                         {"InterpolationMode", kNearest},
                                         {"ScaleCount", 1u},
                                         {"Scales", Floats{scale}}}),
                   values);
}

Floats Nearest(uint32_t to, uint32_t rounding, const Map& map, const Floats& values) {
  const TensorDesc input = Packed(DataType::kFloat32, {static_cast<uint32_t>(values.size())});
  return Resampled(Resample3(input, Packed(DataType::kFloat32, {to}), kNearest, rounding, map, false),
                   values);
}

Floats Upsampled(const Sizes& from, const Sizes& to, Size2D scale, uint32_t mode, const Floats& values) {
  return Resampled(MakeDesc("UPSAMPLE_2D", {{"InputTensor", Packed(DataType::kFloat32, from)},
                                            {"OutputTensor", Packed(DataType::kFloat32, to)},
                                            {"ScaleSize", scale},
                                            {"InterpolationMode", mode}}),
                   values);
}

Floats Gradient(const char* name, uint32_t mode, uint32_t rounding, const Map& map, uint32_t from,
                const Floats& values) {
  const TensorDesc input = Packed(DataType::kFloat32, {static_cast<uint32_t>(values.size())});
  OperatorDesc desc = MakeDesc(name, {{"InputGradientTensor", input},
                                      {"OutputGradientTensor", Packed(DataType::kFloat32, {from})},
                                      {"InterpolationMode", mode},
                                      {"DimensionCount", 1u},
                                      {"Scales", map.scales},
                                      {"InputPixelOffsets", map.input_offsets},
                                      {"OutputPixelOffsets", map.output_offsets}});
  const int field = FindField(*desc.schema, "RoundingDirection");
  if (field >= 0) desc.fields[static_cast<size_t>(field)] = rounding;
  return Resampled(desc, values);
}

TEST(Upsample2d, WidthComesFirst) {
  EXPECT_EQ(Upsampled({1, 1, 2, 2}, {1, 1, 4, 6}, {3, 2}, kNearest, {1, 2, 3, 4}),
            (Floats{1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4}));
}

// Sixteen neighbouring channels, which are moved together.
TEST(Upsample2d, ChannelsThatAreNeighbours) {
  const TensorDesc input = Strided(DataType::kFloat32, {1, 16, 2, 3}, {96, 1, 48, 16});
  const TensorDesc output = Strided(DataType::kFloat32, {1, 16, 4, 6}, {384, 1, 96, 16});
  Floats numbers(96);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const OperatorDesc desc = MakeDesc("UPSAMPLE_2D", {{"InputTensor", input},
                                                     {"OutputTensor", output},
                                                     {"ScaleSize", Size2D{2, 2}},
                                                     {"InterpolationMode", kNearest}});
  const RunResult result = ExpectAllAgree(desc, {Scattered(input, numbers)});
  const Floats got = Gathered<float>(output, result.outputs[0]);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], static_cast<float>(i / 24 * 6 + i % 24 / 12 * 3 + i % 6 / 2)) << i;
  }
}

TEST(Upsample2d, LinearTakesMiddlesOfPixels) {
  const Floats doubled = {1,    1.25f, 1.75f, 2,    1.5f, 1.75f, 2.25f, 2.5f,
                          2.5f, 2.75f, 3.25f, 3.5f, 3,    3.25f, 3.75f, 4};
  EXPECT_EQ(Upsampled({1, 1, 2, 2}, {1, 1, 4, 4}, {2, 2}, kLinear, {1, 2, 3, 4}), doubled);
  EXPECT_EQ(Upsampled({1, 1, 1, 2, 2}, {1, 1, 1, 4, 4}, {2, 2}, kLinear, {1, 2, 3, 4}), doubled);
  EXPECT_EQ(Linear({1, 1, 2, 2}, {1, 1, 4, 4}, {{1, 1, 2, 2}}, {1, 2, 3, 4}), doubled);
}

// Rows of whole units, for every type.
TEST(Upsample2d, Doubles) {
  std::mt19937_64 random(TestSeed());
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    for (const uint32_t mode : {kNearest, kLinear}) {
      const TensorDesc input = Packed(type, {2, 3, 11, 24});
      Floats numbers(2 * 3 * 11 * 24);
      for (float& x : numbers) x = static_cast<float>(random() % 20001) / 64 - 100;
      numbers[5] = kInfinity;
      std::vector<Half> halves(numbers.size());
      std::transform(numbers.begin(), numbers.end(), halves.begin(), [](float x) { return ToHalf(x); });
      ExpectAllAgree(MakeDesc("UPSAMPLE_2D", {{"InputTensor", input},
                                              {"OutputTensor", Packed(type, {2, 3, 22, 48})},
                                              {"ScaleSize", Size2D{2, 2}},
                                              {"InterpolationMode", mode}}),
                     {type == DataType::kFloat16 ? Scattered(input, halves) : Scattered(input, numbers)});
    }
  }
}

TEST(Resample, OldNearestIsHalfUp) {
  // Positions -1/6, 1/2, 7/6.
  EXPECT_EQ(NearestHalfUp(3, 1.5f, {1, 2}), (Floats{1, 2, 2}));
  // Positions 0.5, 2.5.
  EXPECT_EQ(NearestHalfUp(2, 0.5f, {1, 2, 3, 4}), (Floats{2, 4}));
  EXPECT_EQ(NearestHalfUp(4, FLT_MAX, {1, 2, 3, 4}), (Floats{1, 1, 1, 1}));
}

TEST(Resample, NewNearestAddsNoHalf) {
  EXPECT_EQ(Nearest(3, kDecreasing, {{1.5f}}, {1, 2}), (Floats{1, 1, 2}));
  EXPECT_EQ(Nearest(3, kIncreasing, {{1.5f}}, {1, 2}), (Floats{1, 2, 2}));
  // How the newer operators express what the older ones compute.
  EXPECT_EQ(Nearest(3, kDecreasing, {{1.5f}, {0}, {-0.5f}}, {1, 2}), (Floats{1, 2, 2}));
  EXPECT_EQ(Nearest(2, kDecreasing, {{0.5f}, {0}, {-0.5f}}, {1, 2, 3, 4}), (Floats{2, 4}));
}

TEST(Resample, SizesNeedNotFitTheScale) {
  EXPECT_EQ(Nearest(5, kDecreasing, {{1}, {0}, {0}}, {1, 2, 3}), (Floats{1, 2, 3, 3, 3}));
  EXPECT_EQ(Linear({3}, {5}, {{1}, {-0.5f}, {0}}, {1, 2, 3}), (Floats{1.5f, 2.5f, 3, 3, 3}));
  EXPECT_EQ(Linear({3}, {2}, {{1}}, {1, 2, 3}), (Floats{1, 2}));
}

TEST(Resample, LinearAlignedCorners) {
  EXPECT_EQ(Linear({2, 3}, {3, 5}, {{2, 2}, {0}, {0}}, {0, 2, 4, 8, 10, 12}),
            (Floats{0, 1, 2, 3, 4, 4, 5, 6, 7, 8, 8, 9, 10, 11, 12}));
}

TEST(Resample, AntialiasedOnlyBeyondAHalf) {
  const Floats ramp = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(Linear({6}, {3}, {{0.5f}}, ramp, true), (Floats{1.5f, 3.5f, 5.5f}));
  // Positions 1 and 4, reach 3: weights 2/3, 1, 2/3, 1/3, divided by their sum 8/3.
  const Floats smooth = Linear({6}, {2}, {{1.0f / 3}}, ramp, true);
  EXPECT_NEAR(smooth[0], 2.25f, 1e-6);
  EXPECT_NEAR(smooth[1], 4.75f, 1e-6);
  EXPECT_EQ(Linear({6}, {2}, {{1.0f / 3}}, ramp, false), (Floats{2, 5}));
  // Positions far outside have no sample in reach.
  EXPECT_EQ(Linear({6}, {1}, {{0.25f}, {0}, {-100}}, ramp, true), (Floats{6}));
}

TEST(Resample, IntegersRoundHalvesToEven) {
  const auto between = [](const auto& values, DataType type) {
    const auto count = static_cast<uint32_t>(values.size());
    return Resampled(Resample3(Packed(type, {count}), Packed(type, {2 * count}), kLinear, kDecreasing,
                               {{2}, {0}, {0}}, false),
                     values);
  };
  EXPECT_EQ(between(std::vector<uint8_t>{1, 2, 3, 254, 255}, DataType::kUInt8),
            (std::vector<uint8_t>{1, 2, 2, 2, 3, 128, 254, 254, 255, 255}));
  EXPECT_EQ(between(std::vector<int8_t>{-1, -2, -3, -128}, DataType::kInt8),
            (std::vector<int8_t>{-1, -2, -2, -2, -3, -66, -128, -128}));
}

TEST(Resample, WhatIsNotFiniteStaysWhereItIs) {
  const Floats values = Linear({3}, {6}, {{2}, {0}, {0}}, {1, kInfinity, -0.0f});
  EXPECT_EQ(values, (Floats{1, kInfinity, kInfinity, kInfinity, 0, 0}));
  EXPECT_TRUE(std::signbit(values[4]));
  EXPECT_TRUE(std::isnan(Linear({2}, {4}, {{2}}, {NAN, 1})[1]));
}

TEST(Resample, LinearAgainstAPlane) {
  // A linear function of four coordinates is reproduced exactly where nothing is clamped.
  const Sizes from = {3, 2, 4, 5}, to = {5, 3, 7, 9};
  Floats plane, want;
  for (uint32_t i = 0; i < 3 * 2 * 4 * 5; ++i) {
    plane.push_back(static_cast<float>(i / 40 * 64 + i / 20 % 2 * 32 + i / 5 % 4 * 4 + i % 5));
  }
  for (uint32_t i = 0; i < 5 * 3 * 7 * 9; ++i) {
    want.push_back(static_cast<float>(i / 189 * 64 + i / 63 % 3 * 32 + i / 9 % 7 * 4 + i % 9) / 2);
  }
  EXPECT_EQ(Linear(from, to, {{2}, {0}, {0}}, plane), want);
}

TEST(ResampleGrad, SumsWhatEveryElementHasGiven) {
  const Map map = {{1.5f}};
  EXPECT_EQ(Gradient("RESAMPLE_GRAD", kNearest, 0, map, 2, {1, 2, 4}), (Floats{1, 6}));
  EXPECT_EQ(Gradient("RESAMPLE_GRAD1", kNearest, kDecreasing, map, 2, {1, 2, 4}), (Floats{3, 4}));
  EXPECT_EQ(Gradient("RESAMPLE_GRAD1", kNearest, kIncreasing, map, 2, {1, 2, 4}), (Floats{1, 6}));
  // Forward: x0, 3/4 x0 + 1/4 x1, 1/4 x0 + 3/4 x1, x1.
  EXPECT_EQ(Gradient("RESAMPLE_GRAD", kLinear, 0, {{2}}, 2, {1, 4, 8, 16}), (Floats{6, 23}));
}

// The pages' example; the examples of the operators that round ties up contradict them.
TEST(ResampleGrad, PagesExample) {
  const Floats scales = {1, 1, 0.5f, 1.5f}, half(4, 0.5f), minus_half(4, -0.5f);
  const OperatorDesc desc =
      MakeDesc("RESAMPLE_GRAD1", {{"InputGradientTensor", Packed(DataType::kFloat32, {1, 1, 1, 3})},
                                  {"OutputGradientTensor", Packed(DataType::kFloat32, {1, 1, 2, 2})},
                                  {"InterpolationMode", kNearest},
                                  {"RoundingDirection", kDecreasing},
                                  {"DimensionCount", 4u},
                                  {"Scales", scales},
                                  {"InputPixelOffsets", half},
                                  {"OutputPixelOffsets", minus_half}});
  EXPECT_EQ(Resampled(desc, Floats{4, 5, 6}), (Floats{9, 6, 0, 0}));
}

TEST(ResampleGrad, WhatNobodyTakesIsZero) {
  EXPECT_EQ(Gradient("RESAMPLE_GRAD1", kNearest, kDecreasing, {{0.5f}, {0}, {0}}, 4, {1, 2}),
            (Floats{1, 0, 2, 0}));
  EXPECT_EQ(Gradient("RESAMPLE_GRAD1", kLinear, kDecreasing, {{0.5f}, {0}, {0}}, 4, {1, 2}),
            (Floats{1, 0, 2, 0}));
}

TEST(Resample, LongDimensionsNeedNoTables) {
  for (const uint32_t mode : {kNearest, kLinear}) {
    const OperatorDesc desc =
        Resample3(Packed(DataType::kUInt8, {1u << 31}), Packed(DataType::kUInt8, {4000000000u}), mode,
                  kDecreasing, {{2}}, false);
    LoweredOperator lowered;
    EXPECT_TRUE(LowerOperator(ImplementationOf(desc), desc, {}, &lowered).ok());
  }
  Floats ramp(70000);
  for (size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<float>(i);
  const Floats halves = Linear({70000}, {35000}, {{0.5f}}, ramp);
  EXPECT_EQ(halves[0], 0.5f);
  EXPECT_EQ(halves[34999], 69998.5f);
}

// Devices search for what CPU kernels read from tables.
TEST(ResampleTaps, TakersAreThoseThatTake) {
  constexpr ResampleRule kRules[] = {ResampleRule::kSame, ResampleRule::kHalfUp, ResampleRule::kFloor,
                                     ResampleRule::kCeil, ResampleRule::kLinear};
  constexpr float kScales[] = {2, 1, 0.5f, 3, 1.7f, 0.3f, FLT_MAX, 1e-30f};
  std::mt19937_64 random(TestSeed());
  for (int i = 0; i < TestIterations(400); ++i) {
    ResampleAxis axis;
    axis.rule = kRules[random() % 5];
    axis.scale = kScales[random() % 8];
    axis.from = Uniform(random, 1, 20);
    axis.to = Uniform(random, 1, 40);
    axis.input_offset = static_cast<float>(random() % 5) / 4;
    axis.output_offset = static_cast<float>(random() % 5) / 4 - 1;
    const AxisTable table(axis, true);
    for (uint32_t index = 0; index < axis.from; ++index) {
      const TakerRange takers = TakersOf(axis, index);
      std::vector<std::pair<uint32_t, float>> found, want;
      for (uint32_t k = 0; k < takers.count; ++k) {
        const float weight = WeightBetween(axis, takers.first + k, index);
        if (weight != 0) found.emplace_back(takers.first + k, weight);
      }
      for (const WeightedTap& tap : table[index]) want.emplace_back(tap.index, tap.weight);
      EXPECT_EQ(found, want) << index << " of " << axis.from << " to " << axis.to << " by " << axis.scale;
    }
  }
}

std::string Message(const OperatorDesc& desc) {
  return ImplementationOf(desc).check(desc, kLatestFeatureLevel).message();
}

TEST(ResampleCheck, Refusals) {
  const TensorDesc input = Packed(DataType::kFloat32, {2, 3}), output = Packed(DataType::kFloat32, {4, 6});
  const auto message = [&](const Map& map) {
    return Message(Resample3(input, output, kLinear, kDecreasing, map, false));
  };
  EXPECT_EQ(message({{2}}), "");
  EXPECT_EQ(message({{2, 0}}), "RESAMPLE3: Scales[1] is 0 but must be a finite number above 0");
  EXPECT_EQ(message({{-1, 2}}), "RESAMPLE3: Scales[0] is -1 but must be a finite number above 0");
  EXPECT_EQ(message({{2}, {0, kInfinity}}),
            "RESAMPLE3: InputPixelOffsets[1] is inf but must be a finite number");
  EXPECT_EQ(message({{2}, {0}, {NAN, 0}}),
            "RESAMPLE3: OutputPixelOffsets[0] is nan but must be a finite number");
  EXPECT_EQ(
      message({{2, 2, 2}}),
      "RESAMPLE3: DimensionCount is 3 but must be 2, the DimensionCount of the tensors: every dimension has "
      "a scale");
  EXPECT_EQ(
      Message(MakeDesc("RESAMPLE", {{"InputTensor", input},
                                    {"OutputTensor", output},
                                    {"InterpolationMode", kLinear},
                                    {"ScaleCount", 1u},
                                    {"Scales", Floats{2}}})),
      "RESAMPLE: ScaleCount is 1 but must be 2, the DimensionCount of the tensors: every dimension has a "
      "scale");
}

TEST(ResampleCheck, UpsampleRefusals) {
  const auto message = [](const Sizes& to, Size2D scale) {
    return Message(MakeDesc("UPSAMPLE_2D", {{"InputTensor", Packed(DataType::kFloat32, {1, 1, 2, 3})},
                                            {"OutputTensor", Packed(DataType::kFloat32, to)},
                                            {"ScaleSize", scale},
                                            {"InterpolationMode", kLinear}}));
  };
  EXPECT_EQ(message({1, 1, 4, 9}, {3, 2}), "");
  EXPECT_EQ(message({1, 1, 6, 6}, {3, 2}),
            "UPSAMPLE_2D: OutputTensor.Sizes is {1,1,6,6} but must be {1,1,4,9}: its last dimensions are "
            "ScaleSize.Height and ScaleSize.Width times those of InputTensor");
  EXPECT_EQ(message({1, 1, 2, 3}, {0, 1}),
            "UPSAMPLE_2D: ScaleSize is {Width 0, Height 1} but must be at least 1 and give sizes below 2^32");
}

// The error of infer, or the sizes that it derives.
std::string Inferred(OperatorDesc desc, const char* output = "OutputTensor") {
  const Status status = ImplementationOf(desc).infer(&desc);
  return status.ok() ? SizesToString(*desc.tensor(output)) : status.message();
}

TEST(ResampleInfer, SizesThatDoNotFit) {
  const auto resample = [](float scale, const FieldValue& output) {
    return Inferred(MakeDesc("RESAMPLE", {{"InputTensor", Packed(DataType::kFloat32, {2})},
                                          {"OutputTensor", output},
                                          {"InterpolationMode", kLinear},
                                          {"ScaleCount", 1u},
                                          {"Scales", Floats{scale}}}));
  };
  EXPECT_EQ(resample(1.5f, {}), "{3}");
  EXPECT_EQ(resample(0.125f, {}), "{1}");
  EXPECT_EQ(
      resample(0x1p31f, {}),
      "RESAMPLE: Scales[0] is 2.14748e+09 and InputTensor.Sizes[0] is 2, which gives a size of 4.29497e+09 "
      "for OutputTensor; it must be below 2^32");
  EXPECT_EQ(resample(0x1p31f, Packed(DataType::kFloat32, {5})), "{5}");  // the caller chose these sizes
  EXPECT_EQ(
      Inferred(MakeDesc("RESAMPLE_GRAD", {{"InputGradientTensor", Packed(DataType::kFloat32, {2})},
                                          {"InterpolationMode", kLinear},
                                          {"DimensionCount", 1u},
                                          {"Scales", Floats{0x1p-32f}},
                                          {"InputPixelOffsets", Floats{0.5f}},
                                          {"OutputPixelOffsets", Floats{-0.5f}}}),
               "OutputGradientTensor"),
      "RESAMPLE_GRAD: Scales[0] is 2.32831e-10 and InputGradientTensor.Sizes[0] is 2, which gives a size "
      "of 8.58993e+09 for OutputGradientTensor; it must be below 2^32");
}

TEST(ResampleInfer, UpsampleRefusals) {
  const auto upsample = [](Size2D scale) {
    return Inferred(MakeDesc("UPSAMPLE_2D", {{"InputTensor", Packed(DataType::kFloat32, {1, 1, 2, 3})},
                                             {"ScaleSize", scale},
                                             {"InterpolationMode", kLinear}}));
  };
  EXPECT_EQ(upsample({3, 2}), "{1,1,4,9}");
  EXPECT_EQ(upsample({0, 1}),
            "UPSAMPLE_2D: ScaleSize is {Width 0, Height 1} but must be at least 1 and give sizes below 2^32");
  EXPECT_EQ(
      upsample({1, 0x80000000u}),
      "UPSAMPLE_2D: ScaleSize is {Width 1, Height 2147483648} but must be at least 1 and give sizes below "
      "2^32");
}

}  // namespace
}  // namespace anydml::testing
