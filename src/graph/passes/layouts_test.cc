// Tensors between convolutions become channels-last, as GPUs and CPUs with wide vectors prefer. Only strides
// change: the CPU, which accepts any strides, gives the same bytes.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "graph/passes/graph_under_test.h"
#include "graph/passes/passes.h"

namespace anydml::testing {
namespace {

using Sizes = std::vector<uint32_t>;
constexpr DataType kFloat = DataType::kFloat32;

constexpr DeviceTraits WithLanes(uint32_t lanes) {
  DeviceTraits device = kHostDevice;
  device.vector_lanes = lanes;
  return device;
}
constexpr DeviceTraits WithUnits() {
  DeviceTraits device = kHostDevice;
  device.convolution_channels = ConvolutionChannels::kFillUnits;
  device.unit_bytes = 16;
  return device;
}
constexpr DeviceTraits kDevices[] = {WithUnits(), WithLanes(8)};

// Small integers, whose sums are exact in any order.
class LayoutGraph : public GraphUnderTest {
 public:
  uint32_t Numbers(const TensorDesc& tensor) {
    std::vector<float> numbers(tensor.total_bytes / 4);
    for (float& number : numbers) number = static_cast<float>(random_() % 5) - 2;
    Bytes bytes(tensor.total_bytes);
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    return Input(bytes);
  }
  uint32_t Convolution(uint32_t x, const Sizes& input, uint32_t channels, uint32_t taps,
                       uint32_t groups = 1) {
    const auto spatial = static_cast<uint32_t>(input.size() - 2);
    Sizes output = input, filter(input.size(), taps);
    output[1] = filter[0] = channels;
    filter[1] = input[1] / groups;
    const auto all = [&](uint32_t value) { return Sizes(spatial, value); };
    const OperatorDesc desc = MakeDesc("CONVOLUTION", {{"InputTensor", Packed(kFloat, input)},
                                                       {"FilterTensor", Packed(kFloat, filter)},
                                                       {"OutputTensor", Packed(kFloat, output)},
                                                       {"Mode", uint32_t{1}},
                                                       {"Direction", uint32_t{0}},
                                                       {"DimensionCount", spatial},
                                                       {"Strides", all(1)},
                                                       {"Dilations", all(1)},
                                                       {"StartPadding", all(taps / 2)},
                                                       {"EndPadding", all(taps / 2)},
                                                       {"OutputPadding", all(0)},
                                                       {"GroupCount", groups}});
    return Node(desc, {x, Numbers(Packed(kFloat, filter)), kNoValue})[0];
  }
  uint32_t Pool(uint32_t x, const Sizes& input, const Sizes& output) {
    const uint32_t size = input[2] - output[2] + 1;
    const OperatorDesc desc = MakeDesc("MAX_POOLING", {{"InputTensor", Packed(kFloat, input)},
                                                       {"OutputTensor", Packed(kFloat, output)},
                                                       {"DimensionCount", uint32_t{2}},
                                                       {"Strides", Sizes{1, 1}},
                                                       {"WindowSize", Sizes{size, size}},
                                                       {"StartPadding", Sizes{0, 0}},
                                                       {"EndPadding", Sizes{0, 0}}});
    return Node(desc, {x})[0];
  }
  uint32_t Abs(uint32_t x, const Sizes& sizes) { return AbsFrom(x, sizes, sizes); }
  // Reads the elements with different sizes.
  uint32_t AbsFrom(uint32_t x, const Sizes& input, const Sizes& output) {
    return Node(MakeDesc("ELEMENT_WISE_ABS",
                         {{"InputTensor", Packed(kFloat, input)}, {"OutputTensor", Packed(kFloat, output)}}),
                {x})[0];
  }
  uint32_t Add(uint32_t x, uint32_t y, const Sizes& sizes) {
    const TensorDesc tensor = Packed(kFloat, sizes);
    return Node(
        MakeDesc("ELEMENT_WISE_ADD", {{"ATensor", tensor}, {"BTensor", tensor}, {"OutputTensor", tensor}}),
        {x, y})[0];
  }
  uint32_t Join(uint32_t x, uint32_t y, const Sizes& sizes, const Sizes& joined) {
    const std::vector<TensorDesc> inputs(2, Packed(kFloat, sizes));
    return Node(MakeDesc("JOIN", {{"InputCount", uint32_t{2}},
                                  {"InputTensors", inputs},
                                  {"OutputTensor", Packed(kFloat, joined)},
                                  {"Axis", uint32_t{1}}}),
                {x, y})[0];
  }

  // Compiles the graph as for a device: optionally with the other passes first, then with layouts. Returns
  // the number of tensors whose layout changed.
  size_t Lay(const DeviceTraits& device, bool with_other_passes = false) {
    if (with_other_passes) {
      EXPECT_TRUE(RunPasses({}, "layouts,tails", &graph).ok());
    }
    graph.log.clear();
    EXPECT_TRUE(ChooseLayouts({.device = &device}, &graph).ok());
    return graph.log.size();
  }

