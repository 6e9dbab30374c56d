// Products and convolutions of integers against sums computed by hand.
#include <gtest/gtest.h>

#include <map>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Sizes = std::vector<uint32_t>;

// A tensor with its elements.
struct Content {
  TensorDesc tensor;
  Bytes bytes;
};

template <typename T>
Content Of(DataType type, const Sizes& sizes, const std::vector<T>& elements) {
  const TensorDesc tensor = Packed(type, sizes);
  return {tensor, Scattered(tensor, elements)};
}
Content U8(const Sizes& sizes, const std::vector<uint8_t>& elements) {
  return Of(DataType::kUInt8, sizes, elements);
}
Content I8(const Sizes& sizes, const std::vector<int8_t>& elements) {
  return Of(DataType::kInt8, sizes, elements);
}
Content I32(const Sizes& sizes, const std::vector<int32_t>& elements) {
  return Of(DataType::kInt32, sizes, elements);
}
Content F32(const Sizes& sizes, const std::vector<float>& elements) {
  return Of(DataType::kFloat32, sizes, elements);
}

struct Problem {
  OperatorDesc desc;
  std::vector<Bytes> inputs;
};

Problem Make(const char* name, const std::map<std::string, Content>& inputs, const TensorDesc& output,
             std::initializer_list<std::pair<const char*, FieldValue>> attributes = {}) {
  Problem problem = {MakeDesc(name, attributes), {}};
  const auto field = [&](const std::string& tensor) -> FieldValue& {
    return problem.desc.fields[static_cast<size_t>(FindField(*problem.desc.schema, tensor.c_str()))];
  };
  field("OutputTensor") = output;
  for (const FieldSchema& schema : problem.desc.schema->fields) {
    if (schema.kind != FieldKind::kInput) continue;
    const auto given = inputs.find(schema.name);
    problem.inputs.emplace_back();
    if (given == inputs.end()) continue;
    field(schema.name) = given->second.tensor;
    problem.inputs.back() = given->second.bytes;
  }
  return problem;
}

template <typename T>
std::vector<T> Output(const Problem& problem) {
  const RunResult result = ExpectAllAgree(problem.desc, problem.inputs);
  return Gathered<T>(*problem.desc.tensor("OutputTensor"), result.outputs[0]);
}

TEST(MatrixMultiplyInteger, ZeroPointsOfRowsAndColumns) {
  // {{0, 1}, {2, 3}} x {{-2, 3}, {2, -3}}
  const Problem problem = Make("MATRIX_MULTIPLY_INTEGER",
                               {{"ATensor", U8({2, 2}, {1, 2, 12, 13})},
                                {"AZeroPointTensor", U8({2, 1}, {1, 10})},
                                {"BTensor", I8({2, 2}, {-1, 2, 3, -4})},
                                {"BZeroPointTensor", I8({1, 2}, {1, -1})}},
                               Packed(DataType::kInt32, {2, 2}));
  EXPECT_EQ(Output<int32_t>(problem), (std::vector<int32_t>{2, -3, 2, -3}));
}

TEST(MatrixMultiplyInteger, WhereParametersLie) {
  const auto message = [](const Sizes& a_zero, const Sizes& b_zero) {
    const OperatorDesc desc =
        MakeDesc("MATRIX_MULTIPLY_INTEGER", {{"ATensor", Packed(DataType::kUInt8, {1, 1, 3, 2})},
                                             {"AZeroPointTensor", Packed(DataType::kUInt8, a_zero)},
                                             {"BTensor", Packed(DataType::kInt8, {1, 1, 2, 4})},
                                             {"BZeroPointTensor", Packed(DataType::kInt8, b_zero)},
                                             {"OutputTensor", Packed(DataType::kInt32, {1, 1, 3, 4})}});
    return ImplementationOf(desc).check(desc, kLatestFeatureLevel).message();
  };
  for (const Sizes& rows : {Sizes{1, 1, 3, 1}, Sizes{1, 3, 1}, Sizes{3, 1}, Sizes{3}, Sizes{1}}) {
    EXPECT_EQ(message(rows, {1, 1, 1, 4}), "");
  }
  for (const Sizes& columns : {Sizes{1, 1, 4}, Sizes{1, 4}, Sizes{4}, Sizes{1, 1}}) {
    EXPECT_EQ(message({1, 1, 3, 1}, columns), "");
  }
  EXPECT_EQ(message({1, 1, 1, 3}, {1}),
            "MATRIX_MULTIPLY_INTEGER: AZeroPointTensor.Sizes is {1,1,1,3} but must be all 1, or 3 in "
            "dimension 2: one number for all or one for each row");
  EXPECT_EQ(message({1}, {1, 1, 4, 1}),
            "MATRIX_MULTIPLY_INTEGER: BZeroPointTensor.Sizes is {1,1,4,1} but must be all 1, or 4 in "
            "dimension 3: one number for all or one for each column");
  EXPECT_NE(message({3, 1, 1, 1}, {1}), "");
  EXPECT_NE(message({1, 1, 2, 1}, {1}), "");
}

