// Convolutions large enough for the large tiles of devices. Sums of eighths are exact, so all kernels must
// give the bytes of the general one.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "ops/convolution/convolution_test_support.h"
#include "ops/gemm/gemm_cases.h"

namespace anydml::testing {
namespace {

Sizes BiasSizes(const Sizes& output) {
  Sizes sizes(output.size(), 1);
  sizes[1] = output[1];
  return sizes;
}

// Enough outputs for the large tiles of device kernels.
TEST(Convolution, LargeTilesOfDevices) {
  const struct {
    Sizes input;
    uint32_t outputs;
    DataType type;
    std::vector<const char*> implementations;
  } kCases[] = {
      {{32, 64, 56, 56}, 64, DataType::kFloat16, {"cuda.patches", "cuda.channels_last"}},
      {{32, 256, 14, 14}, 256, DataType::kFloat16, {"cuda.patches", "cuda.channels_last"}},
      {{40, 64, 30, 30}, 136, DataType::kFloat16, {"cuda.patches", "cuda.channels_last"}},
      {{32, 64, 56, 56}, 64, DataType::kFloat32, {"cuda.steps", "cuda.channels_last"}},
      {{32, 256, 14, 14}, 256, DataType::kFloat32, {"cuda.steps", "cuda.channels_last"}},
      {{16, 36, 30, 31}, 200, DataType::kFloat32, {"cuda.channels_last"}},
      // Many steps and few outputs: several blocks divide the steps.
      {{1, 512, 7, 7}, 512, DataType::kFloat16, {"cuda.patches", "cuda.channels_last"}},
      {{1, 128, 28, 28}, 130, DataType::kFloat16, {"cuda.patches", "cuda.channels_last"}},
      {{1, 256, 14, 14}, 255, DataType::kFloat32, {"cuda.steps", "cuda.channels_last"}},
      {{3, 2, 60, 61}, 72, DataType::kFloat16, {"cuda.few_channels", "cuda.channels_last"}},
  };
  std::mt19937_64 random(TestSeed());
  for (const auto& c : kCases) {
    const uint32_t channels = c.input[1];
    OperatorDesc desc = Convolution(c.input, {c.outputs, channels, 3, 3},
                                    {c.input[0], c.outputs, c.input[2], c.input[3]}, {.padding = 1});
    const auto names = RunnableImplementations(desc);
    const std::string general = "cuda.tiled";
    if (std::find(names.begin(), names.end(), general) == names.end()) GTEST_SKIP() << "no CUDA device";
    std::vector<Bytes> inputs(3);
    SetTypes(&desc, c.type);
    for (uint32_t i = 0; i < 2; ++i) {
      inputs[i] = Eighths(*desc.tensor(i == 0 ? "InputTensor" : "FilterTensor"), random);
    }
    RunOptions options;
    options.implementation = general;
    const RunResult expected = RunOperator(desc, inputs, options);
    for (const char* name : c.implementations) {
      options.implementation = name;
      EXPECT_TRUE(RunOperator(desc, inputs, options).outputs == expected.outputs)
          << name << ", channels " << channels;
    }
    options.implementation = "cuda.cudnn";
    const RunResult by_library = RunOperator(desc, inputs, options);
    if (by_library.implementation.empty()) {
      const std::string& why_not = by_library.explanation;
      std::cout << "without cuDNN, channels " << channels << "\n";
      const bool is_there = why_not.find("libcudnn.so") == std::string::npos &&
                            why_not.find("cuDNN is of version") == std::string::npos;
      EXPECT_FALSE(is_there && c.type == DataType::kFloat16) << why_not;
    } else {
      EXPECT_TRUE(by_library.outputs == expected.outputs) << "cuDNN, channels " << channels;
    }
  }
}

// Backward: outputs with the same remainder modulo the stride form a phase.
TEST(Convolution, PhasesOfDevices) {
  const struct {
    Sizes input;
    uint32_t outputs, taps, stride, dilation, padding;
    uint32_t more = 0;  // outputs beyond those that the formula gives
    uint32_t groups = 1;
  } kCases[] = {
      {{1, 64, 64, 64}, 32, 2, 2, 1, 0},  {{2, 128, 16, 16}, 64, 4, 2, 1, 1},
      {{1, 512, 8, 8}, 256, 4, 2, 1, 1},  {{1, 40, 9, 11}, 33, 3, 2, 1, 1, 1},
      {{2, 24, 7, 6}, 20, 5, 3, 1, 2},    {{1, 16, 10, 9}, 24, 3, 1, 1, 1},
      {{1, 32, 13}, 12, 3, 2, 3, 1, 2},   {{1, 20, 5, 6}, 8, 1, 3, 1, 0, 2},
      {{1, 8, 3, 4, 5}, 16, 3, 2, 1, 1},  {{2, 48, 6, 7}, 40, 4, 2, 1, 1, 0, 4},
      {{1, 16, 6, 6}, 16, 4, 4, 2, 3, 1}, {{3, 17, 20, 20}, 70, 2, 2, 1, 0, 1},
  };
  std::mt19937_64 random(TestSeed());
  for (const auto& c : kCases) {
    Sizes filter = {c.input[1], c.outputs / c.groups}, output = {c.input[0], c.outputs};
    for (size_t d = 2; d < c.input.size(); ++d) {
      filter.push_back(c.taps);
      output.push_back((c.input[d] - 1) * c.stride + (c.taps - 1) * c.dilation + 1 - 2 * c.padding + c.more);
    }
    const Attributes attributes = {.backward = true,
                                   .stride = c.stride,
                                   .dilation = c.dilation,
                                   .padding = c.padding,
                                   .groups = c.groups};
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      OperatorDesc desc = Convolution(c.input, filter, output, attributes);
      SetTypes(&desc, type);
      const auto names = RunnableImplementations(desc);
      if (std::find(names.begin(), names.end(), std::string("cuda.tiled")) == names.end()) {
        GTEST_SKIP() << "no CUDA device";
      }
      const std::vector<Bytes> inputs = {Eighths(*desc.tensor("InputTensor"), random),
                                         Eighths(*desc.tensor("FilterTensor"), random), Bytes()};
      const RunResult expected = RunOperator(desc, inputs, {.implementation = "cuda.tiled"});
      const RunResult phases = RunOperator(desc, inputs, {.implementation = "cuda.phases"});
      EXPECT_EQ(phases.implementation, "cuda.phases") << phases.explanation;
      EXPECT_TRUE(phases.outputs == expected.outputs)
          << c.input[1] << " channels, " << c.taps << " taps, stride " << c.stride;
    }
  }
}

// Channels first and last, large enough that blocks divide whole channels or tiles of them.
TEST(Convolution, DepthwiseOfDevices) {
  const struct {
    Sizes input;
    bool channels_last;
    uint32_t gap = 0;  // after a pixel's channels
  } kCases[] = {{{16, 1321, 12, 12}, false},  {{24, 360, 28, 28}, false}, {{9, 245, 40, 56}, false},
                {{24, 328, 29, 31}, true},    {{4, 96, 100, 70}, true},   {{24, 324, 28, 28}, true},
                {{24, 320, 28, 27}, true, 8}, {{32, 144, 56, 56}, true},  {{1, 144, 56, 56}, true},
                {{2, 40, 57, 30}, true},      {{5, 960, 7, 7}, true}};
  std::mt19937_64 random(TestSeed());
  for (const auto& c : kCases) {
    const uint32_t channels = c.input[1];
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      for (const bool has_bias : {false, true}) {
        OperatorDesc desc =
            Convolution(c.input, {channels, 1, 3, 3}, c.input, {.padding = 1, .groups = channels});
        SetTypes(&desc, type);
        const auto names = RunnableImplementations(desc);
        if (std::find(names.begin(), names.end(), std::string("cuda.tiled")) == names.end()) {
          GTEST_SKIP() << "no CUDA device";
        }
        if (c.channels_last) {
          for (const char* field : {"InputTensor", "OutputTensor"}) {
            Sizes sizes = c.input;
            sizes[1] += c.gap;
            TensorDesc tensor = ChannelsLast(type, sizes);
            tensor.sizes[1] = channels;
            SetField(&desc, field, tensor);
          }
        }
        std::vector<Bytes> inputs = {Eighths(*desc.tensor("InputTensor"), random),
                                     Eighths(*desc.tensor("FilterTensor"), random), Bytes()};
        if (has_bias) {
          SetField(&desc, "BiasTensor", Packed(type, {1, channels, 1, 1}));
          SetField(&desc, "FusedActivation",
                   std::make_shared<const OperatorDesc>(MakeDesc("ACTIVATION_RELU", {})));
          inputs[2] = Eighths(*desc.tensor("BiasTensor"), random);
        }
        const RunResult expected = RunOperator(desc, inputs, {.implementation = "cuda.tiled"});
        const RunResult depthwise = RunOperator(desc, inputs, {.implementation = "cuda.depthwise"});
        EXPECT_EQ(depthwise.implementation, "cuda.depthwise");
        EXPECT_TRUE(depthwise.outputs == expected.outputs) << channels << " channels";
      }
    }
  }
}

