// Products with a softmax between them are fused into one attention, which gives the results of the separate
// operators.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "base/half.h"
#include "graph/passes/graph_under_test.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr uint32_t kAllowHalfPrecisionFlag = 1;

struct AttentionSizes {
  uint32_t batch = 2, heads = 3, queries = 5, keys = 7, columns = 8, value_columns = 4;
};

enum class Scaling { kAlpha, kLine, kMultiply, kDivide };
enum class Masking { kNone, kAdd, kMatrix };  // kMatrix: the product's own matrix
enum class Weighing { kRows, kAxes, kFused };

struct AttentionShape {
  AttentionSizes sizes{};
  DataType type = DataType::kFloat32;
  Scaling scaling = Scaling::kAlpha;
  float scale = 0.5f;
  Masking masking = Masking::kNone;
  std::vector<uint32_t> mask_strides = {0, 0, 0, 1};  // of {batch, heads, queries, keys}
  std::vector<float> mask{};                          // none: random
  Weighing weighing = Weighing::kAxes;
  bool transposes_keys = true;   // by the product; otherwise keys are stored transposed
  bool flat = false;             // products see all heads as one dimension
  bool puts_heads_last = false;  // {batch, queries, heads, columns}
};

class AttentionGraph {
 public:
  explicit AttentionGraph(AttentionShape shape, uint32_t seed = 1) : shape_(std::move(shape)), random_(seed) {
    Build();
  }
  const GraphUnderTest& test() const { return test_; }
  GraphUnderTest& test() { return test_; }
  uint32_t logits() const { return logits_; }