TEST(MatrixMultiplyInteger, SumsWrap) {
  const uint32_t k = 70000;  // 70000 * 255 * 255 exceeds 2^32 by 256782704
  const Problem problem = Make("MATRIX_MULTIPLY_INTEGER",
                               {{"ATensor", U8({1, k}, std::vector<uint8_t>(k, 255))},
                                {"BTensor", U8({k, 1}, std::vector<uint8_t>(k, 255))}},
                               Packed(DataType::kInt32, {1, 1}));
  EXPECT_EQ(Output<int32_t>(problem), (std::vector<int32_t>{256782704}));
}

TEST(MatrixMultiplyInteger, TheLargestMagnitudes) {
  // 0 and 255 minus 255 and 0, -128 and 127 minus 127 and -128.
  const uint32_t k = 1001;
  const Problem problem = Make("MATRIX_MULTIPLY_INTEGER",
                               {{"ATensor", U8({2, k},
                                               [] {
                                                 std::vector<uint8_t> rows(2 * k, 0);
                                                 std::fill(rows.begin() + k, rows.end(), 255);
                                                 return rows;
                                               }())},
                                {"AZeroPointTensor", U8({2, 1}, {255, 0})},
                                {"BTensor", I8({k, 2},
                                               [] {
                                                 std::vector<int8_t> columns(2 * k);
                                                 for (size_t i = 0; i < columns.size(); ++i)
                                                   columns[i] = i % 2 == 0 ? -128 : 127;
                                                 return columns;
                                               }())},
                                {"BZeroPointTensor", I8({1, 2}, {127, -128})}},
                               Packed(DataType::kInt32, {2, 2}));
  const int32_t most = 255 * 255 * static_cast<int32_t>(k);
  EXPECT_EQ(Output<int32_t>(problem), (std::vector<int32_t>{most, -most, -most, most}));
}

// Row and column sums for zero points: over so many bytes that 16 bits overflow, and for more columns than
// are summed at one time.
TEST(MatrixMultiplyInteger, SumsOfManyBytes) {
  const uint32_t m = 7, n = 530;
  for (const uint32_t k : {15u, 256u, 4111u}) {
    SCOPED_TRACE(k);
    std::vector<uint8_t> a(m * k), b(k * n);
    for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<uint8_t>(255 - i % 5);
    for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<uint8_t>(255 - i % 7);
    const auto expect_agree = [&](const auto& of) {
      const Problem problem = Make("MATRIX_MULTIPLY_INTEGER",
                                   {{"ATensor", of({m, k}, a)},
                                    {"AZeroPointTensor", of({1, 1}, {3})},
                                    {"BTensor", of({k, n}, b)},
                                    {"BZeroPointTensor", of({1, 1}, {100})}},
                                   Packed(DataType::kInt32, {m, n}));
      ExpectAllAgree(problem.desc, problem.inputs);
    };
    expect_agree(U8);
    expect_agree([](const Sizes& sizes, const std::vector<uint8_t>& bytes) {
      return I8(sizes, {bytes.begin(), bytes.end()});
    });
  }
}

TEST(MatrixMultiplyIntegerToFloat, ScalesAndBias) {
  const Problem problem = Make("MATRIX_MULTIPLY_INTEGER_TO_FLOAT",
                               {{"ATensor", U8({1, 2}, {1, 2})},
                                {"AScaleTensor", F32({1, 1}, {0.5f})},
                                {"BTensor", I8({2, 2}, {3, -3, 4, -4})},
                                {"BScaleTensor", F32({1, 2}, {0.25f, 2})},
                                {"BiasTensor", F32({1, 2}, {1, 0})}},
                               Packed(DataType::kFloat32, {1, 2}));
  EXPECT_EQ(Output<float>(problem), (std::vector<float>{2.375f, -11}));
}