// Channels in multiples of 64, planar and channels-last, with partial tiles, and with steps that blocks
// divide.
TEST(Convolution, StepsOfDevices) {
  const struct {
    Sizes input, filter, output;
    Attributes attributes = {};
  } kCases[] = {{{2, 64, 9, 11}, {40, 64, 3, 3}, {2, 40, 9, 11}, {.padding = 1}},
                {{3, 128, 15, 14}, {130, 128, 3, 3}, {3, 130, 8, 7}, {.stride = 2, .padding = 1}},
                {{1, 192, 13, 12}, {256, 192, 3, 2}, {1, 256, 9, 10}, {.dilation = 2}},
                {{2, 256, 10, 10}, {96, 64, 3, 3}, {2, 96, 10, 10}, {.padding = 1, .groups = 4}},
                {{5, 64, 37}, {20, 64, 5}, {5, 20, 37}, {.padding = 2}},
                {{2, 64, 4, 5, 6}, {33, 64, 3, 3, 3}, {2, 33, 4, 5, 6}, {.padding = 1}},
                {{1, 512, 7, 7}, {512, 512, 3, 3}, {1, 512, 7, 7}, {.padding = 1}},
                {{9, 128, 20, 20}, {200, 128, 1, 1}, {9, 200, 20, 20}}};
  std::mt19937_64 random(TestSeed());
  for (const auto& c : kCases) {
    // planar; channels-last; channels-last with gaps between pixels
    for (const uint32_t order : {0u, 1u, 2u}) {
      OperatorDesc desc = Convolution(c.input, c.filter, c.output, c.attributes);
      const auto names = RunnableImplementations(desc);
      if (std::find(names.begin(), names.end(), std::string("cuda.tiled")) == names.end()) {
        GTEST_SKIP() << "no CUDA device";
      }
      if (order > 0) {
        const uint32_t gap = order == 2 ? 3 : 0;
        SetField(&desc, "InputTensor", ChannelsLast(DataType::kFloat32, c.input, gap));
        SetField(&desc, "FilterTensor", ChannelsLast(DataType::kFloat32, c.filter));
        SetField(&desc, "OutputTensor", ChannelsLast(DataType::kFloat32, c.output, gap));
      }
      SetField(&desc, "BiasTensor", Packed(DataType::kFloat32, BiasSizes(c.output)));
      SetField(&desc, "FusedActivation",
               std::make_shared<const OperatorDesc>(MakeDesc("ACTIVATION_RELU", {})));
      std::vector<Bytes> inputs;
      for (const char* field : {"InputTensor", "FilterTensor", "BiasTensor"}) {
        inputs.push_back(Eighths(*desc.tensor(field), random));
      }
      const RunResult expected = RunOperator(desc, inputs, {.implementation = "cuda.tiled"});
      for (const bool is_owned : {false, true}) {
        TensorDesc filter = *desc.tensor("FilterTensor");
        filter.owned_by_dml = is_owned;
        SetField(&desc, "FilterTensor", filter);
        const RunResult steps = RunOperator(desc, inputs, {.implementation = "cuda.steps"});
        EXPECT_EQ(steps.implementation, "cuda.steps") << steps.explanation;
        EXPECT_TRUE(steps.outputs == expected.outputs)
            << c.input[1] << " to " << c.output[1] << " channels, order " << order;
      }
    }
  }
}