 private:
  Bytes Content(const std::vector<float>& numbers) const {
    const uint64_t width = BitSize(shape_.type) / 8;
    Bytes bytes((numbers.size() * width + 3) / 4 * 4);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const Half half = ToHalf(numbers[i]);
      std::memcpy(&bytes[i * width], width == 2 ? static_cast<const void*>(&half.bits) : &numbers[i], width);
    }
    return bytes;
  }
  std::vector<float> Numbers(uint64_t count) {
    std::uniform_real_distribution<float> any(-1, 1);
    std::vector<float> numbers(count);
    for (float& number : numbers) number = any(random_);
    return numbers;
  }
  uint32_t RandomInput(const TensorDesc& tensor) {
    return test_.Input(Content(Numbers(ElementSpan(tensor))));
  }
  uint32_t ConstantNumber(float number) { return test_.Constant(Content({number})); }

  // {batch, heads, rows, columns}, or all heads as one dimension.
  std::vector<uint32_t> Matrices(uint32_t rows, uint32_t columns, bool flat) const {
    const AttentionSizes& s = shape_.sizes;
    if (flat) return {1, s.batch * s.heads, rows, columns};
    return {s.batch, s.heads, rows, columns};
  }

  void Build() {
    const AttentionSizes& s = shape_.sizes;
    const TensorDesc query = Packed(shape_.type, Matrices(s.queries, s.columns, shape_.flat));
    const TensorDesc key = shape_.transposes_keys
                               ? Packed(shape_.type, Matrices(s.keys, s.columns, shape_.flat))
                               : Packed(shape_.type, Matrices(s.columns, s.keys, shape_.flat));
    value_ = Packed(shape_.type, Matrices(s.keys, s.value_columns, shape_.flat));
    product_ = Packed(shape_.type, Matrices(s.queries, s.keys, shape_.flat));
    const TensorDesc result = Packed(shape_.type, Matrices(s.queries, s.value_columns, shape_.flat));
    logits_ = test_.Node(
        FirstProduct(query, key),
        {RandomInput(query), RandomInput(key), shape_.masking == Masking::kMatrix ? Mask() : kNoValue})[0];
    uint32_t weights = Scale(logits_);
    if (shape_.masking == Masking::kAdd) {
      const TensorDesc seen = Packed(shape_.type, Matrices(s.queries, s.keys, false));
      weights = test_.Node(MakeDesc("ELEMENT_WISE_ADD",
                                    {{"ATensor", seen}, {"BTensor", MaskTensor()}, {"OutputTensor", seen}}),
                           {weights, Mask()})[0];
    }
    if (shape_.weighing != Weighing::kFused) weights = test_.Node(Softmax(), {weights})[0];
    const uint32_t output =
        test_.Node(Product(product_, value_, result), {weights, RandomInput(value_), kNoValue})[0];
    test_.Output(shape_.puts_heads_last ? PutHeadsLast(output) : output);
    test_.graph.outputs[0].element_bytes = BitSize(shape_.type) / 8;
  }

  OperatorDesc FirstProduct(const TensorDesc& query, const TensorDesc& key) const {
    OperatorDesc desc = Product(query, key, product_, shape_.transposes_keys);
    SetField(&desc, "Beta", 1.0f);
    if (shape_.scaling == Scaling::kAlpha) SetField(&desc, "Alpha", shape_.scale);
    if (shape_.masking == Masking::kMatrix) SetField(&desc, "CTensor", MaskTensor());
    if (shape_.weighing == Weighing::kFused) {
      OperatorDesc softmax = MakeDesc("ACTIVATION_SOFTMAX1", {{"Axes", std::vector<uint32_t>{3}}});
      SetField(&desc, "FusedActivation", std::make_shared<const OperatorDesc>(std::move(softmax)));
    }
    return desc;
  }
  static void SetField(OperatorDesc* desc, const char* name, FieldValue value) {
    desc->fields[static_cast<size_t>(FindField(*desc->schema, name))] = std::move(value);
  }

  uint32_t Scale(uint32_t logits) {
    if (shape_.scaling == Scaling::kAlpha) return logits;
    if (shape_.scaling == Scaling::kLine) {
      return test_.Node(MakeDesc("ELEMENT_WISE_IDENTITY", {{"InputTensor", product_},
                                                           {"OutputTensor", product_},
                                                           {"ScaleBias", ScaleBias{shape_.scale, 0}}}),
                        {logits})[0];
    }
    TensorDesc number = product_;
    number.strides = {};
    number.total_bytes = 4;
    const bool divides = shape_.scaling == Scaling::kDivide;
    const uint32_t factor = ConstantNumber(divides ? 1 / shape_.scale : shape_.scale);
    return test_.Node(MakeDesc(divides ? "ELEMENT_WISE_DIVIDE" : "ELEMENT_WISE_MULTIPLY",
                               {{"ATensor", product_}, {"BTensor", number}, {"OutputTensor", product_}}),
                      {logits, factor})[0];
  }

  TensorDesc MaskTensor() const {
    const AttentionSizes& s = shape_.sizes;
    return Strided(shape_.type, {s.batch, s.heads, s.queries, s.keys}, shape_.mask_strides);
  }
  uint32_t Mask() {
    return shape_.mask.empty() ? RandomInput(MaskTensor()) : test_.Input(Content(shape_.mask));
  }

  OperatorDesc Softmax() const {
    if (shape_.weighing == Weighing::kAxes) {
      return MakeDesc(
          "ACTIVATION_SOFTMAX1",
          {{"InputTensor", product_}, {"OutputTensor", product_}, {"Axes", std::vector<uint32_t>{3}}});
    }
    const AttentionSizes& s = shape_.sizes;
    const TensorDesc rows = Packed(shape_.type, {1, 1, s.batch * s.heads * s.queries, s.keys});
    return MakeDesc("ACTIVATION_SOFTMAX", {{"InputTensor", rows}, {"OutputTensor", rows}});
  }

  uint32_t PutHeadsLast(uint32_t output) {
    const AttentionSizes& s = shape_.sizes;
    const uint32_t head = s.queries * s.value_columns;
    const TensorDesc from = Strided(shape_.type, {s.batch, s.queries, s.heads, s.value_columns},
                                    {s.heads * head, s.value_columns, head, 1});
    const TensorDesc to = Packed(shape_.type, {s.batch, s.queries, s.heads, s.value_columns});
    return test_.Node(MakeDesc("ELEMENT_WISE_IDENTITY", {{"InputTensor", from}, {"OutputTensor", to}}),
                      {output})[0];
  }

  AttentionShape shape_;
  std::mt19937 random_;
  GraphUnderTest test_;
  TensorDesc value_, product_;
  uint32_t logits_ = kNoValue;
};

