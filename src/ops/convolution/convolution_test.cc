// Convolutions against sums computed by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <set>

#include "base/half.h"
#include "ops/convolution/convolution_test_support.h"
#include "ops/gemm/gemm_cases.h"

namespace anydml::testing {
namespace {

std::vector<float> Sums(const OperatorDesc& desc, const std::vector<float>& input,
                        const std::vector<float>& filter, const std::vector<float>& bias = {}) {
  std::vector<Bytes> inputs = {
      Scattered(*desc.tensor("InputTensor"), input), Scattered(*desc.tensor("FilterTensor"), filter), {}};
  if (!bias.empty()) inputs[2] = Scattered(*desc.tensor("BiasTensor"), bias);
  const RunResult result = ExpectAllAgree(desc, inputs);
  return Gathered<float>(*desc.tensor("OutputTensor"), result.outputs[0]);
}

std::vector<float> CountedFromOne(size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  return numbers;
}

TEST(Convolution, BothModes) {
  const Sizes input = {1, 1, 3, 3}, small = {1, 1, 2, 2};
  EXPECT_EQ(Sums(Convolution(input, small, small, {}), CountedFromOne(9), {1, 2, 3, 4}),
            (std::vector<float>{37, 47, 67, 77}));
  EXPECT_EQ(Sums(Convolution(input, small, small, {.mode = kMirrored}), CountedFromOne(9), {1, 2, 3, 4}),
            (std::vector<float>{23, 33, 53, 63}));
}

TEST(Convolution, PaddingStrideAndBias) {
  OperatorDesc desc = Convolution({1, 1, 3, 3}, {1, 1, 3, 3}, {1, 1, 2, 2}, {.stride = 2, .padding = 1});
  desc.fields[static_cast<size_t>(FindField(*desc.schema, "BiasTensor"))] = F32({1, 1, 1, 1});
  EXPECT_EQ(Sums(desc, CountedFromOne(9), std::vector<float>(9, 1), {10}),
            (std::vector<float>{22, 26, 34, 38}));
}

TEST(Convolution, BackwardSpreadsInputs) {
  EXPECT_EQ(Sums(Convolution({1, 1, 2}, {1, 1, 3}, {1, 1, 5}, {.backward = true, .stride = 2}), {1, 2},
                 {1, 10, 100}),
            (std::vector<float>{1, 10, 102, 20, 200}));
}

// Phases of the same size, whose outputs interleave; with as many taps as steps, each input is read once.
TEST(Convolution, BackwardMakesImagesLarger) {
  for (const Sizes& image : {Sizes{37}, Sizes{5, 19}, Sizes{2, 3, 4}}) {
    for (const auto& [taps, stride] : {std::pair{2u, 2u}, {3u, 3u}, {4u, 2u}}) {
      for (const uint32_t mode : {kMirrored, kCrossCorrelation}) {
        for (const uint32_t groups : {1u, 2u}) {
          const uint32_t in = 6, out = 10;
          Sizes input = {2, in}, filter = {in, out / groups}, output = {2, out}, bias(image.size() + 2, 1);
          for (const uint32_t size : image) input.push_back(size), output.push_back(size * stride);
          filter.resize(input.size(), taps);
          bias[1] = out;
          OperatorDesc desc =
              Convolution(input, filter, output, {mode, true, stride, 1, (taps - stride) / 2, groups});
          desc.fields[static_cast<size_t>(FindField(*desc.schema, "BiasTensor"))] = F32(bias);
          const auto numbers = [&](const char* tensor, int period) {
            std::vector<float> result(ElementCount(*desc.tensor(tensor)));
            for (size_t i = 0; i < result.size(); ++i)
              result[i] = static_cast<float>(static_cast<int>(i) % period - 2);
            return result;
          };
          Sums(desc, numbers("InputTensor", 7), numbers("FilterTensor", 5), numbers("BiasTensor", 9));
        }
      }
    }
  }
}

TEST(Convolution, GroupsSeeTheirChannelsOnly) {
  EXPECT_EQ(Sums(Convolution({1, 2, 1, 2}, {4, 1, 1, 1}, {1, 4, 1, 2}, {.groups = 2}), {1, 2, 10, 20},
                 {3, 5, 7, 9}),
            (std::vector<float>{3, 6, 5, 10, 70, 140, 90, 180}));
}

// 3x3 filters of ones over an image of ones give the number of taps inside the image. Large enough for
// several bands.
TEST(Convolution, DepthwiseCountsTaps) {
  const uint32_t height = 200, channels = 3;
  for (const uint32_t width : {70u, 72u}) {  // the second: whole vectors
    for (const uint32_t stride : {1u, 2u, 3u}) {
      for (const uint32_t dilation : {1u, 2u}) {
        const auto windows = [&](uint32_t size) { return (size - 1) / stride + 1; };
        const uint32_t rows = windows(height), columns = windows(width);
        const OperatorDesc desc =
            Convolution({1, channels, height, width}, {channels, 1, 3, 3}, {1, channels, rows, columns},
                        {.stride = stride, .dilation = dilation, .padding = dilation, .groups = channels});
        std::vector<float> filter(size_t{channels} * 9), expected;
        for (size_t i = 0; i < filter.size(); ++i) filter[i] = static_cast<float>(i / 9 + 1);
        const auto inside = [&](uint32_t at, uint32_t size) {
          return 1 + (at * stride >= dilation ? 1 : 0) + (at * stride + dilation < size ? 1 : 0);
        };
        for (uint32_t c = 0; c < channels; ++c) {
          for (uint32_t y = 0; y < rows; ++y) {
            for (uint32_t x = 0; x < columns; ++x) {
              expected.push_back(static_cast<float>((c + 1) * inside(y, height) * inside(x, width)));
            }
          }
        }
        EXPECT_EQ(Sums(desc, std::vector<float>(size_t{channels} * height * width, 1), filter), expected)
            << "stride " << stride << ", dilation " << dilation << ", width " << width;
      }
    }
  }
}

// Only corners of the image are read: no kernel may store everything in between.
TEST(Convolution, HugeStridesAndDilations) {
  const uint32_t far = 3'000'000'000;
  EXPECT_EQ(Sums(Convolution({1, 1, 2, 2}, {1, 1, 1, 1}, {1, 1, 1, 1}, {.stride = far}), {5, 6, 7, 8}, {3}),
            (std::vector<float>{15}));
  EXPECT_EQ(Sums(Convolution({1, 1, 1}, {1, 1, 3}, {1, 1, 1}, {.dilation = far / 2, .padding = far / 2}), {5},
                 {2, 3, 4}),
            (std::vector<float>{15}));
}

// The different bit patterns that CPU kernels write for a convolution of one tap.
std::set<uint32_t> BitsOf(uint32_t channels, const OperatorDesc& activation, const std::vector<float>& input,
                          float filter) {
  const uint32_t width = static_cast<uint32_t>(input.size()) / channels;
  OperatorDesc desc = Convolution({1, channels, width}, {1, channels, 1}, {1, 1, width}, {});
  desc.fields[static_cast<size_t>(FindField(*desc.schema, "FusedActivation"))] =
      std::make_shared<const OperatorDesc>(activation);
  std::set<uint32_t> bits;
  for (const char* name : RunnableImplementations(desc)) {
    if (!std::string_view(name).starts_with("cpu.")) continue;
    const RunResult result =
        RunOperator(desc,
                    {Scattered(*desc.tensor("InputTensor"), input),
                     Scattered(*desc.tensor("FilterTensor"), std::vector<float>(channels, filter)),
                     {}},
                    {.implementation = name});
    if (result.implementation.empty()) continue;  // the implementation does not take the problem
    for (const float number : Gathered<float>(*desc.tensor("OutputTensor"), result.outputs[0])) {
      bits.insert(std::bit_cast<uint32_t>(number));
    }
  }
  return bits;
}

// +0 is larger than -0, and NaNs are canonical, wherever a row ends.
TEST(Convolution, ActivationsOfZerosAndNaNs) {
  const char* const backend = std::getenv("ANYDML_TEST_BACKEND");
  if (backend != nullptr && std::string_view(backend) != "cpu")
    GTEST_SKIP() << "it is about the CPU's kernels";
  using Bits = std::set<uint32_t>;
  const OperatorDesc clip = MakeDesc("ELEMENT_WISE_CLIP", {{"Min", -0.0f}, {"Max", 6.0f}});
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const uint32_t width : {1u, 21u}) {
    EXPECT_EQ(BitsOf(1, clip, std::vector<float>(width, 0.0f), 1), Bits{0});
    std::vector<float> opposite(size_t{2} * width, kInfinity);
    std::fill(opposite.begin() + width, opposite.end(), -kInfinity);
    EXPECT_EQ(BitsOf(2, MakeDesc("ACTIVATION_RELU", {}), opposite, 1), Bits{0x7FC00000});
  }
}

TEST(Convolution, AnOwnedFilterIsPacked) {
  OperatorDesc desc = Convolution({1, 2, 3, 3}, {5, 2, 2, 2}, {1, 5, 2, 2}, {});
  std::get<TensorDesc>(desc.fields[static_cast<size_t>(FindField(*desc.schema, "FilterTensor"))])
      .owned_by_dml = true;
  LoweredOperator lowered;
  ASSERT_TRUE(LowerOperator(ImplementationOf(desc), desc, {}, &lowered).ok());
  EXPECT_TRUE(lowered.kernel->packs_input(1));
  EXPECT_FALSE(lowered.kernel->packs_input(0));
  EXPECT_GE(lowered.kernel->persistent_bytes(), 5 * 2 * 4 * sizeof(float));
  // The sum of the 2x2 windows of both channels, times the filter's number.
  std::vector<float> filter(40), expected;
  for (size_t i = 0; i < filter.size(); ++i) filter[i] = static_cast<float>(i / 8 + 1);
  for (float number : {1.0f, 2.0f, 3.0f, 4.0f, 5.0f}) {
    for (float sum : {60.0f, 68.0f, 84.0f, 92.0f}) expected.push_back(number * sum);
  }
  EXPECT_EQ(Sums(desc, CountedFromOne(18), filter), expected);
}

// The phases of a stride have taps 0 and 2, tap 1, and, beyond the last tap, none.
TEST(Convolution, PhasesPackTheirPartsOfAnOwnedFilter) {
  const auto owned = [](OperatorDesc desc) {
    std::get<TensorDesc>(desc.fields[static_cast<size_t>(FindField(*desc.schema, "FilterTensor"))])
        .owned_by_dml = true;
    return desc;
  };
  const OperatorDesc overlaps =
      owned(Convolution({1, 1, 2}, {1, 2, 3}, {1, 2, 6}, {.backward = true, .stride = 2}));
  EXPECT_EQ(Sums(overlaps, {1, 2}, {1, 10, 100, 3, 30, 300}),
            (std::vector<float>{1, 10, 102, 20, 200, 0, 3, 30, 306, 60, 600, 0}));
  const OperatorDesc apart = Convolution({1, 1, 2}, {1, 1, 1}, {1, 1, 6}, {.backward = true, .stride = 4});
  for (const OperatorDesc& desc : {apart, owned(apart)}) {
    EXPECT_EQ(Sums(desc, {1, 2}, {5}), (std::vector<float>{5, 0, 0, 0, 10, 0}));
  }
  const OperatorDesc channels =
      owned(Convolution({1, 2, 2}, {2, 1, 1}, {1, 1, 6}, {.backward = true, .stride = 4}));
  EXPECT_EQ(Sums(channels, {1, 2, 10, 20}, {5, 7}), (std::vector<float>{75, 0, 0, 0, 150, 0}));
}

// Adjacent patches of an image, with and without a remainder.
TEST(Convolution, WindowsSideBySide) {
  std::mt19937_64 random(TestSeed());
  const struct {
    Sizes input, filter, output;
  } kCases[] = {{{2, 3, 32, 48}, {40, 3, 16, 16}, {2, 40, 2, 3}},
                {{2, 5, 9, 15}, {7, 5, 4, 4}, {2, 7, 2, 3}},
                {{1, 40, 6, 10}, {33, 40, 2, 2}, {1, 33, 3, 5}},
                {{3, 4, 50}, {6, 4, 7}, {3, 6, 7}},
                {{1, 2, 4, 6, 8}, {3, 2, 2, 2, 2}, {1, 3, 2, 3, 4}}};
  for (const auto& c : kCases) {
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      OperatorDesc desc = Convolution(c.input, c.filter, c.output, {.stride = c.filter.back()});
      SetTypes(&desc, type);
      ExpectAllAgree(desc, {Eighths(*desc.tensor("InputTensor"), random),
                            Eighths(*desc.tensor("FilterTensor"), random), Bytes()});
      const auto names = RunnableImplementations(desc);
      const char* const apart = "cuda.apart";
      if (std::find(names.begin(), names.end(), std::string(apart)) == names.end()) continue;
      ExactnessOf(desc, apart);  // the image is a multiple of the patch
    }
  }
}