// FLOAT32 images of up to four channels, as in first layers: the last tiles are partial in all dimensions.
TEST(Convolution, FewChannelsOfDevices) {
  const struct {
    Sizes input;
    uint32_t outputs, taps, stride, dilation_of_rows;
    bool channels_last;
  } kCases[] = {{{1, 3, 224, 224}, 64, 7, 2, 1, false}, {{1, 3, 224, 224}, 64, 7, 2, 1, true},
                {{3, 2, 61, 67}, 45, 7, 2, 1, false},   {{3, 2, 61, 67}, 45, 7, 2, 1, true},
                {{2, 4, 40, 33}, 40, 3, 1, 2, false},   {{2, 4, 40, 33}, 40, 3, 1, 2, true},
                {{4, 3, 50, 60}, 32, 3, 2, 1, true},    {{1, 1, 90, 64}, 24, 5, 1, 1, false},
                {{2, 3, 35, 45}, 20, 5, 2, 3, true}};
  std::mt19937_64 random(TestSeed());
  for (const auto& c : kCases) {
    const uint32_t padding = c.taps / 2, channels = c.input[1];
    const auto outputs = [&](size_t d, uint32_t dilation) {
      return (c.input[d] + 2 * padding - (c.taps - 1) * dilation - 1) / c.stride + 1;
    };
    const Sizes output = {c.input[0], c.outputs, outputs(2, c.dilation_of_rows), outputs(3, 1)};
    OperatorDesc desc = Convolution(c.input, {c.outputs, channels, c.taps, c.taps}, output,
                                    {.stride = c.stride, .padding = padding});
    SetField(&desc, "Dilations", Sizes{c.dilation_of_rows, 1});
    const auto names = RunnableImplementations(desc);
    if (std::find(names.begin(), names.end(), std::string("cuda.tiled")) == names.end()) {
      GTEST_SKIP() << "no CUDA device";
    }
    if (c.channels_last) {
      SetField(&desc, "InputTensor", ChannelsLast(DataType::kFloat32, c.input));
      SetField(&desc, "FilterTensor",
               ChannelsLast(DataType::kFloat32, {c.outputs, channels, c.taps, c.taps}));
      SetField(&desc, "OutputTensor", ChannelsLast(DataType::kFloat32, output));
    }
    std::vector<Bytes> inputs = {Eighths(*desc.tensor("InputTensor"), random),
                                 Eighths(*desc.tensor("FilterTensor"), random), Bytes()};
    for (const bool has_bias : {false, true}) {
      if (has_bias) {
        SetField(&desc, "BiasTensor", Packed(DataType::kFloat32, {1, c.outputs, 1, 1}));
        SetField(&desc, "FusedActivation",
                 std::make_shared<const OperatorDesc>(MakeDesc("ACTIVATION_RELU", {})));
        inputs[2] = Eighths(*desc.tensor("BiasTensor"), random);
      }
      const RunResult expected = RunOperator(desc, inputs, {.implementation = "cuda.tiled"});
      const RunResult few = RunOperator(desc, inputs, {.implementation = "cuda.few_floats"});
      EXPECT_EQ(few.implementation, "cuda.few_floats") << few.explanation;
      EXPECT_TRUE(few.outputs == expected.outputs) << c.taps << " taps, " << c.outputs << " channels";
    }
  }
}

