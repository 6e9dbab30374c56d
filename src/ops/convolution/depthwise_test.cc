// Filters of one channel: kernels that are chosen by the size of planes.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "base/half.h"
#include "ops/convolution/convolution_test_support.h"
#include "ops/gemm/gemm_cases.h"

namespace anydml::testing {
namespace {

// Numbers whose sums are rounded; among them infinities and NaNs.
Bytes Thirds(const TensorDesc& tensor, bool special, std::mt19937_64& random) {
  std::vector<float> numbers(ElementCount(tensor));
  for (float& number : numbers) {
    number = (static_cast<float>(Uniform(random, 0, 2000)) - 1000) / 3000;
    if (!special || Uniform(random, 0, 40) != 0) continue;
    number = Uniform(random, 0, 1) == 0 ? -std::numeric_limits<float>::infinity()
                                        : std::bit_cast<float>(0xFFC12345u);
  }
  if (tensor.type == DataType::kFloat32) return Scattered(tensor, numbers);
  std::vector<Half> halves(numbers.size());
  std::transform(numbers.begin(), numbers.end(), halves.begin(), ToHalf);
  return Scattered(tensor, halves);
}

bool CanRun(const OperatorDesc& desc, std::string_view implementation) {
  const auto names = RunnableImplementations(desc);
  return std::find(names.begin(), names.end(), implementation) != names.end();
}

// Planes of all widths near a vector's; several parts, the last of which ends at the end of the memory.
TEST(Depthwise, PlanesAddUpToTheBitsOfBands) {
  std::mt19937_64 random(TestSeed());
  const struct {
    uint32_t taps, stride, dilation, padding;
  } kWindows[] = {{3, 1, 1, 1}, {3, 2, 1, 1}, {3, 1, 2, 2}, {3, 1, 1, 0}, {3, 2, 1, 0},
                  {5, 1, 1, 2}, {5, 2, 1, 2}, {2, 1, 1, 1}, {2, 2, 3, 2}, {1, 1, 1, 3}};
  Thinning thinning;
  for (const auto& w : kWindows) {
    for (const auto& [height, width] : {std::pair{7u, 7u},
                                        {14u, 14u},
                                        {1u, 1u},
                                        {3u, 2u},
                                        {4u, 5u},
                                        {6u, 9u},
                                        {5u, 15u},
                                        {8u, 16u},
                                        {3u, 17u},
                                        {10u, 33u},
                                        {28u, 28u},
                                        {56u, 56u},
                                        {80u, 100u}}) {
      const uint32_t reach = (w.taps - 1) * w.dilation + 1;
      if (height + 2 * w.padding < reach || width + 2 * w.padding < reach) continue;
      const bool same = w.taps >= 3 && w.stride == 1 && w.dilation == 1 && w.padding == w.taps / 2;
      if (height * width > 56 * 56 && !same) continue;  // too large with padding
      const auto outputs = [&](uint32_t size) { return (size + 2 * w.padding - reach) / w.stride + 1; };
      const uint32_t channels = height == 7 ? 180 : 5;
      for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
        for (const char* activation : {"", "ACTIVATION_RELU", "ACTIVATION_SIGMOID"}) {
          if (!thinning.Runs()) continue;
          OperatorDesc desc = Convolution({2, channels, height, width}, {channels, 1, w.taps, w.taps},
                                          {2, channels, outputs(height), outputs(width)},
                                          {*activation == '\0' ? kCrossCorrelation : kMirrored, false,
                                           w.stride, w.dilation, w.padding, channels});
          SetTypes(&desc, type);
          std::vector<Bytes> inputs = {Thirds(*desc.tensor("InputTensor"), width == 9, random),
                                       Thirds(*desc.tensor("FilterTensor"), width == 15, random), Bytes()};
          if (*activation != '\0') {
            SetField(&desc, "BiasTensor", Packed(type, {1, channels, 1, 1}));
            SetField(&desc, "FusedActivation",
                     std::make_shared<const OperatorDesc>(MakeDesc(activation, {})));
            inputs[2] = Thirds(*desc.tensor("BiasTensor"), false, random);
          }
          if (!CanRun(desc, "cpu.depthwise_planes")) GTEST_SKIP() << "not of this backend";
          const RunResult bands = RunOperator(desc, inputs, {.implementation = "cpu.depthwise"});
          for (const uint32_t threads : {1u, 2u, 7u}) {
            const RunResult planes =
                RunOperator(desc, inputs, {.implementation = "cpu.depthwise_planes", .threads = threads});
            EXPECT_EQ(planes.implementation, "cpu.depthwise_planes") << planes.explanation;
            EXPECT_TRUE(planes.outputs == bands.outputs)
                << height << "x" << width << ", " << w.taps << " taps, stride " << w.stride << ", dilation "
                << w.dilation << ", padding " << w.padding << " " << activation << ", " << threads
                << " threads";
          }
        }
      }
    }
  }
}

TEST(Depthwise, KernelsAreChosenBySizeAndOrder) {
  const auto chosen = [](const Sizes& planes, uint32_t stride) {
    const Sizes output = {1, planes[1], (planes[2] - 1) / stride + 1, (planes[3] - 1) / stride + 1};
    OperatorDesc desc = Convolution(planes, {planes[1], 1, 3, 3}, output,
                                    {.stride = stride, .padding = 1, .groups = planes[1]});
    std::mt19937_64 random(TestSeed());
    return RunOperator(desc,
                       {Eighths(*desc.tensor("InputTensor"), random),
                        Eighths(*desc.tensor("FilterTensor"), random), Bytes()},
                       {})
        .implementation;
  };
  EXPECT_EQ(chosen({1, 32, 7, 7}, 1), "cpu.depthwise_planes");
  EXPECT_EQ(chosen({1, 4, 56, 56}, 2), "cpu.depthwise_planes");
  EXPECT_EQ(chosen({1, 4, 56, 56}, 3), "cpu.depthwise");
  EXPECT_EQ(chosen({1, 4, 112, 112}, 1), "cpu.depthwise");
}

}  // namespace
}  // namespace anydml::testing
