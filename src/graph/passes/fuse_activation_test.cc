// Operations after a product or a convolution are merged into it and give the same bytes.
#include <gtest/gtest.h>

#include <random>
#include <tuple>

#include "base/half.h"
#include "graph/passes/fused_graph.h"

namespace anydml::testing {
namespace {

// Small integers, whose sums are exact in any order.
Bytes WholeNumbers(const TensorDesc& tensor, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> numbers(tensor.total_bytes / 4);
  for (float& number : numbers) number = static_cast<float>(random() % 9) - 4;
  return BytesOf(numbers);
}

// Constants that products pack at initialization: with one reader, with two, and with a reader that does not
// pack.
TEST(Graph, PackedConstants) {
  const TensorDesc a = Packed(DataType::kFloat32, {1, 1, 9, 40}),
                   b = Packed(DataType::kFloat32, {1, 1, 40, 24});
  const TensorDesc output = Packed(DataType::kFloat32, {1, 1, 9, 24});
  for (const uint32_t readers : {1u, 2u, 3u}) {
    const auto make = [&](bool constant) {
      GraphUnderTest test;
      const Bytes weights = WholeNumbers(b, 2);
      const uint32_t x = test.Input(WholeNumbers(a, 1)), z = test.Input(WholeNumbers(a, 3));
      const uint32_t y = constant ? test.Constant(weights) : test.Input(weights);
      test.Output(test.Node(Product(a, b, output), {x, y, kNoValue})[0]);
      test.Output(readers >= 2 ? test.Node(Product(a, b, output), {z, y, kNoValue})[0]
                               : test.Node(Unary("ELEMENT_WISE_NEGATE", a, a), {z})[0]);
      if (readers >= 3) test.Output(test.Node(Unary("ELEMENT_WISE_NEGATE", b, b), {y})[0]);
      return test;
    };
    for (const char* const without : {"", "all", "fold"}) {
      EXPECT_EQ(RunGraph(make(true), without).outputs, RunGraph(make(false), without).outputs)
          << readers << " readers without " << without;
    }
  }
}

TEST(FuseActivation, ProductsAddAndActivate) {
  const TensorDesc a = Packed(DataType::kFloat32, {1, 2, 3, 4});
  const TensorDesc b = Packed(DataType::kFloat32, {1, 2, 4, 5});
  const TensorDesc output = Packed(DataType::kFloat32, {1, 2, 3, 5});
  const TensorDesc row = Strided(DataType::kFloat32, {1, 2, 3, 5}, {0, 0, 0, 1});
  for (const bool product_first : {true, false}) {
    GraphUnderTest test;
    const uint32_t x = test.Input(WholeNumbers(a, 1)), y = test.Input(WholeNumbers(b, 2));
    const uint32_t bias = test.Input(WholeNumbers(row, 3));
    const uint32_t product = test.Node(Product(a, b, output), {x, y, kNoValue})[0];
    const uint32_t sum = product_first
                             ? test.Node(Binary("ELEMENT_WISE_ADD", output, row, output), {product, bias})[0]
                             : test.Node(Binary("ELEMENT_WISE_ADD", row, output, output), {bias, product})[0];
    const uint32_t relu = test.Node(Unary("ACTIVATION_RELU", output, output), {sum})[0];
    test.Output(relu);
    ExpectSame(test, 1);
  }
}

// An addition may view the product's elements with other dimensions: rows of words, or words of sentences.
TEST(FuseActivation, AdditionsOfOtherDimensions) {
  const TensorDesc a = Packed(DataType::kFloat32, {1, 1, 6, 4}), b = Packed(DataType::kFloat32, {1, 1, 4, 5});
  const TensorDesc output = Packed(DataType::kFloat32, {1, 1, 6, 5});
  const TensorDesc words = Packed(DataType::kFloat32, {2, 3, 5});
  const std::pair<TensorDesc, size_t> cases[] = {{words, 1},
                                                 {Strided(DataType::kFloat32, {2, 3, 5}, {0, 0, 1}), 1},
                                                 {Strided(DataType::kFloat32, {2, 3, 5}, {0, 0, 0}), 1},
                                                 {Strided(DataType::kFloat32, {2, 3, 5}, {5, 0, 1}), 2}};
  for (const auto& [added, kernels] : cases) {
    GraphUnderTest test;
    const uint32_t x = test.Input(WholeNumbers(a, 1)), y = test.Input(WholeNumbers(b, 2));
    const uint32_t residual = test.Input(WholeNumbers(added, 3));
    const uint32_t product = test.Node(Product(a, b, output), {x, y, kNoValue})[0];
    test.Output(test.Node(Binary("ELEMENT_WISE_ADD", added, words, words), {residual, product})[0]);
    ExpectSame(test, kernels);
  }
}

// Parts of a JOIN are written directly, after their activation.
TEST(FuseActivation, PartsOfAJoin) {
  const TensorDesc a = Packed(DataType::kFloat32, {1, 1, 3, 4}), b = Packed(DataType::kFloat32, {1, 1, 4, 5});
  const TensorDesc part = Packed(DataType::kFloat32, {1, 1, 3, 5});
  GraphUnderTest test;
  const uint32_t x = test.Input(WholeNumbers(a, 1));
  std::vector<uint32_t> parts;
  for (const uint32_t seed : {2, 3}) {
    const uint32_t product =
        test.Node(Product(a, b, part), {x, test.Input(WholeNumbers(b, seed)), kNoValue})[0];
    parts.push_back(test.Node(Unary("ACTIVATION_RELU", part, part), {product})[0]);
  }
  const std::vector<TensorDesc> inputs(2, part);
  const TensorDesc joined = Packed(DataType::kFloat32, {1, 2, 3, 5});
  const OperatorDesc join = MakeDesc("JOIN", {{"InputCount", uint32_t{2}},
                                              {"InputTensors", inputs},
                                              {"OutputTensor", joined},
                                              {"Axis", uint32_t{1}}});
  test.Output(test.Node(Unary("ELEMENT_WISE_NEGATE", joined, joined), {test.Node(join, parts)[0]})[0]);
  ExpectSame(test, 3);
}

// The product's kernel was chosen for the product's own layout.
TEST(FuseActivation, LayoutsStay) {
  const TensorDesc square = Packed(DataType::kFloat32, {1, 1, 4, 4});
  const TensorDesc across = Strided(DataType::kFloat32, {1, 1, 4, 4}, {16, 16, 1, 4});
  GraphUnderTest test;
  const uint32_t x = test.Input(WholeNumbers(square, 1)), y = test.Input(WholeNumbers(square, 2));
  const uint32_t product = test.Node(Product(square, square, square), {x, y, kNoValue})[0];
  test.Output(test.Node(Unary("ACTIVATION_RELU", square, across), {product})[0]);
  ExpectSame(test, 2);
}

// Rounding after the sum differs from rounding after the addition; RELU of a rounded number is a rounded
// number.
TEST(FuseActivation, HalvesAreRoundedInBetween) {
  const TensorDesc square = Packed(DataType::kFloat16, {1, 1, 4, 4});
  for (const bool relu : {true, false}) {
    GraphUnderTest test;
    const uint32_t x = test.Input(WholeNumbers(square, 1)), y = test.Input(WholeNumbers(square, 2));
    const uint32_t product = test.Node(Product(square, square, square), {x, y, kNoValue})[0];
    test.Output(relu ? test.Node(Unary("ACTIVATION_RELU", square, square), {product})[0]
                     : test.Node(Binary("ELEMENT_WISE_ADD", square, square, square), {product, x})[0]);
    ExpectSame(test, relu ? 1 : 2);
  }
}

// The same holds for CLIP to representable limits, also in the form of CLIP1.
TEST(FuseActivation, HalvesAreClippedToHalves) {
  const TensorDesc square = Packed(DataType::kFloat16, {1, 1, 4, 4});
  const auto scalar = [](float number) {
    Scalar result{};
    const uint16_t bits = ToHalf(number).bits;
    std::memcpy(result.bytes.data(), &bits, sizeof(bits));
    return result;
  };
  const auto clip1 = MakeDesc("ELEMENT_WISE_CLIP1", {{"InputTensor", square},
                                                     {"OutputTensor", square},
                                                     {"MinMaxDataType", static_cast<uint32_t>(square.type)},
                                                     {"Min", scalar(-2)},
                                                     {"Max", scalar(6)}});
  const auto clip = [&](float min, float max) {
    return MakeDesc("ELEMENT_WISE_CLIP",
                    {{"InputTensor", square}, {"OutputTensor", square}, {"Min", min}, {"Max", max}});
  };
  const std::pair<OperatorDesc, size_t> cases[] = {
      {clip1, 1}, {clip(0, 6), 1}, {clip(0, 0.1f), 2}, {clip(6, 0), 2}};
  for (const auto& [desc, kernels] : cases) {
    GraphUnderTest test;
    const uint32_t x = test.Input(WholeNumbers(square, 1)), y = test.Input(WholeNumbers(square, 2));
    const uint32_t product = test.Node(Product(square, square, square), {x, y, kNoValue})[0];
    test.Output(test.Node(desc, {product})[0]);
    ExpectSame(test, kernels);
  }
}

// Limits of bytes that include 0.
TEST(FuseActivation, QuantisedConvolutionsClip) {
  for (const auto& [type, low, high, kernels] : {std::tuple{DataType::kInt8, -3, 50, size_t{1}},
                                                 {DataType::kInt8, 0, 127, 1},
                                                 {DataType::kUInt8, 0, 200, 1},
                                                 {DataType::kUInt8, 10, 200, 2},
                                                 {DataType::kInt8, -100, -9, 2}}) {
    for (const bool depthwise : {false, true}) {
      const TensorDesc input = Packed(type, {2, 3, 4, 16}), output = Packed(type, {2, 6, 4, 16});
      const TensorDesc filter = Packed(DataType::kInt8, {6, depthwise ? 1u : 3u, 1, 1});
      const TensorDesc one = Packed(DataType::kFloat32, {1, 1, 1, 1}), zero = Packed(type, {1, 1, 1, 1});
      const OperatorDesc convolution =
          MakeDesc("QUANTIZED_LINEAR_CONVOLUTION", {{"InputTensor", input},
                                                    {"InputScaleTensor", one},
                                                    {"FilterTensor", filter},
                                                    {"FilterScaleTensor", one},
                                                    {"OutputScaleTensor", one},
                                                    {"OutputZeroPointTensor", zero},
                                                    {"OutputTensor", output},
                                                    {"DimensionCount", uint32_t{2}},
                                                    {"Strides", std::vector<uint32_t>{1, 1}},
                                                    {"Dilations", std::vector<uint32_t>{1, 1}},
                                                    {"StartPadding", std::vector<uint32_t>{0, 0}},
                                                    {"EndPadding", std::vector<uint32_t>{0, 0}},
                                                    {"GroupCount", depthwise ? 3u : 1u}});
      const auto scalar = [](int number) {
        Scalar result{};
        result.bytes[0] = static_cast<uint8_t>(number);
        return result;
      };
      const OperatorDesc clip =
          MakeDesc("ELEMENT_WISE_CLIP1", {{"InputTensor", output},
                                          {"OutputTensor", output},
                                          {"MinMaxDataType", static_cast<uint32_t>(type)},
                                          {"Min", scalar(low)},
                                          {"Max", scalar(high)}});
      GraphUnderTest test;
      const uint32_t x = test.Input(WholeNumbers(input, 1)), w = test.Input(WholeNumbers(filter, 2));
      const uint32_t step = test.Input(BytesOf(std::vector<float>{1})),
                     of_result = test.Input(BytesOf(std::vector<float>{64})), at = test.Input(Bytes(4, 7));
      const uint32_t bytes =
          test.Node(convolution, {x, step, kNoValue, w, step, kNoValue, kNoValue, of_result, at})[0];
      test.Output(test.Node(clip, {bytes})[0]);
      ExpectSame(test, kernels);
    }
  }
}

// The added tensor is written after the product: both run at the addition's position.
TEST(FuseActivation, WaitsForWhatIsAdded) {
  const TensorDesc square = Packed(DataType::kFloat32, {1, 1, 4, 4});
  GraphUnderTest test;
  const uint32_t x = test.Input(WholeNumbers(square, 1)), y = test.Input(WholeNumbers(square, 2));
  const uint32_t first = test.Node(Product(square, square, square), {x, y, kNoValue})[0];
  const uint32_t second = test.Node(Product(square, square, square), {y, x, kNoValue})[0];
  const uint32_t sum = test.Node(Binary("ELEMENT_WISE_ADD", square, square, square), {first, second})[0];
  test.Output(sum);
  ExpectSame(test, 2);
}

TEST(FuseActivation, ConvolutionsTakeABiasPerChannel) {
  const TensorDesc input = Packed(DataType::kFloat32, {2, 3, 4, 5});
  const TensorDesc filter = Packed(DataType::kFloat32, {6, 3, 1, 1});
  const TensorDesc output = Packed(DataType::kFloat32, {2, 6, 4, 5});
  const OperatorDesc convolution = MakeDesc("CONVOLUTION", {{"InputTensor", input},
                                                            {"FilterTensor", filter},
                                                            {"OutputTensor", output},
                                                            {"Mode", uint32_t{1}},
                                                            {"Direction", uint32_t{0}},
                                                            {"DimensionCount", uint32_t{2}},
                                                            {"Strides", std::vector<uint32_t>{1, 1}},
                                                            {"Dilations", std::vector<uint32_t>{1, 1}},
                                                            {"StartPadding", std::vector<uint32_t>{0, 0}},
                                                            {"EndPadding", std::vector<uint32_t>{0, 0}},
                                                            {"OutputPadding", std::vector<uint32_t>{0, 0}},
                                                            {"GroupCount", uint32_t{1}}});
  const auto build = [&](const TensorDesc& added) {
    GraphUnderTest test;
    const uint32_t x = test.Input(WholeNumbers(input, 1)), w = test.Input(WholeNumbers(filter, 2));
    const uint32_t y = test.Input(WholeNumbers(added, 3));
    const uint32_t sums = test.Node(convolution, {x, w, kNoValue})[0];
    const uint32_t sum = test.Node(Binary("ELEMENT_WISE_ADD", output, added, output), {sums, y})[0];
    test.Output(test.Node(Unary("ACTIVATION_RELU", output, output), {sum})[0]);
    return test;
  };
  ExpectSame(build(Strided(DataType::kFloat32, {2, 6, 4, 5}, {0, 1, 0, 0})), 1);
  ExpectSame(build(output), 2);  // a different number for each element: the two following nodes form one
                                 // program
}

TEST(FuseActivation, OnlyWhereNobodyElseReads) {
  const TensorDesc square = Packed(DataType::kFloat32, {1, 1, 4, 4});
  GraphUnderTest test;
  const uint32_t x = test.Input(WholeNumbers(square, 1)), y = test.Input(WholeNumbers(square, 2));
  const uint32_t product = test.Node(Product(square, square, square), {x, y, kNoValue})[0];
  const uint32_t relu = test.Node(Unary("ACTIVATION_RELU", square, square), {product})[0];
  test.Output(relu);
  test.Output(product);
  ExpectSame(test, 2);
}

}  // namespace
}  // namespace anydml::testing