// Planar FLOAT16 in whole units with three taps in a row: tiles of every width, partial in all dimensions;
// strips of long rows; filters that fit in shared memory (packed by blocks or not) and filters that do not.
TEST(Convolution, PlanesOfDevices) {
  const struct {
    Sizes input;
    uint32_t outputs, taps;  // the latter of a column
    bool is_mirrored = false;
  } kCases[] = {{{32, 64, 56, 56}, 64, 3}, {{3, 128, 57, 112}, 136, 3}, {{2, 320, 64, 64}, 72, 3},
                {{5, 72, 23, 40}, 64, 3},  {{2, 40, 30, 48}, 8, 5},     {{9, 64, 32, 32}, 200, 3, true},
                {{1, 16, 9, 24}, 40, 1},   {{4, 64, 20, 256}, 64, 3},   {{1, 200, 3, 8}, 24, 3, true},
                {{2, 24, 12, 32}, 56, 3},  {{1, 9, 16, 16}, 16, 3}};
  std::mt19937_64 random(TestSeed());
  for (const auto& c : kCases) {
    const Sizes output = {c.input[0], c.outputs, c.input[2] + 3 - c.taps, c.input[3]};
    OperatorDesc desc = Convolution(c.input, {c.outputs, c.input[1], c.taps, 3}, output,
                                    {.mode = c.is_mirrored ? kMirrored : kCrossCorrelation, .padding = 1});
    SetTypes(&desc, DataType::kFloat16);
    const auto names = RunnableImplementations(desc);
    if (std::find(names.begin(), names.end(), std::string("cuda.tiled")) == names.end()) {
      GTEST_SKIP() << "no CUDA device";
    }
    std::vector<Bytes> inputs = {Eighths(*desc.tensor("InputTensor"), random),
                                 Eighths(*desc.tensor("FilterTensor"), random), Bytes()};
    for (const bool has_bias : {false, true}) {
      if (has_bias) {
        SetField(&desc, "BiasTensor", Packed(DataType::kFloat16, BiasSizes(output)));
        SetField(&desc, "FusedActivation",
                 std::make_shared<const OperatorDesc>(MakeDesc("ACTIVATION_RELU", {})));
        inputs[2] = Eighths(*desc.tensor("BiasTensor"), random);
      }
      TensorDesc filter = *desc.tensor("FilterTensor");
      filter.owned_by_dml = has_bias;
      SetField(&desc, "FilterTensor", filter);
      const RunResult expected = RunOperator(desc, inputs, {.implementation = "cuda.tiled"});
      const RunResult planes = RunOperator(desc, inputs, {.implementation = "cuda.planes"});
      if (planes.explanation.find("compute capability 9.0") != std::string::npos) GTEST_SKIP();
      EXPECT_EQ(planes.implementation, "cuda.planes") << planes.explanation;
      EXPECT_TRUE(planes.outputs == expected.outputs)
          << c.input[1] << " to " << c.outputs << " channels of " << c.input[2] << " x " << c.input[3];
    }
  }
}

