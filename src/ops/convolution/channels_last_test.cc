// The channels-last convolution kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <limits>

#include "base/half.h"
#include "ops/convolution/convolution_test_support.h"
#include "ops/convolution/tail.h"
#include "ops/gemm/gemm_cases.h"

namespace anydml::testing {
namespace {

struct LastLayer {
  Sizes input, filter, output;  // batch, channels, spatial dimensions
  uint32_t stride = 1, padding = 0, groups = 1;
};

OperatorDesc LastConvolution(DataType type, const LastLayer& layer, bool planes_come_in = false) {
  const auto spatial = static_cast<uint32_t>(layer.input.size()) - 2;
  const auto all = [&](uint32_t value) { return Sizes(spatial, value); };
  Sizes bias(layer.input.size(), 1);
  bias[1] = layer.output[1];
  return MakeDesc("CONVOLUTION", {{"InputTensor", planes_come_in ? Packed(type, layer.input)
                                                                 : ChannelsLast(type, layer.input)},
                                  {"FilterTensor", Packed(type, layer.filter)},
                                  {"BiasTensor", Packed(type, bias)},
                                  {"OutputTensor", ChannelsLast(type, layer.output)},
                                  {"Mode", kCrossCorrelation},
                                  {"Direction", uint32_t{0}},
                                  {"DimensionCount", spatial},
                                  {"Strides", all(layer.stride)},
                                  {"Dilations", all(1)},
                                  {"StartPadding", all(layer.padding)},
                                  {"EndPadding", all(layer.padding)},
                                  {"OutputPadding", all(0)},
                                  {"GroupCount", layer.groups}});
}

std::vector<Bytes> InputsOf(const OperatorDesc& desc) {
  std::mt19937_64 random(TestSeed());
  std::vector<Bytes> inputs;
  for (const char* field : {"InputTensor", "FilterTensor", "BiasTensor"}) {
    inputs.push_back(Eighths(*desc.tensor(field), random));
  }
  return inputs;
}

// More steps than a block of steps has, more pixels than a block has, partial vectors, several images.
TEST(ConvolutionChannelsLast, PiecesAndBlocks) {
  const LastLayer kLayers[] = {
      {{1, 800, 3, 3}, {10, 800, 3, 3}, {1, 10, 3, 3}, 1, 1},
      {{2, 770, 5, 4}, {33, 770, 1, 1}, {2, 33, 5, 4}},
      {{2, 70, 17, 19}, {45, 70, 1, 1}, {2, 45, 17, 19}},
      {{3, 40, 13, 11}, {50, 40, 3, 3}, {3, 50, 13, 11}, 1, 1},
      {{1, 3, 33, 35}, {24, 3, 7, 7}, {1, 24, 17, 18}, 2, 3},
      {{3, 20, 19, 7}, {18, 20, 1, 1}, {3, 18, 7, 3}, 3, 1},
      {{40, 17, 9, 40}, {20, 17, 2, 2}, {40, 20, 2, 10}, 4},
      {{1, 600, 4, 300}, {4, 600, 3, 3}, {1, 4, 4, 300}, 1, 1},
      {{2, 34, 9, 9}, {66, 17, 3, 3}, {2, 66, 5, 5}, 2, 1, 2},
      // Few pixels of many images; filters of several blocks and pieces, in groups, and of many taps.
      {{8, 80, 7, 7}, {70, 80, 3, 3}, {8, 70, 7, 7}, 1, 1},
      {{3, 300, 6, 5}, {140, 150, 3, 2}, {3, 140, 4, 4}, 1, 0, 2},
      {{1, 20, 9, 17}, {70, 20, 8, 16}, {1, 70, 4, 4}, 1, 1},
      {{2, 9, 40, 23}, {35, 9, 5, 5}, {2, 35, 20, 12}, 2, 2},
      {{1, 100, 9, 9}, {100, 1, 3, 3}, {1, 100, 9, 9}, 1, 1, 100},
      {{2, 700, 7, 8}, {700, 1, 5, 5}, {2, 700, 4, 4}, 2, 2, 700},
      // No pixel has all taps of a row, and each pixel has other taps than all pixels before it.
      {{4, 8, 8, 8}, {16, 8, 9, 9}, {4, 16, 16, 16}, 1, 8},
      {{1, 8, 4, 4, 4}, {16, 8, 5, 5, 5}, {1, 16, 8, 8, 8}, 1, 4},
  };
  const char* const kActivations[] = {"", "ACTIVATION_RELU", "ACTIVATION_TANH"};
  uint32_t number = 0;
  Thinning thinning;  // of layouts
  for (const LastLayer& layer : kLayers) {
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      OperatorDesc desc = LastConvolution(type, layer);
      const char* const activation = kActivations[number++ % std::size(kActivations)];
      if (*activation != '\0') {
        SetField(&desc, "FusedActivation", std::make_shared<const OperatorDesc>(MakeDesc(activation, {})));
      }
      ExpectAllAgree(desc, InputsOf(desc));
      SetField(&desc, "OutputTensor", Packed(type, layer.output));
      if (thinning.Runs()) ExpectAllAgree(desc, InputsOf(desc));
      SetField(&desc, "InputTensor", Packed(type, layer.input));
      if (thinning.Runs()) ExpectAllAgree(desc, InputsOf(desc));
    }
  }
}

// Phases of backward convolutions begin inside their input.
TEST(ConvolutionChannelsLast, Phases) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    OperatorDesc desc = LastConvolution(type, {{1, 8, 16, 16}, {8, 16, 1, 1}, {1, 16, 15, 16}});
    SetField(&desc, "Direction", uint32_t{1});
    SetField(&desc, "StartPadding", Sizes{1, 0});
    ExpectAllAgree(desc, InputsOf(desc));
    desc = LastConvolution(type, {{1, 8, 16, 18}, {8, 16, 2, 2}, {1, 16, 30, 34}, 2, 1});
    SetField(&desc, "Direction", uint32_t{1});
    ExpectAllAgree(desc, InputsOf(desc));
  }
}