bool IsAttention(const Result& result) {
  return result.explanation.find("are attention") != std::string::npos;
}

void ExpectNear(const Result& got, const Result& want, DataType type) {
  ASSERT_EQ(got.outputs[0].size(), want.outputs[0].size());
  const size_t width = BitSize(type) / 8;
  for (size_t i = 0; i + width <= want.outputs[0].size(); i += width) {
    float a = 0, b = 0;
    const auto read = [&](const Bytes& bytes) {
      Half half;
      float number = 0;
      std::memcpy(width == 2 ? static_cast<void*>(&half.bits) : &number, &bytes[i], width);
      return width == 2 ? ToFloat(half) : number;
    };
    a = read(got.outputs[0]), b = read(want.outputs[0]);
    if (std::isnan(a) && std::isnan(b)) continue;
    // For values up to 1: FLOAT16 logits and weights are rounded in the separate operators.
    ASSERT_NEAR(a, b, type == DataType::kFloat16 ? 0x1p-8 : 0x1p-18) << i / width << "\n" << got.explanation;
  }
}

void ExpectAttention(const AttentionShape& shape, size_t kernels = 1, uint32_t seed = 1) {
  const AttentionGraph graph(shape, seed);
  const Result want = RunGraph(graph.test(), "all");
  const Result got = RunGraph(graph.test(), "");
  EXPECT_TRUE(IsAttention(got)) << got.explanation;
  EXPECT_EQ(1 + static_cast<size_t>(std::count(got.made_of.begin(), got.made_of.end(), ',')), kernels)
      << got.explanation;
  ExpectNear(got, want, shape.type);
  const Result without = RunGraph(graph.test(), "attention");
  EXPECT_FALSE(IsAttention(without)) << without.explanation;
  ExpectNear(without, want, shape.type);
}

void ExpectNoAttention(const GraphUnderTest& test, DataType type) {
  const Result got = RunGraph(test, "");
  EXPECT_FALSE(IsAttention(got)) << got.explanation;
  ExpectNear(got, RunGraph(test, "all"), type);
}
void ExpectNoAttention(const AttentionShape& shape) {
  ExpectNoAttention(AttentionGraph(shape).test(), shape.type);
}

TEST(FuseAttention, ProductsWithSoftmax) {
  ExpectAttention({});
  ExpectAttention({.weighing = Weighing::kRows});
  ExpectAttention({.weighing = Weighing::kFused});
  ExpectAttention({.transposes_keys = false});
  ExpectAttention({.sizes = {.batch = 1, .heads = 1, .queries = 1, .keys = 1, .columns = 1}});
}

TEST(FuseAttention, Scales) {
  for (const Scaling scaling : {Scaling::kLine, Scaling::kMultiply, Scaling::kDivide}) {
    ExpectAttention({.scaling = scaling, .scale = 0.3f});
  }
}

TEST(FuseAttention, Masks) {
  const std::vector<uint32_t> strides[] = {{0, 0, 0, 1}, {0, 0, 7, 1}, {35, 0, 7, 1}, {105, 35, 7, 1},
                                           {7, 0, 0, 1}, {0, 1, 0, 0}, {0, 0, 0, 0}};
  for (const auto& mask_strides : strides) {
    ExpectAttention({.scaling = Scaling::kMultiply, .masking = Masking::kAdd, .mask_strides = mask_strides});
    ExpectAttention({.masking = Masking::kMatrix, .mask_strides = mask_strides});
  }
}