// One tap of few channels, planar and channels-last: with enough positions for several tiles per block, and
// with few.
TEST(Convolution, PointsOfDevices) {
  const struct {
    Sizes input;
    uint32_t outputs;
    bool from_last, to_last;
  } kCases[] = {{{32, 24, 56, 56}, 144, false, true}, {{32, 144, 56, 56}, 24, true, false},
                {{1, 24, 56, 56}, 144, false, true},  {{1, 144, 56, 56}, 24, true, false},
                {{3, 64, 14, 20}, 72, false, true},   {{2, 192, 7, 7}, 40, true, true},
                {{64, 32, 29, 31}, 200, true, true},  {{8, 64, 56, 56}, 256, true, false},
                {{70, 40, 14, 14}, 264, true, false}, {{5, 160, 13, 11}, 8, true, true}};
  std::mt19937_64 random(TestSeed());
  for (const auto& c : kCases) {
    const uint32_t channels = c.input[1];
    for (const bool has_bias : {false, true}) {
      const Sizes output = {c.input[0], c.outputs, c.input[2], c.input[3]};
      OperatorDesc desc = Convolution(c.input, {c.outputs, channels, 1, 1}, output, {});
      SetTypes(&desc, DataType::kFloat16);
      const auto names = RunnableImplementations(desc);
      if (std::find(names.begin(), names.end(), std::string("cuda.tiled")) == names.end()) {
        GTEST_SKIP() << "no CUDA device";
      }
      if (c.from_last) SetField(&desc, "InputTensor", ChannelsLast(DataType::kFloat16, c.input));
      if (c.to_last) SetField(&desc, "OutputTensor", ChannelsLast(DataType::kFloat16, output));
      std::vector<Bytes> inputs = {Eighths(*desc.tensor("InputTensor"), random),
                                   Eighths(*desc.tensor("FilterTensor"), random), Bytes()};
      if (has_bias) {
        SetField(&desc, "BiasTensor", Packed(DataType::kFloat16, {1, c.outputs, 1, 1}));
        SetField(&desc, "FusedActivation",
                 std::make_shared<const OperatorDesc>(MakeDesc("ACTIVATION_RELU", {})));
        inputs[2] = Eighths(*desc.tensor("BiasTensor"), random);
      }
      const RunResult expected = RunOperator(desc, inputs, {.implementation = "cuda.tiled"});
      const RunResult points = RunOperator(desc, inputs, {.implementation = "cuda.pointwise"});
      EXPECT_EQ(points.implementation, "cuda.pointwise") << points.explanation;
      EXPECT_TRUE(points.outputs == expected.outputs) << channels << " to " << c.outputs << " channels";
    }
  }
}

}  // namespace
}  // namespace anydml::testing