// An infinity affects only the windows that see it, and RELU keeps NaNs.
TEST(Convolution, InfinitiesAndNaNsStayInTheirWindows) {
  const Sizes input = {1, 16, 12, 12}, filter = {8, 16, 3, 3}, output = {1, 8, 12, 12};
  const Sizes backward_filter = {16, 8, 3, 3}, backward_output = {1, 8, 24, 24};
  std::vector<float> numbers(size_t{16} * 144);
  numbers[13] = std::numeric_limits<float>::infinity();
  numbers[144 * 3 + 6 * 12 + 6] = -std::numeric_limits<float>::infinity();
  numbers[144 * 5 + 10 * 12 + 9] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> ones(size_t{8} * 16 * 9, 1);
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    for (const auto& [activation, backward] :
         {std::pair("", false), {"ACTIVATION_RELU", false}, {"", true}, {"ACTIVATION_RELU", true}}) {
      OperatorDesc desc = backward ? Convolution(input, backward_filter, backward_output,
                                                 {.backward = true, .stride = 2, .padding = 1})
                                   : Convolution(input, filter, output, {.padding = 1});
      if (*activation != '\0') {
        desc.fields[static_cast<size_t>(FindField(*desc.schema, "FusedActivation"))] =
            std::make_shared<const OperatorDesc>(MakeDesc(activation, {}));
      }
      SetTypes(&desc, type);
      const auto bytes = [&](const char* field, const std::vector<float>& values) {
        const TensorDesc& tensor = *desc.tensor(field);
        if (type == DataType::kFloat32) return Scattered(tensor, values);
        std::vector<Half> halves(values.size());
        std::transform(values.begin(), values.end(), halves.begin(), ToHalf);
        return Scattered(tensor, halves);
      };
      ExpectAllAgree(desc, {bytes("InputTensor", numbers), bytes("FilterTensor", ones), Bytes()});
    }
  }
}