// Products have one dimension of heads, the mask has two.
TEST(FuseAttention, OtherDimensions) {
  ExpectAttention({.masking = Masking::kAdd, .mask_strides = {7, 0, 0, 1}, .flat = true});
  ExpectAttention({.masking = Masking::kAdd, .mask_strides = {35, 0, 7, 1}, .flat = true});
}

std::vector<float> CausalMask(uint32_t queries, uint32_t keys, float hidden) {
  std::vector<float> mask(uint64_t{queries} * keys);
  for (uint32_t q = 0; q < queries; ++q) {
    for (uint32_t k = 0; k < keys; ++k) mask[q * keys + k] = k > q ? hidden : 0;
  }
  return mask;
}

TEST(FuseAttention, HiddenKeys) {
  for (const float hidden : {-kInfinity, std::numeric_limits<float>::lowest(), -10000.0f}) {
    AttentionShape shape = {.masking = Masking::kAdd, .mask_strides = {0, 0, 7, 1}};
    shape.mask = CausalMask(5, 7, hidden);
    ExpectAttention(shape);
    // A query that sees no key.
    std::fill_n(shape.mask.begin() + 14, 7, hidden);
    ExpectAttention(shape);
  }
}

TEST(FuseAttention, WritesInTheOrderOfACopy) {
  ExpectAttention({.puts_heads_last = true});
  ExpectAttention({.masking = Masking::kAdd, .puts_heads_last = true});
}

TEST(FuseAttention, HalvesAreRoundedWhereAdditionsRoundThem) {
  const DataType half = DataType::kFloat16;
  ExpectAttention({.type = half});
  ExpectAttention({.type = half, .scaling = Scaling::kMultiply, .scale = 0.125f});
  ExpectNoAttention({.type = half, .scaling = Scaling::kMultiply, .scale = 0.3f});
  ExpectNoAttention({.type = half, .masking = Masking::kAdd});
  ExpectNoAttention({.type = half, .masking = Masking::kMatrix});
  const AttentionGraph graph({.type = half, .masking = Masking::kAdd});
  LowerContext allows;
  allows.execution_flags = kAllowHalfPrecisionFlag;
  const Result late = RunGraph(graph.test(), "", allows);
  EXPECT_TRUE(IsAttention(late)) << late.explanation;
  ExpectNear(late, RunGraph(graph.test(), "all"), half);
}

TEST(FuseAttention, LogitsThatOthersReadStay) {
  AttentionGraph graph({});
  graph.test().Output(graph.logits());
  const Result got = RunGraph(graph.test(), "");
  EXPECT_FALSE(IsAttention(got)) << got.explanation;
  EXPECT_EQ(got.outputs, RunGraph(graph.test(), "all").outputs);
}

// One row of logits; a step reads two tensors with sizes `seen`; attention in separate operators.
GraphUnderTest RowOfLogits(const TensorDesc& seen, const TensorDesc& other) {
  GraphUnderTest test;
  const auto numbers = [&](uint64_t count) {
    Bytes bytes(count * 4);
    for (uint64_t i = 0; i < count; ++i) {
      const float number = static_cast<float>(i % 7) / 8;
      std::memcpy(&bytes[i * 4], &number, 4);
    }
    return test.Input(bytes);
  };
  const auto product = [&](const TensorDesc& a, const TensorDesc& b, const TensorDesc& output,
                           uint32_t from) {
    return test.Node(Product(a, b, output), {from, numbers(ElementCount(b)), kNoValue})[0];
  };
  const TensorDesc row = Packed(DataType::kFloat32, {1, 16}), query = Packed(DataType::kFloat32, {1, 8});
  const uint32_t logits = product(query, Packed(DataType::kFloat32, {8, 16}), row, numbers(8));
  const uint32_t sum =
      test.Node(MakeDesc("ELEMENT_WISE_ADD", {{"ATensor", seen}, {"BTensor", other}, {"OutputTensor", seen}}),
                {logits, numbers(ElementCount(other))})[0];
  const uint32_t weights =
      test.Node(MakeDesc("ACTIVATION_SOFTMAX1",
                         {{"InputTensor", row}, {"OutputTensor", row}, {"Axes", std::vector<uint32_t>{1}}}),
                {sum})[0];
  test.Output(product(row, Packed(DataType::kFloat32, {16, 8}), query, weights));
  test.graph.outputs[0].element_bytes = 4;
  return test;
}