TEST(ConvolutionChannelsLast, IsChosen) {
  const char* const backend = std::getenv("ANYDML_TEST_BACKEND");
  if (backend != nullptr && std::string_view(backend) != "cpu")
    GTEST_SKIP() << "it is about the CPU's kernels";
  const auto chosen = [](const OperatorDesc& desc) {
    LoweredOperator lowered;
    EXPECT_TRUE(LowerOperator(ImplementationOf(desc), desc, {}, &lowered).ok());
    return lowered.implementation;
  };
  const LastLayer whole = {{1, 32, 8, 8}, {48, 32, 3, 3}, {1, 48, 8, 8}, 1, 1};
  EXPECT_EQ(chosen(LastConvolution(DataType::kFloat32, whole)), "cpu.channels_last");
  const LastLayer narrow = {{1, 32, 8, 8}, {3, 32, 3, 3}, {1, 3, 8, 8}, 1, 1};
  EXPECT_EQ(chosen(LastConvolution(DataType::kFloat32, narrow, true)), "cpu.product");
  const LastLayer first = {{1, 3, 8, 8}, {48, 3, 3, 3}, {1, 48, 8, 8}, 1, 1};
  EXPECT_EQ(chosen(LastConvolution(DataType::kFloat16, first, true)), "cpu.channels_last");
  const LastLayer depthwise = {{1, 32, 8, 8}, {32, 1, 3, 3}, {1, 32, 8, 8}, 1, 1, 32};
  EXPECT_EQ(chosen(LastConvolution(DataType::kFloat16, depthwise)), "cpu.depthwise_channels_last");
}