 private:
  std::mt19937 random_{5};
};

void ExpectSame(const LayoutGraph& test, size_t laid_out) {
  const auto want = RunGraph(test, "all");
  for (const DeviceTraits& device : kDevices) {
    SCOPED_TRACE(device.vector_lanes);
    for (const bool with_other_passes : {false, true}) {
      LayoutGraph changed = test;
      EXPECT_EQ(changed.Lay(device, with_other_passes), laid_out);
      const auto got = RunGraph(changed, "all");
      EXPECT_EQ(got.outputs, want.outputs) << got.explanation;
    }
  }
}

// If vectors are as short as image rows, planar layouts are as fast.
void ExpectPlanes(const LayoutGraph& test) {
  LayoutGraph same = test;
  EXPECT_EQ(same.Lay(WithLanes(4)), 0u);
}

TEST(Layouts, BetweenConvolutions) {
  LayoutGraph test;
  const Sizes wide = {2, 8, 6, 6}, pooled = {2, 8, 5, 5};
  const uint32_t x = test.Numbers(Packed(kFloat, {2, 3, 6, 6}));
  const uint32_t first = test.Convolution(x, {2, 3, 6, 6}, 8, 3);
  const uint32_t smaller = test.Pool(first, wide, pooled);
  const uint32_t depthwise = test.Convolution(smaller, pooled, 8, 3, 8);
  const uint32_t second = test.Convolution(depthwise, pooled, 8, 1);
  test.Output(test.Convolution(test.Add(second, smaller, pooled), pooled, 4, 3));
  ExpectSame(test, 5);
  ExpectPlanes(test);
}

TEST(Layouts, ThreeDimensions) {
  LayoutGraph test;
  const Sizes cube = {1, 8, 3, 4, 5};
  const uint32_t x = test.Numbers(Packed(kFloat, {1, 2, 3, 4, 5}));
  const uint32_t y = test.Convolution(x, {1, 2, 3, 4, 5}, 8, 3);
  test.Output(test.Convolution(test.Convolution(y, cube, 8, 3), cube, 4, 3));
  ExpectSame(test, 2);
}

// Parts are written into interleaved channels if those are whole units.
TEST(Layouts, JoinedChannels) {
  LayoutGraph test;
  const Sizes part = {2, 8, 4, 4}, whole = {2, 16, 4, 4};
  const uint32_t x = test.Numbers(Packed(kFloat, {2, 3, 4, 4}));
  const uint32_t first = test.Convolution(x, {2, 3, 4, 4}, 8, 3),
                 second = test.Convolution(first, part, 8, 3);
  const uint32_t joined = test.Join(first, second, part, whole);
  test.Output(test.Convolution(joined, whole, 8, 1));
  const auto want = RunGraph(test, "all");
  for (const DeviceTraits& device : kDevices) {
    LayoutGraph changed = test;
    EXPECT_GE(changed.Lay(device, true), 1u);
    EXPECT_EQ(RunGraph(changed, "all").outputs, want.outputs);
  }
}

// The layouts of a graph's inputs and outputs must not change, nor those of tensors that are read with
// different sizes.
TEST(Layouts, WhatIsPinned) {
  const Sizes sizes = {1, 8, 4, 4};
  LayoutGraph whole;
  const uint32_t x = whole.Numbers(Packed(kFloat, sizes));
  whole.Output(whole.Convolution(x, sizes, 8, 3));
  ExpectSame(whole, 0);

  LayoutGraph reinterpreted;
  const uint32_t y = reinterpreted.Convolution(reinterpreted.Numbers(Packed(kFloat, sizes)), sizes, 8, 3);
  const uint32_t z = reinterpreted.AbsFrom(y, {1, 4, 8, 4}, {1, 4, 8, 4});
  reinterpreted.Output(reinterpreted.Convolution(z, sizes, 8, 3));
  const auto want = RunGraph(reinterpreted, "all");
  for (const DeviceTraits& device : kDevices) {
    LayoutGraph alone = reinterpreted;
    alone.Lay(device);
    EXPECT_EQ(RunGraph(alone, "all").outputs, want.outputs);
  }
}

// Element-wise operations with no convolution nearby keep their layout, however long the chain.
TEST(Layouts, OnlyWhereItPays) {
  const Sizes sizes = {1, 8, 4, 4};
  LayoutGraph test;
  uint32_t x = test.Numbers(Packed(kFloat, sizes));
  test.Output(test.Convolution(x, sizes, 8, 3));
  for (int i = 0; i < 4; ++i) x = test.Abs(x, sizes);
  test.Output(x);
  ExpectSame(test, 0);
}

}  // namespace
}  // namespace anydml::testing