TEST(FuseAttention, MasksOfOneDimensionStay) {
  const TensorDesc line = Packed(DataType::kFloat32, {16});
  ExpectNoAttention(RowOfLogits(line, line), DataType::kFloat32);
}

TEST(FuseAttention, LogitsWhoseBitsAreAddedAsIntegersStay) {
  const TensorDesc integers = Packed(DataType::kInt32, {1, 16});
  ExpectNoAttention(RowOfLogits(integers, integers), DataType::kFloat32);
}

TEST(FuseAttention, ReadersWithoutTheirFirstTensors) {
  GraphUnderTest test;
  const TensorDesc product = Packed(DataType::kFloat32, {1, 1, 4, 12});
  const auto input = [&](const TensorDesc& tensor) { return test.Input(Bytes(tensor.total_bytes)); };
  const TensorDesc a = Packed(DataType::kFloat32, {1, 1, 4, 2}),
                   b = Packed(DataType::kFloat32, {1, 1, 2, 12});
  const uint32_t stacked = test.Node(Product(a, b, product), {input(a), input(b), kNoValue})[0];
  std::vector<uint32_t> inputs(11, kNoValue);
  inputs[5] = stacked;
  const OperatorDesc attention = MakeDesc(
      "MULTIHEAD_ATTENTION", {{"StackedQueryKeyValueTensor", Packed(DataType::kFloat32, {1, 2, 2, 3, 4})},
                              {"OutputTensor", Packed(DataType::kFloat32, {1, 2, 8})},
                              {"Scale", 0.5f},
                              {"MaskFilterValue", -10000.0f},
                              {"HeadCount", uint32_t{2}},
                              {"MaskType", uint32_t{0}}});
  test.Output(test.Node(attention, inputs)[0]);
  test.graph.outputs[0].element_bytes = 4;
  ExpectNear(RunGraph(test, ""), RunGraph(test, "all"), DataType::kFloat32);
}

TEST(FuseAttention, Random) {
  std::mt19937 random(7);
  const auto below = [&](uint32_t end) { return static_cast<uint32_t>(random() % end); };
  for (uint32_t seed = 1; seed <= 40 && !HasFailure(); ++seed) {
    AttentionShape shape;
    shape.sizes = {1 + below(3), 1 + below(4), 1 + below(40), 1 + below(70), 1 + below(40), 1 + below(40)};
    shape.scale = 1.0f / static_cast<float>(1 + below(8));
    shape.scaling = static_cast<Scaling>(below(4));
    shape.masking = static_cast<Masking>(below(3));
    shape.weighing = static_cast<Weighing>(below(3));
    shape.transposes_keys = below(2) == 0;
    shape.flat = below(2) == 0 && shape.masking != Masking::kMatrix && shape.weighing != Weighing::kFused;
    shape.puts_heads_last = below(2) == 0 && !shape.flat;
    if (shape.weighing == Weighing::kFused) {
      // Nothing can be fused between the product and its softmax.
      shape.scaling = Scaling::kAlpha;
      if (shape.masking == Masking::kAdd) shape.masking = Masking::kMatrix;
    } else if (shape.masking == Masking::kMatrix) {
      shape.scaling = Scaling::kAlpha;
    }
    const AttentionSizes& s = shape.sizes;
    const uint32_t strides[] = {s.heads * s.queries * s.keys, s.queries * s.keys, s.keys, 1};
    for (uint32_t d = 0; d < 4; ++d) shape.mask_strides[d] = below(3) == 0 ? 0 : strides[d];
    SCOPED_TRACE(seed);
    ExpectAttention(shape, 1, seed);
  }
}

}  // namespace
}  // namespace anydml::testing