// A kernel that applies the tail before it stores gives the same bytes as a convolution followed by the
// operators: for channels-last and planar tensors, and with the added tensor in either layout.
TEST(ConvolutionChannelsLast, Tails) {
  const LastLayer kLayers[] = {{{2, 40, 9, 7}, {70, 40, 3, 3}, {2, 70, 9, 7}, 1, 1},
                               {{1, 20, 16, 17}, {48, 20, 1, 1}, {1, 48, 16, 17}},
                               {{1, 20, 5, 5}, {34, 10, 3, 3}, {1, 34, 3, 3}, 2, 1, 2}};
  std::mt19937_64 random(TestSeed());
  uint32_t in_place_count = 0;
  for (uint32_t way = 0; way < 3 * 64; ++way) {
    const LastLayer& layer = kLayers[way % 3];
    const uint32_t choice = way / 3;
    const DataType type = (choice & 32) != 0 ? DataType::kFloat16 : DataType::kFloat32;
    OperatorDesc desc = LastConvolution(type, layer, (choice & 1) != 0);
    const TensorDesc planes = Packed(type, layer.output), last = ChannelsLast(type, layer.output);
    const TensorDesc &output = (choice & 2) != 0 ? planes : last, &added = (choice & 4) != 0 ? planes : last;
    SetField(&desc, "OutputTensor", output);
    const TensorDesc row = Packed(type, {1, layer.output[1], 1, 1});
    ConvolutionTailDesc tail;
    std::vector<Bytes> inputs = InputsOf(desc);
    inputs.resize(ConvolutionTail::kInputs);
    if ((choice & 8) != 0) {
      for (uint32_t i = 0; i < 4; ++i) {
        tail.tensors[i] = row;
        std::vector<float> numbers(layer.output[1]);
        for (float& number : numbers) number = static_cast<float>(1 + random() % 64) / 8;
        std::vector<Half> halves(numbers.size());
        std::ranges::transform(numbers, halves.begin(), [](float number) { return ToHalf(number); });
        inputs[ConvolutionTail::kMean + i] =
            type == DataType::kFloat32 ? Scattered(row, numbers) : Scattered(row, halves);
      }
      tail.epsilon = 1e-3f;
      tail.normalized = {-1, 5};
    }
    if ((choice & 16) != 0 || (choice & 8) == 0) {
      tail.tensors.back() = added;
      inputs[ConvolutionTail::kAdded] = Eighths(added, random);
      tail.added = way % 5 == 0 ? ConvolutionLimits{-0.0f, 1} : ConvolutionLimits{.least = 0};
    }
    const bool normal_halves = type == DataType::kFloat16 && tail.normalizes();
    const bool fuses = !normal_halves && !std::signbit(tail.added.least == 0 ? tail.added.least : 1);
    const auto run = [&](const char* implementation) {
      LoweredOperator lowered;
      const Status status =
          LowerConvolutionWithTail(desc, tail, {.implementation = implementation}, &lowered);
      EXPECT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(lowered.implementation, implementation);
      if (lowered.implementation == "cpu.channels_last") {
        EXPECT_EQ(lowered.kernel->made_of().empty(), fuses) << "way " << way;
      }
      const auto buffer = [](Bytes& bytes) {
        return Buffer{bytes.empty() ? nullptr : reinterpret_cast<std::byte*>(bytes.data()), bytes.size()};
      };
      std::vector<Buffer> buffers;
      for (Bytes& bytes : inputs) buffers.push_back(buffer(bytes));
      Bytes result(output.total_bytes), temporary(lowered.kernel->temporary_bytes());
      const Buffer to = buffer(result);
      KernelArguments arguments{buffers, {&to, 1}};
      arguments.temporary = buffer(temporary);
      EXPECT_TRUE(lowered.kernel->Run(arguments).ok());
      if (!lowered.in_place.empty()) {
        Bytes replaced = inputs[ConvolutionTail::kAdded];
        const Buffer same = buffer(replaced);
        buffers[ConvolutionTail::kAdded] = same;
        KernelArguments in_place{buffers, {&same, 1}};
        in_place.temporary = arguments.temporary;
        EXPECT_TRUE(lowered.kernel->Run(in_place).ok());
        EXPECT_TRUE(replaced == result) << "in place, way " << way;
        ++in_place_count;
      }
      return result;
    };
    const Bytes expected = run("cpu.product");
    EXPECT_TRUE(run("cpu.channels_last") == expected) << "way " << way;
    if (way % 3 == 1 && type == DataType::kFloat32) {
      EXPECT_TRUE(run("cpu.plane_tiles") == expected) << "way " << way;
    }
  }
  EXPECT_GT(in_place_count, 20u);
}

// Taps outside the input are not multiplied: an infinite weight must not give NaN there.
TEST(ConvolutionChannelsLast, InfiniteWeightsAreNotMultipliedByPadding) {
  const struct {
    LastLayer layer;
    const char* implementation;
  } kCases[] = {{{{1, 5, 4, 4}, {9, 5, 3, 3}, {1, 9, 4, 4}, 1, 1}, "cpu.channels_last"},
                {{{1, 9, 4, 4}, {9, 1, 3, 3}, {1, 9, 4, 4}, 1, 1, 9}, "cpu.depthwise_channels_last"}};
  for (const auto& c : kCases) {
    const OperatorDesc desc = LastConvolution(DataType::kFloat32, c.layer);
    const auto names = RunnableImplementations(desc);
    if (std::find(names.begin(), names.end(), std::string(c.implementation)) == names.end()) continue;
    std::vector<Bytes> inputs = InputsOf(desc);
    const TensorDesc &input = *desc.tensor("InputTensor"), &filter = *desc.tensor("FilterTensor");
    inputs[0] = Scattered(input, std::vector<float>(ElementCount(input), 1));
    std::vector<float> weights(ElementCount(filter), 1);
    weights[0] = std::numeric_limits<float>::infinity();  // of the first tap
    inputs[1] = Scattered(filter, weights);
    const auto outputs = [&](const char* name) {
      return RunOperator(desc, inputs, {.implementation = name}).outputs;
    };
    EXPECT_TRUE(outputs(c.implementation) == outputs("cpu.reference")) << c.implementation;
  }
}

}  // namespace
}  // namespace anydml::testing