TEST(QuantizedLinearMatrixMultiply, RoundsToEvenAndSaturates) {
  // Sums 11, 9, 1000 and -1000, halved: 5.5, 4.5, 500 and -500.
  const Problem problem = Make("QUANTIZED_LINEAR_MATRIX_MULTIPLY",
                               {{"ATensor", I8({1, 1}, {1})},
                                {"AScaleTensor", F32({1, 1}, {0.5f})},
                                {"BTensor", I8({1, 4}, {11, 9, 125, -125})},
                                {"BScaleTensor", F32({1, 4}, {1, 1, 8, 8})},
                                {"OutputScaleTensor", F32({1, 1}, {1})},
                                {"OutputZeroPointTensor", I8({1, 1}, {3})}},
                               Packed(DataType::kInt8, {1, 4}));
  EXPECT_EQ(Output<int8_t>(problem), (std::vector<int8_t>{9, 7, 127, -128}));
}

TEST(ConvolutionInteger, PaddingIsTheZeroPoint) {
  const Problem problem = Make("CONVOLUTION_INTEGER",
                               {{"InputTensor", U8({1, 1, 2, 2}, {1, 2, 3, 4})},
                                {"InputZeroPointTensor", U8({1, 1, 1, 1}, {5})},
                                {"FilterTensor", I8({1, 1, 2, 2}, {1, 2, 3, 4})},
                                {"FilterZeroPointTensor", I8({1, 1, 1, 1}, {1})}},
                               Packed(DataType::kInt32, {1, 1, 3, 3}),
                               {{"DimensionCount", 2u},
                                {"Strides", Sizes{1, 1}},
                                {"Dilations", Sizes{1, 1}},
                                {"StartPadding", Sizes{1, 1}},
                                {"EndPadding", Sizes{1, 1}},
                                {"GroupCount", 1u}});
  // The input is {{-4, -3}, {-2, -1}}, the filter {{0, 1}, {2, 3}}.
  EXPECT_EQ(Output<int32_t>(problem), (std::vector<int32_t>{-12, -17, -6, -10, -10, -2, -2, -1, 0}));
}

TEST(QuantizedLinearConvolution, BiasScalesAndGroups) {
  // Two channels, each with a filter of one number: sums {10, 20} * 2 + 1 and {30, 40} * -3 - 1; a quarter of
  // them is 5.25, 10.25, -22.75 and -30.25.
  const Problem problem = Make("QUANTIZED_LINEAR_CONVOLUTION",
                               {{"InputTensor", I8({1, 2, 1, 2}, {10, 20, 30, 40})},
                                {"InputScaleTensor", F32({1, 1, 1, 1}, {0.5f})},
                                {"FilterTensor", I8({2, 1, 1, 1}, {2, -3})},
                                {"FilterScaleTensor", F32({1, 2, 1, 1}, {0.5f, 0.5f})},
                                {"BiasTensor", I32({1, 2, 1, 1}, {1, -1})},
                                {"OutputScaleTensor", F32({1, 1, 1, 1}, {1})},
                                {"OutputZeroPointTensor", U8({1, 1, 1, 1}, {25})}},
                               Packed(DataType::kUInt8, {1, 2, 1, 2}),
                               {{"DimensionCount", 2u},
                                {"Strides", Sizes{1, 1}},
                                {"Dilations", Sizes{1, 1}},
                                {"StartPadding", Sizes{0, 0}},
                                {"EndPadding", Sizes{0, 0}},
                                {"GroupCount", 2u}});
  EXPECT_EQ(Output<uint8_t>(problem), (std::vector<uint8_t>{30, 35, 2, 0}));
}

TEST(MatrixMultiplyInteger, OwnedOperandsArePackedWithTheirZeroPoints) {
  Problem problem = Make("MATRIX_MULTIPLY_INTEGER",
                         {{"ATensor", U8({1, 2}, {1, 2})},
                          {"BTensor", I8({2, 2}, {3, 4, 5, 6})},
                          {"BZeroPointTensor", I8({1, 2}, {1, 2})}},
                         Packed(DataType::kInt32, {1, 2}));
  const auto own = [&](const char* name) {
    auto& field = problem.desc.fields[static_cast<size_t>(FindField(*problem.desc.schema, name))];
    std::get<TensorDesc>(field).owned_by_dml = true;
  };
  const auto packs = [&] {
    LoweredOperator lowered;
    EXPECT_TRUE(LowerOperator(ImplementationOf(problem.desc), problem.desc, {}, &lowered).ok());
    return lowered.kernel->persistent_bytes() != 0;
  };
  const std::vector<int32_t> expected = {1 * 2 + 2 * 4, 1 * 2 + 2 * 4};
  own("BTensor");
  EXPECT_FALSE(packs());
  EXPECT_EQ(Output<int32_t>(problem), expected);
  own("BZeroPointTensor");
  EXPECT_TRUE(packs());
  EXPECT_EQ(Output<int32_t>(problem), expected);
}

}  // namespace
}  // namespace anydml::testing
