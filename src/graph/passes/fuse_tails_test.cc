// A fused tail of a convolution gives the bytes of the separate operators. Other tests cover kernels that
// apply the tail before they store (cpu.channels_last, and tests/dml on GPUs); here the convolution and its
// tail run one after the other.
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "base/half.h"
#include "graph/passes/fused_graph.h"
#include "graph/passes/passes.h"

namespace anydml::testing {
namespace {

using Sizes = std::vector<uint32_t>;

struct TailGraph : GraphUnderTest {
  explicit TailGraph(DataType type_of_all) : type(type_of_all) {}

  uint32_t Numbers(const TensorDesc& tensor, float least) {
    Bytes bytes(tensor.total_bytes);
    for (uint64_t i = 0; i < ElementSpan(tensor); ++i) {
      const float number =
          whole ? static_cast<float>(random() % 5) - 2 : least + static_cast<float>(random() % 1024) / 512;
      if (type == DataType::kFloat32) {
        std::memcpy(bytes.data() + 4 * i, &number, 4);
      } else {
        const Half half = ToHalf(number);
        std::memcpy(bytes.data() + 2 * i, &half, 2);
      }
    }
    return Input(bytes);
  }
  uint32_t Convolution(uint32_t x, const TensorDesc& input, const TensorDesc& output, uint32_t taps) {
    const TensorDesc filter = Packed(type, {output.sizes[1], input.sizes[1], taps, taps});
    const Sizes ones = {1, 1}, padding = {taps / 2, taps / 2};
    const OperatorDesc desc = MakeDesc("CONVOLUTION", {{"InputTensor", input},
                                                       {"FilterTensor", filter},
                                                       {"OutputTensor", output},
                                                       {"Mode", uint32_t{1}},
                                                       {"Direction", uint32_t{0}},
                                                       {"DimensionCount", uint32_t{2}},
                                                       {"Strides", ones},
                                                       {"Dilations", ones},
                                                       {"StartPadding", padding},
                                                       {"EndPadding", padding},
                                                       {"OutputPadding", Sizes{0, 0}},
                                                       {"GroupCount", uint32_t{1}}});
    return Node(desc, {x, Numbers(filter, -1), kNoValue})[0];
  }
  uint32_t Normalize(uint32_t x, const TensorDesc& tensor, const TensorDesc& output) {
    const TensorDesc row = Packed(type, {1, tensor.sizes[1], 1, 1});
    const OperatorDesc desc = MakeDesc("BATCH_NORMALIZATION", {{"InputTensor", tensor},
                                                               {"MeanTensor", row},
                                                               {"VarianceTensor", row},
                                                               {"ScaleTensor", row},
                                                               {"BiasTensor", row},
                                                               {"OutputTensor", output},
                                                               {"Spatial", uint32_t{1}},
                                                               {"Epsilon", 1e-3f}});
    return Node(desc, {x, Numbers(row, -1), Numbers(row, 0.5f), Numbers(row, 0.5f), Numbers(row, -1)})[0];
  }

  DataType type;
  // Numbers whose sums are exact in any order, because kernels for other layouts add in a different order.
  bool whole = false;
  std::mt19937 random{7};
};

constexpr DeviceTraits kWithUnits = [] {
  DeviceTraits device = kHostDevice;
  device.convolution_channels = ConvolutionChannels::kFillUnits;
  device.unit_bytes = 16;
  return device;
}();

// Compares the bytes of a run without passes with those of a run in which a tail replaces `taken` nodes.
void ExpectTail(const TailGraph& test, size_t taken) {
  const Result want = RunGraph(test, "all");
  for (const bool channels_last : {false, true}) {
    TailGraph changed = test;
    EXPECT_TRUE(FuseActivations({}, &changed.graph).ok());
    changed.graph.log.clear();
    TakeTails([](const OperatorDesc&, const ConvolutionTailDesc&) { return true; }, &changed.graph);
    EXPECT_EQ(changed.graph.log.size(), taken);
    if (channels_last) {
      EXPECT_TRUE(ChooseLayouts({.device = &kWithUnits}, &changed.graph).ok());
    }
    const Result got = RunGraph(changed, "all");
    EXPECT_EQ(got.outputs, want.outputs) << got.explanation;
  }
}

TEST(FuseTails, NormalizedAddedAndLimited) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    for (const uint32_t steps : {1u, 2u, 3u, 4u, 6u, 7u}) {
      TailGraph test(type);
      const TensorDesc tensor = Packed(type, {2, 8, 5, 6});
      const uint32_t x = test.Numbers(tensor, -1);
      uint32_t y = test.Convolution(x, tensor, tensor, 3);
      size_t taken = 0;
      if ((steps & 1) != 0) {
        y = test.Normalize(y, tensor, tensor);
        ++taken;
      }
      if ((steps & 2) != 0) {
        y = test.Node(Binary("ELEMENT_WISE_ADD", tensor, tensor, tensor), {y, x})[0];
        ++taken;
      }
      if ((steps & 4) != 0) {
        y = test.Node(Unary("ACTIVATION_RELU", tensor, tensor), {y})[0];
        // Without an addition, the convolution applies it itself.
        if ((steps & 2) != 0) ++taken;
      }
      test.Output(y);
      ExpectTail(test, taken);
    }
  }
}

