// Problems that are divided among threads, and that occupy many GPU blocks.
#include <gtest/gtest.h>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Numbers = std::vector<uint32_t>;

struct Shape {
  Numbers input, output, window, stride, padding;
};

OperatorDesc Describe(const char* name, DataType type, const Shape& s, bool channels_last) {
  const auto tensor = [&](const Numbers& sizes) {
    if (!channels_last) return Packed(type, sizes);
    const uint32_t c = sizes[1], w = sizes[3];
    return Strided(type, sizes, {sizes[2] * w * c, 1, w * c, c});
  };
  OperatorDesc desc = MakeDesc(name, {{"InputTensor", tensor(s.input)},
                                      {"OutputTensor", tensor(s.output)},
                                      {"DimensionCount", 2u},
                                      {"Strides", s.stride},
                                      {"WindowSize", s.window},
                                      {"StartPadding", s.padding},
                                      {"EndPadding", s.padding}});
  const int field = FindField(*desc.schema, "IncludePadding");
  if (field >= 0) desc.fields[static_cast<size_t>(field)] = 1u;
  return desc;
}

const Shape kShapes[] = {{{2, 48, 56, 64}, {2, 48, 28, 32}, {3, 3}, {2, 2}, {1, 1}},
                         {{2, 40, 50, 50}, {2, 40, 50, 50}, {3, 3}, {1, 1}, {1, 1}},
                         {{4, 1100, 7, 7}, {4, 1100, 1, 1}, {7, 7}, {1, 1}, {0, 0}},
                         {{2, 32, 60, 80}, {2, 32, 1, 1}, {60, 80}, {1, 1}, {0, 0}}};

TEST(LargePooling, MaximaAndAverages) {
  std::mt19937_64 random(TestSeed());
  Thinning thinning;
  for (const Shape& shape : kShapes) {
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      for (const bool channels_last : {false, true}) {
        for (const char* name : {"MAX_POOLING", "AVERAGE_POOLING"}) {
          if (!thinning.Runs()) continue;
          const OperatorDesc desc = Describe(name, type, shape, channels_last);
          ExpectAllAgree(desc, {RandomBytes(*desc.inputs()[0], random)});
        }
      }
    }
  }
}

TEST(LargePooling, Gradients) {
  std::mt19937_64 random(TestSeed());
  const TensorDesc input = Packed(DataType::kFloat32, {2, 40, 48, 48});
  const TensorDesc gradient = Packed(DataType::kFloat32, {2, 40, 24, 24});
  const Numbers threes = {3, 3}, twos = {2, 2}, ones = {1, 1};
  const OperatorDesc desc = MakeDesc("MAX_POOLING_GRAD", {{"InputTensor", input},
                                                          {"InputGradientTensor", gradient},
                                                          {"OutputGradientTensor", input},
                                                          {"DimensionCount", 2u},
                                                          {"Strides", twos},
                                                          {"WindowSize", threes},
                                                          {"StartPadding", ones},
                                                          {"EndPadding", ones},
                                                          {"Dilations", ones}});
  ExpectAllAgree(desc, {RandomBytes(input, random), RandomBytes(gradient, random)});
}

TEST(LargePooling, Folds) {
  std::mt19937_64 random(TestSeed());
  const TensorDesc image = Packed(DataType::kFloat32, {2, 10, 40, 40});
  const TensorDesc columns = Packed(DataType::kFloat32, {2, 90, 1600});
  const Numbers threes = {3, 3}, ones = {1, 1};
  for (const bool unfold : {false, true}) {
    const OperatorDesc desc =
        MakeDesc(unfold ? "UNFOLD" : "FOLD", {{"InputTensor", unfold ? image : columns},
                                              {"OutputTensor", unfold ? columns : image},
                                              {"DimensionCount", 2u},
                                              {"WindowSizes", threes},
                                              {"Strides", ones},
                                              {"Dilations", ones},
                                              {"StartPadding", ones},
                                              {"EndPadding", ones}});
    ExpectAllAgree(desc, {RandomBytes(*desc.inputs()[0], random)});
  }
}

}  // namespace
}  // namespace anydml::testing