// Taps outside the input add nothing, whatever their weights.
TEST(Convolution, PaddingIsNotMultipliedByInfinitiesAndNaNs) {
  const char* const backend = std::getenv("ANYDML_TEST_BACKEND");
  if (backend != nullptr && std::string_view(backend) != "cpu")
    GTEST_SKIP() << "it is about the CPU's kernels";
  const struct {
    Sizes input, filter, output;
    Attributes attributes;
  } kCases[] = {
      {{2, 5, 9, 11}, {5, 1, 3, 3}, {2, 5, 9, 11}, {.padding = 1, .groups = 5}},
      {{1, 12, 9, 10}, {12, 1, 3, 3}, {1, 12, 5, 5}, {.stride = 2, .padding = 1, .groups = 12}},
      {{1, 3, 40, 100}, {6, 1, 5, 3}, {1, 6, 40, 100}, {.mode = kMirrored, .padding = 2, .groups = 3}},
      {{2, 7, 9, 11}, {9, 7, 3, 3}, {2, 9, 9, 11}, {.padding = 1}},
      {{1, 3, 15, 17}, {20, 3, 7, 7}, {1, 20, 8, 9}, {.mode = kMirrored, .stride = 2, .padding = 3}},
      {{1, 4, 30}, {6, 2, 4}, {1, 6, 29}, {.padding = 1, .groups = 2}},
      {{1, 3, 4, 5, 6}, {5, 3, 2, 3, 2}, {1, 5, 5, 4, 7}, {.padding = 1}},
      {{1, 6, 5, 7}, {6, 8, 3, 3}, {1, 8, 10, 14}, {.backward = true, .stride = 2, .padding = 1}},
      {{1, 2, 3, 3}, {2, 4, 1, 1}, {1, 4, 9, 9}, {.backward = true, .stride = 4}},
      {{1, 6, 5, 7}, {6, 8, 3, 3}, {1, 8, 5, 7}, {.backward = true, .padding = 1}},
  };
  const OperatorDesc relu = MakeDesc("ACTIVATION_RELU", {});
  const OperatorDesc hides_nans = MakeDesc("ACTIVATION_THRESHOLDED_RELU", {{"Alpha", 1.0f}});
  const OperatorDesc* const kActivations[] = {nullptr, &relu, &hides_nans};
  std::mt19937_64 random(TestSeed());
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const auto& c : kCases) {
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      for (const OperatorDesc* activation : kActivations) {
        OperatorDesc desc = Convolution(c.input, c.filter, c.output, c.attributes);
        if (c.attributes.mode == kMirrored) SetField(&desc, "EndPadding", Sizes(c.input.size() - 2, 4));
        SetTypes(&desc, type);
        if (activation != nullptr) {
          SetField(&desc, "FusedActivation", std::make_shared<const OperatorDesc>(*activation));
        }
        const TensorDesc& filter = *desc.tensor("FilterTensor");
        // NaN bits are defined only after an activation; sums of positive infinities and ones give no NaN.
        const bool has_nans = activation != nullptr;
        std::vector<float> weights(ElementCount(filter));
        for (float& weight : weights) {
          const uint64_t kind = Uniform(random, 0, 60);
          weight = kind == 0               ? kInfinity
                   : kind > 2 || !has_nans ? static_cast<float>(kind) / 32 - 1
                   : kind == 1             ? -kInfinity
                                           : kNaN;
        }
        weights[0] = kInfinity;
        weights.back() = has_nans ? kNaN : kInfinity;
        const auto bytes_of = [&](const TensorDesc& tensor, const std::vector<float>& numbers) {
          if (type == DataType::kFloat32) return Scattered(tensor, numbers);
          std::vector<Half> halves(numbers.size());
          std::transform(numbers.begin(), numbers.end(), halves.begin(), ToHalf);
          return Scattered(tensor, halves);
        };
        const TensorDesc& input = *desc.tensor("InputTensor");
        SCOPED_TRACE(StrCat(c.filter[0], " filters ", activation != nullptr ? activation->schema->name : ""));
        ExpectAllAgree(desc, {has_nans ? Eighths(input, random)
                                       : bytes_of(input, std::vector<float>(ElementCount(input), 1)),
                              bytes_of(filter, weights), Bytes()});
      }
    }
  }
}

}  // namespace
}  // namespace anydml::testing