// Products with few channels, as in inverted residuals: whole units, half units, and other sizes.
TEST(FuseTails, OfOneTap) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    for (const Sizes& size : {Sizes{8, 8}, Sizes{6, 10}, Sizes{5, 7}}) {
      TailGraph test(type);
      test.whole = true;
      const TensorDesc narrow = Packed(type, {2, 24, size[0], size[1]}),
                       wide = Packed(type, {2, 40, size[0], size[1]});
      const uint32_t x = test.Numbers(narrow, -1);
      const uint32_t y = test.Convolution(x, narrow, wide, 1), z = test.Convolution(y, wide, narrow, 1);
      const uint32_t sum = test.Node(Binary("ELEMENT_WISE_ADD", narrow, narrow, narrow), {z, x})[0];
      test.Output(test.Node(Unary("ACTIVATION_RELU", narrow, narrow), {sum})[0]);
      ExpectTail(test, 2);
    }
  }
}

// The tail reads results of other convolutions, and others read its result; layouts change with it.
TEST(FuseTails, BetweenConvolutions) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    TailGraph test(type);
    test.whole = true;
    const TensorDesc tensor = Packed(type, {2, 8, 5, 6});
    const uint32_t x = test.Convolution(test.Numbers(tensor, -1), tensor, tensor, 1);
    const uint32_t y = test.Convolution(x, tensor, tensor, 3);
    const uint32_t sum = test.Node(Binary("ELEMENT_WISE_ADD", tensor, tensor, tensor), {x, y})[0];
    const uint32_t relu = test.Node(Unary("ACTIVATION_RELU", tensor, tensor), {sum})[0];
    test.Output(test.Convolution(relu, tensor, tensor, 3));
    ExpectTail(test, 2);
  }
}

// If the results of two convolutions are added, one convolution takes the addition; the other's result
// becomes an input of the tail.
TEST(FuseTails, SumOfTwoConvolutions) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    TailGraph test(type);
    test.whole = true;
    const TensorDesc tensor = Packed(type, {2, 8, 5, 6});
    const uint32_t x = test.Numbers(tensor, -1);
    const uint32_t y = test.Convolution(x, tensor, tensor, 3), z = test.Convolution(x, tensor, tensor, 1);
    test.Output(test.Node(Binary("ELEMENT_WISE_ADD", tensor, tensor, tensor), {y, z})[0]);
    ExpectTail(test, 1);
  }
}

// Tails cannot include: numbers per element, sums with other readers, broadcasts of other sizes, results that
// other nodes also read.
TEST(FuseTails, OthersStay) {
  const DataType type = DataType::kFloat32;
  const TensorDesc tensor = Packed(type, {2, 8, 5, 6});
  {
    TailGraph test(type);
    const uint32_t x = test.Numbers(tensor, -1);
    const uint32_t y = test.Convolution(x, tensor, tensor, 3);
    test.Output(test.Normalize(y, tensor, tensor));
    test.Output(test.Node(Unary("ELEMENT_WISE_ABS", tensor, tensor), {y})[0]);
    ExpectTail(test, 0);
  }
  {
    TailGraph test(type);
    const TensorDesc other = Packed(type, {2, 8, 6, 5});
    const uint32_t x = test.Numbers(tensor, -1);
    const uint32_t y = test.Convolution(x, tensor, tensor, 3);
    test.Output(test.Node(Binary("ELEMENT_WISE_ADD", other, other, other), {y, x})[0]);
    ExpectTail(test, 0);
  }
  {
    TailGraph test(type);
    const uint32_t y = test.Convolution(test.Numbers(tensor, -1), tensor, tensor, 3);
    test.Output(test.Node(Binary("ELEMENT_WISE_ADD", tensor, tensor, tensor), {y, y})[0]);
    ExpectTail(test, 0);
  }
}

// The result may have another layout than the sums.
TEST(FuseTails, OutputsInAnotherOrder) {
  const DataType type = DataType::kFloat16;
  TailGraph test(type);
  const TensorDesc tensor = Packed(type, {2, 8, 5, 6});
  const TensorDesc last = Strided(type, {2, 8, 5, 6}, {240, 1, 48, 8});
  const uint32_t y = test.Convolution(test.Numbers(tensor, -1), tensor, tensor, 3);
  test.Output(test.Normalize(y, tensor, last));
  ExpectTail(test, 1);
}

}  // namespace
}  // namespace anydml::testing
