// Where the schema deviates from the pages' tables, and why; checks that it does so at these levels.
#include "check.h"

namespace anydml::testing {
namespace {

constexpr uint32_t Bit(DataType type) { return 1u << static_cast<uint32_t>(type); }
constexpr uint32_t kF = Bit(DataType::kFloat32) | Bit(DataType::kFloat16);
constexpr uint32_t kBytes = Bit(DataType::kInt8) | Bit(DataType::kUInt8);
constexpr uint32_t kI32 = Bit(DataType::kInt32);
constexpr uint32_t kU32 = Bit(DataType::kUInt32);
constexpr uint32_t kA8 = kF | kBytes | kI32 | kU32 | Bit(DataType::kInt16) | Bit(DataType::kUInt16);
constexpr uint32_t kA10 = kA8 | Bit(DataType::kInt64) | Bit(DataType::kUInt64);
constexpr uint32_t kA11 = kA10 | Bit(DataType::kFloat64);

struct Correction {
  OperatorType type;
  const char* tensor;
  FeatureLevel level;
  uint32_t types;  // exactly these
  uint32_t min_dimensions, max_dimensions;
  const char* why;
};

using enum OperatorType;
constexpr Correction kCorrections[] = {
    {kAdamOptimizer, "TrainingStepTensor", 0x3000, kU32, 4, 4, "the page's field text; its table has F"},
    {kAdamOptimizer, "TrainingStepTensor", 0x4000, kU32, 1, 8, "history 4.0: 8 dimensions"},
    {kAdamOptimizer, "GradientTensor", 0x3100, kF, 4, 4, "history 4.0: not before"},
    {kAdamOptimizer, "GradientTensor", 0x4000, kF, 1, 8, "history 4.0: 8 dimensions"},
    {kMultiheadAttention1, "PastSequenceLengthsTensor", 0x6300, kI32, 1, 5,
     "lengths; onnxruntime sends INT32"},
    {kFold, "InputTensor", 0x6400, kA11, 3, 8,
     "the page's column is empty; onnxruntime's Col2Im: all scalars"},
    {kUnfold, "InputTensor", 0x6400, kA11, 3, 8, "as FOLD"},
    {kElementWiseIf, "ATensor", 0x2000, kF, 4, 4, "the page forgets FLOAT32"},
    {kElementWiseIf, "ATensor", 0x2100, kA8, 4, 4, "history 2.1: integers"},
    {kElementWiseIf, "ConditionTensor", 0x2100, Bit(DataType::kUInt8), 4, 4,
     "only the values got more types"},
    {kElementWiseIf, "ATensor", 0x3000, kA8, 1, 8, "the page"},
    {kElementWiseConstantPow, "InputTensor", 0x2100, kF, 4, 4, "the page"},
    {kElementWiseConstantPow, "InputTensor", 0x3000, kA8, 1, 8, "history 3.0: integers, as POW"},
    {kJoin, "InputTensors", 0x3000, kA8, 4, 5, "the page"},
    {kJoin, "InputTensors", 0x3100, kA8, 1, 8, "history 3.1: 8 dimensions"},
    {kJoin, "InputTensors", 0x4100, kA11, 1, 8, "the page"},
    {kTile, "InputTensor", 0x4000, kA8, 1, 8, "the page"},
    {kTile, "InputTensor", 0x4100, kA11, 1, 8, "the page lacks FLOAT64, which onnxruntime registers"},
    {kCast, "InputTensor", 0x1000, kA8, 4, 4, "the page lacks the 32-bit integers that its neighbours have"},
    {kCast, "OutputTensor", 0x1000, kA8, 4, 4, "the page lacks the 32-bit integers that its neighbours have"},
    {kCast, "InputTensor", 0x3000, kA10, 4, 4, "the page"},
    {kTopK, "InputTensor", 0x1000, kF, 4, 4, "the header has it at 1.0; the page begins at 2.0"},
    {kTopK, "InputTensor", 0x2000, kF, 4, 4, "the page"},
    {kTopK, "InputTensor", 0x2100, kA8, 4, 4, "the page"},
    {kMaxUnpooling, "InputTensor", 0x2000, kF, 4, 4, "the header has it at 2.0; the page begins at 3.0"},
    {kMaxUnpooling, "IndicesTensor", 0x4100, kU32, 4, 4, "the page"},
    {kScatterElements, "InputTensor", 0x2000, kF, 4, 4, "the header has it at 2.0; the page begins at 1.0"},
    {kScatterElements, "InputTensor", 0x2100, kA8, 4, 4, "the page"},
    {kActivationShrink, "InputTensor", 0x2000, kF, 4, 5, "the page"},
    {kActivationShrink, "InputTensor", 0x2100, kA8, 4, 5, "history 2.1: integers; the page has them at 5.1"},
    {kActivationShrink, "InputTensor", 0x3000, kA8, 1, 8, "history 2.1"},
    {kActivationReluGrad, "InputTensor", 0x3000, kF, 4, 4, "history 3.1: 4 before; the page has 8 at once"},
    {kActivationReluGrad, "InputTensor", 0x3100, kF, 1, 8, "history 3.1"},
    {kMaxPoolingGrad, "InputTensor", 0x3000, kF, 4, 4, "the page"},
    {kMaxPoolingGrad, "InputTensor", 0x4000, kF, 4, 5, "the page's table, not its text"},
    {kResample, "InputTensor", 0x6200, kF | kBytes, 1, 4, "the page; history 6.2 has only RESAMPLE2"},
};

TEST(Corrections, TypesAndDimensionCounts) {
  for (const Correction& expected : kCorrections) {
    const OperatorSchema& schema = *FindOperator(expected.type);
    const auto field = static_cast<size_t>(FindField(schema, expected.tensor));
    SCOPED_TRACE(std::string(schema.name) + ' ' + expected.tensor + " at " +
                 FeatureLevelName(expected.level) + ": " + expected.why);
    for (uint32_t type = 1; type < kDataTypeCount; ++type) {
      DescBuilder builder(schema, expected.level);
      builder.SetDataType(field, type);
      EXPECT_EQ(Check(builder, expected.level).ok(), (expected.types >> type & 1u) != 0)
          << Name(static_cast<DataType>(type));
    }
    for (uint32_t rank = 1; rank <= 8; ++rank) {
      DescBuilder builder(schema, expected.level);
      builder.SetSizes(field, std::vector<uint32_t>(rank, 1));
      EXPECT_EQ(Check(builder, expected.level).ok(),
                rank >= expected.min_dimensions && rank <= expected.max_dimensions)
          << rank;
    }
  }
}

TEST(Corrections, InPlace) {
  EXPECT_TRUE(FindOperator(kActivationSwish)->in_place);            // the page; the original schema: no
  EXPECT_TRUE(FindOperator(kActivationHardSwish)->in_place);        // likewise
  EXPECT_FALSE(FindOperator(kElementWiseIsInfinity)->in_place);     // output elements are smaller
  EXPECT_FALSE(FindOperator(kElementWiseIsNan)->in_place);          // the page
  EXPECT_TRUE(FindOperator(kElementWiseLogicalAnd)->in_place);      // the page
  EXPECT_FALSE(FindOperator(kElementWiseLogicalEquals)->in_place);  // the page
  EXPECT_TRUE(FindOperator(kAdamOptimizer)->in_place);              // the page
}

// History 6.2: before, only DML_OPERATOR_ELEMENT_WISE_(DE)QUANTIZE_LINEAR with a zero point.
TEST(Corrections, ZeroPointsBecomeOptional) {
  for (const OperatorType type : {kElementWiseQuantizeLinear, kElementWiseDequantizeLinear}) {
    const OperatorSchema& schema = *FindOperator(type);
    DescBuilder builder(schema, 0x6100);
    builder.field("ZeroPointTensor").null = true;
    EXPECT_EQ(Check(builder, 0x6100).message(),
              std::string(schema.name) +
                  ": ZeroPointTensor is null; it is required at feature level 6.1; "
                  "DML_FEATURE_LEVEL_6_2 allows it");
    EXPECT_TRUE(IsOk(Check(builder, 0x6200)));
  }
  // The page of RNN calls it optional, the header does not.
  DescBuilder rnn(*FindOperator(kRnn), 0x6400);
  rnn.field("RecurrenceTensor").null = true;
  EXPECT_EQ(Check(rnn, 0x6400).message(), "RNN: RecurrenceTensor is null; it is required");
}

// onnxruntime's Cast leaves MinMaxDataType 0; elsewhere the field is tied to the tensors, even if it is 0.
TEST(Corrections, UnknownMeansTheTensorsType) {
  for (const OperatorType type : {kElementWiseClip1, kElementWiseClipGrad1}) {
    for (const FeatureLevel level : {0x5000u, 0x6400u}) {
      DescBuilder builder(*FindOperator(type), level);
      builder.SetDataType(0, static_cast<uint32_t>(DataType::kUInt8));
      builder.SetWord("MinMaxDataType", 0);
      EXPECT_TRUE(IsOk(Check(builder, level)));
      builder.SetWord("MinMaxDataType", static_cast<uint32_t>(DataType::kInt8));
      const std::string op = FindOperator(type)->name;
      EXPECT_EQ(Check(builder, level).message(),
                op + ": MinMaxDataType is INT8 but InputTensor.DataType is UINT8; they must be the same");
    }
  }
  DescBuilder padding(*FindOperator(kPadding1), 0x6400);
  padding.SetWord("PaddingValueDataType", 0);
  EXPECT_TRUE(IsInvalid(Check(padding, 0x6400), "PADDING1: PaddingValueDataType is 0, allowed at"));
}

// onnxruntime's tests of MatMulIntegerToFloat mix signs on DirectML; the page requires one type.
TEST(Corrections, IntegerMatricesMayDifferInType) {
  DescBuilder builder(*FindOperator(kMatrixMultiplyIntegerToFloat), 0x6200);
  builder.SetDataType(static_cast<size_t>(FindField(builder.schema(), "ATensor")), 5);  // UINT8
  builder.SetDataType(static_cast<size_t>(FindField(builder.schema(), "BTensor")), 8);  // INT8
  EXPECT_TRUE(IsOk(Check(builder, 0x6200)));
  builder.tensor("AZeroPointTensor").SetDataType(8);
  EXPECT_TRUE(IsInvalid(Check(builder, 0x6200),
                        "MATRIX_MULTIPLY_INTEGER_TO_FLOAT: AZeroPointTensor.DataType is INT8 but ATensor"));
}

// The pages require one DimensionCount but show {1,9,4} and {1,1,4,4}.
TEST(Corrections, ColumnsHaveFewerDimensionsThanImages) {
  for (const auto& [type, columns] : {std::pair{kFold, "InputTensor"}, std::pair{kUnfold, "OutputTensor"}}) {
    DescBuilder builder(*FindOperator(type), 0x6400);
    builder.tensor("InputTensor").SetSizes({1, 1, 4, 4});
    builder.tensor("OutputTensor").SetSizes({1, 1, 4, 4});
    builder.tensor(columns).SetSizes({1, 9, 4});
    EXPECT_TRUE(IsOk(Check(builder, 0x6400))) << builder.schema().name;
  }
}

// The page of REDUCE: types match, except for ARGMIN and ARGMAX.
TEST(Corrections, ReduceKeepsItsType) {
  constexpr uint32_t kArgMax = 0, kArgMin = 1, kSum = 10;
  const auto reduce = [](uint32_t function, FeatureLevel level) {
    DescBuilder builder(*FindOperator(kReduce), level, function);
    builder.tensor("InputTensor").SetDataType(static_cast<uint32_t>(DataType::kFloat32));
    builder.tensor("OutputTensor").SetDataType(static_cast<uint32_t>(DataType::kUInt32));
    return Check(builder, level);
  };
  for (const FeatureLevel level : {0x2100u, 0x6400u}) {
    EXPECT_TRUE(IsOk(reduce(kArgMax, level)));
    EXPECT_TRUE(IsOk(reduce(kArgMin, level)));
    EXPECT_EQ(reduce(kSum, level).message(),
              "REDUCE: OutputTensor.DataType is UINT32 but InputTensor.DataType is FLOAT32; they must be the "
              "same");
  }
}

// Their formulas have a result for every element of the input.
TEST(Corrections, SizesOfInputAndOutputAreTheSame) {
  for (const OperatorType type :
       {kMeanVarianceNormalization1, kMeanVarianceNormalization2, kDiagonalMatrix1}) {
    const OperatorSchema& schema = *FindOperator(type);
    DescBuilder builder(schema, schema.level);
    std::vector<uint32_t> sizes = *builder.tensor("OutputTensor").sizes;
    sizes[0] = 1;
    builder.tensor("OutputTensor").SetSizes(sizes);
    EXPECT_TRUE(
        IsInvalid(Check(builder, schema.level), std::string(schema.name) + ": OutputTensor.Sizes is"));
  }
}

}  // namespace
}  // namespace anydml::testing
