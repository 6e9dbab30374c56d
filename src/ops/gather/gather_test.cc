// The gather operators against the examples of DirectML's pages and results computed by hand, and error
// messages.
#include <gtest/gtest.h>

#include <limits>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Floats = std::vector<float>;
using Sizes = std::vector<uint32_t>;

OperatorDesc Gather(const TensorDesc& input, const TensorDesc& indices, const TensorDesc& output,
                    uint32_t axis, uint32_t index_dimensions) {
  return MakeDesc("GATHER", {{"InputTensor", input},
                             {"IndicesTensor", indices},
                             {"OutputTensor", output},
                             {"Axis", axis},
                             {"IndexDimensions", index_dimensions}});
}

OperatorDesc GatherElements(const TensorDesc& input, const TensorDesc& indices, const TensorDesc& output,
                            uint32_t axis) {
  return MakeDesc(
      "GATHER_ELEMENTS",
      {{"InputTensor", input}, {"IndicesTensor", indices}, {"OutputTensor", output}, {"Axis", axis}});
}

OperatorDesc GatherNd(const TensorDesc& input, const TensorDesc& indices, const TensorDesc& output,
                      uint32_t input_dimensions, uint32_t indices_dimensions) {
  return MakeDesc("GATHER_ND", {{"InputTensor", input},
                                {"IndicesTensor", indices},
                                {"OutputTensor", output},
                                {"InputDimensionCount", input_dimensions},
                                {"IndicesDimensionCount", indices_dimensions}});
}

OperatorDesc GatherNd1(const TensorDesc& input, const TensorDesc& indices, const TensorDesc& output,
                       uint32_t input_dimensions, uint32_t indices_dimensions, uint32_t batches) {
  return MakeDesc("GATHER_ND1", {{"InputTensor", input},
                                 {"IndicesTensor", indices},
                                 {"OutputTensor", output},
                                 {"InputDimensionCount", input_dimensions},
                                 {"IndicesDimensionCount", indices_dimensions},
                                 {"BatchDimensionCount", batches}});
}

TensorDesc F32(const Sizes& sizes) { return Packed(DataType::kFloat32, sizes); }
TensorDesc U32(const Sizes& sizes) { return Packed(DataType::kUInt32, sizes); }
TensorDesc I32(const Sizes& sizes) { return Packed(DataType::kInt32, sizes); }

Floats Counted(size_t count) {
  Floats values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return values;
}

Floats Values(const OperatorDesc& desc, const std::vector<Bytes>& inputs) {
  const RunResult result = ExpectAllAgree(desc, inputs);
  EXPECT_TRUE(result.data_errors.empty());
  return Gathered<float>(*desc.tensor("OutputTensor"), result.outputs[0]);
}

TEST(Gather, Rows) {
  const TensorDesc input = F32({4, 3}), indices = U32({1, 2}), output = F32({2, 3});
  EXPECT_EQ(Values(Gather(input, indices, output, 0, 1),
                   {Scattered(input, Counted(12)), Scattered<uint32_t>(indices, {3, 1})}),
            (Floats{9, 10, 11, 3, 4, 5}));
}

TEST(Gather, Columns) {
  const TensorDesc input = F32({2, 3}), indices = U32({1, 4}), output = F32({2, 4});
  EXPECT_EQ(Values(Gather(input, indices, output, 1, 1),
                   {Scattered(input, Counted(6)), Scattered<uint32_t>(indices, {2, 0, 1, 2})}),
            (Floats{2, 0, 1, 2, 5, 3, 4, 5}));
}

TEST(Gather, IndicesOfTwoDimensions) {
  const TensorDesc input = F32({1, 3, 2}), indices = I32({1, 2, 2}), output = F32({2, 2, 2});
  EXPECT_EQ(Values(Gather(input, indices, output, 1, 2),
                   {Scattered(input, Counted(6)), Scattered<int32_t>(indices, {0, 1, 1, -1})}),
            (Floats{0, 1, 2, 3, 2, 3, 4, 5}));
}

// ONNX Runtime sends indices without dimensions this way: the axis vanishes, and a 1 is added on the left.
TEST(Gather, AScalarIndex) {
  const TensorDesc input = F32({2, 3}), indices = U32({1, 1}), output = F32({1, 2});
  EXPECT_EQ(Values(Gather(input, indices, output, 1, 0),
                   {Scattered(input, Counted(6)), Scattered<uint32_t>(indices, {1})}),
            (Floats{1, 4}));
}

TEST(GatherElements, PageExample) {
  const TensorDesc input = F32({3, 3}), indices = U32({2, 3}), output = F32({2, 3});
  EXPECT_EQ(
      Values(GatherElements(input, indices, output, 0), {Scattered<float>(input, {1, 2, 3, 4, 5, 6, 7, 8, 9}),
                                                         Scattered<uint32_t>(indices, {1, 2, 0, 2, 0, 0})}),
      (Floats{4, 8, 3, 7, 2, 3}));
}

TEST(GatherNd, PageExamples) {
  TensorDesc input = F32({2, 2}), indices = U32({2, 1}), output = F32({2, 2});
  EXPECT_EQ(Values(GatherNd(input, indices, output, 2, 2),
                   {Scattered(input, Counted(4)), Scattered<uint32_t>(indices, {1, 0})}),
            (Floats{2, 3, 0, 1}));
  input = F32({1, 2, 2, 2});
  indices = U32({1, 1, 2, 2});
  output = F32({1, 1, 2, 2});
  EXPECT_EQ(Values(GatherNd(input, indices, output, 3, 2),
                   {Scattered(input, Counted(8)), Scattered<uint32_t>(indices, {0, 1, 1, 0})}),
            (Floats{2, 3, 4, 5}));
}

TEST(GatherNd1, PageExamples) {
  TensorDesc input = F32({2, 2}), indices = U32({2, 1}), output = F32({2, 2});
  EXPECT_EQ(Values(GatherNd1(input, indices, output, 2, 2, 0),
                   {Scattered(input, Counted(4)), Scattered<uint32_t>(indices, {1, 0})}),
            (Floats{2, 3, 0, 1}));
  input = F32({1, 3, 2, 2});
  indices = U32({1, 3, 2, 2});
  output = F32({1, 1, 3, 2});
  EXPECT_EQ(Values(GatherNd1(input, indices, output, 3, 3, 1),
                   {Scattered(input, Counted(12)),
                    Scattered<uint32_t>(indices, {0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 0})}),
            (Floats{0, 3, 7, 4, 9, 10}));
}

template <typename Index>
void ExpectClamped(DataType type, const std::vector<Index>& values, const Floats& expected,
                   const std::string& sentence) {
  const TensorDesc input = F32({5}), indices = Packed(type, {static_cast<uint32_t>(values.size())});
  const TensorDesc output = F32({static_cast<uint32_t>(values.size())});
  const RunResult result = ExpectAllAgree(Gather(input, indices, output, 0, 1),
                                          {Scattered(input, Counted(5)), Scattered(indices, values)});
  EXPECT_EQ(Gathered<float>(output, result.outputs[0]), expected);
  ASSERT_EQ(result.data_errors.size(), sentence.empty() ? 0u : 1u);
  if (!sentence.empty()) {
    EXPECT_EQ(result.data_errors[0], sentence);
  }
}

TEST(Gather, WrapsOnceThenClamps) {
  ExpectClamped<int32_t>(DataType::kInt32, {-1, -5, 4}, {4, 0, 4}, "");
  ExpectClamped<int32_t>(DataType::kInt32, {0, -6, 5, -100}, {0, 0, 4, 0},
                         "GATHER: IndicesTensor[1] is -6 but InputTensor.Sizes[Axis=0] is 5; it must be in "
                         "[-5, 4]; indices out of range are clamped");
  ExpectClamped<int64_t>(
      DataType::kInt64, {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}, {0, 4},
      "GATHER: IndicesTensor[0] is -9223372036854775808 but InputTensor.Sizes[Axis=0] is 5; it must be in "
      "[-5, 4]; indices out of range are clamped");
  ExpectClamped<uint32_t>(DataType::kUInt32, {3, 5, 0xFFFFFFFF}, {3, 4, 4},
                          "GATHER: IndicesTensor[1] is 5 but InputTensor.Sizes[Axis=0] is 5; it must be in "
                          "[0, 4]; indices out of range are clamped");
  ExpectClamped<uint64_t>(DataType::kUInt64, {~uint64_t{0}}, {4},
                          "GATHER: IndicesTensor[0] is 18446744073709551615 but InputTensor.Sizes[Axis=0] is "
                          "5; it must be in [0, 4]; indices out of range are clamped");
}

TEST(GatherNd, ReportsTheFirstTuple) {
  const TensorDesc input = F32({2, 3}), indices = I32({3, 2}), output = F32({1, 3});
  const RunResult result =
      ExpectAllAgree(GatherNd(input, indices, output, 2, 2),
                     {Scattered(input, Counted(6)), Scattered<int32_t>(indices, {1, -3, 1, 3, -3, 9})});
  EXPECT_EQ(Gathered<float>(output, result.outputs[0]), (Floats{3, 5, 2}));
  ASSERT_EQ(result.data_errors.size(), 1u);
  EXPECT_EQ(result.data_errors[0],
            "GATHER_ND: the tuple IndicesTensor[1,:] is {1,3} but InputTensor.Sizes[1] is 3; its component 1 "
            "must be in [-3, 2]; indices out of range are clamped");
}

// Long enough for the row path of every kernel.
TEST(Gather, LongRows) {
  constexpr uint32_t kRows = 37, kWidth = 1030, kTaken = 150;
  for (const uint32_t width : {kWidth, kWidth + 2, 1024u}) {
    const TensorDesc input = F32({kRows, width}), indices = I32({1, kTaken}), output = F32({kTaken, width});
    std::vector<int32_t> rows(kTaken);
    for (uint32_t i = 0; i < kTaken; ++i) {
      rows[i] = static_cast<int32_t>(i * 7 % kRows) - (i % 2 == 0 ? 0 : static_cast<int32_t>(kRows));
    }
    const Floats values =
        Values(Gather(input, indices, output, 0, 1),
               {Scattered(input, Counted(size_t{kRows} * width)), Scattered(indices, rows)});
    for (uint32_t i = 0; i < kTaken; ++i) {
      for (const uint32_t x : {0u, width / 2, width - 1}) {
        EXPECT_EQ(values[size_t{i} * width + x], static_cast<float>(i * 7 % kRows * width + x));
      }
    }
  }
}

TEST(GatherInfer, SizesOfTheOutput) {
  OperatorDesc desc = Gather(F32({2, 3, 4}), U32({1, 5, 6}), {}, 0, 2);
  EXPECT_EQ(ImplementationOf(desc).infer(&desc).message(),
            "GATHER: OutputTensor would need 4 dimensions, those of InputTensor with IndexDimensions of them "
            "instead of Axis, but DimensionCount is 3; it must be at least 4");
  desc = Gather(F32({1, 3, 4}), I32({1, 5, 6}), {}, 1, 2);
  EXPECT_EQ(ImplementationOf(desc).infer(&desc).message(), "");
  EXPECT_EQ(SizesToString(*desc.tensor("OutputTensor")), "{5,6,4}");
  EXPECT_EQ(desc.tensor("OutputTensor")->type, DataType::kFloat32);
}

std::string Refusal(const OperatorDesc& desc) {
  const Status status = ImplementationOf(desc).check(desc, kLatestFeatureLevel);
  EXPECT_EQ(status.code(), status.ok() ? Code::kOk : Code::kInvalidArgument);
  return status.message();
}

TEST(GatherCheck, Refusals) {
  EXPECT_EQ(Refusal(Gather(F32({2, 3}), U32({1, 4}), F32({2, 4}), 2, 1)),
            "GATHER: Axis is 2 but InputTensor.DimensionCount is 2; Axis must be in [0, 1]");
  EXPECT_EQ(Refusal(Gather(F32({2, 3}), U32({1, 4}), F32({2, 4}), 1, 3)),
            "GATHER: IndexDimensions is 3 but IndicesTensor.DimensionCount is 2; IndexDimensions must be in "
            "[0, 2]");
  EXPECT_EQ(Refusal(Gather(F32({2, 3}), U32({5, 4}), F32({2, 4}), 1, 1)),
            "GATHER: IndicesTensor.Sizes[0] is 5 but IndexDimensions is 1 of 2; the dimensions left of the "
            "last 1 must be 1");
  EXPECT_EQ(Refusal(Gather(F32({2, 3}), U32({5, 4}), F32({5, 4}), 1, 2)),
            "GATHER: OutputTensor would need 3 dimensions, those of InputTensor with IndexDimensions of them "
            "instead of Axis, but DimensionCount is 2; it must be at least 3");
  EXPECT_EQ(Refusal(Gather(F32({2, 3}), U32({1, 4}), F32({2, 5}), 1, 1)),
            "GATHER: OutputTensor.Sizes is {2,5} but must be {2,4}: the sizes of InputTensor with those of "
            "IndicesTensor instead of Axis");
  EXPECT_EQ(Refusal(GatherElements(F32({2, 3}), U32({3, 4}), F32({3, 4}), 1)),
            "GATHER_ELEMENTS: IndicesTensor.Sizes is {3,4} but must be {2,4}: the sizes of InputTensor, with "
            "any size along Axis");
  EXPECT_EQ(Refusal(GatherNd(F32({2, 3}), U32({4, 3}), F32({1, 4}), 2, 2)),
            "GATHER_ND: IndicesTensor.Sizes[1], the size of an index tuple, is 3 but InputDimensionCount is "
            "2; it must be in [1, 2]");
  EXPECT_EQ(Refusal(GatherNd1(F32({2, 3}), U32({2, 1}), F32({1, 2}), 2, 2, 2)),
            "GATHER_ND1: BatchDimensionCount is 2 but InputDimensionCount is 2 and IndicesDimensionCount 2; "
            "BatchDimensionCount must be in [0, 1]");
  EXPECT_EQ(Refusal(GatherNd1(F32({2, 3}), U32({4, 1}), F32({1, 4}), 2, 2, 1)),
            "GATHER_ND1: IndicesTensor.Sizes[0] is 4 but InputTensor.Sizes[0] is 2; the sizes of the 1 batch "
            "dimensions must be equal");
  EXPECT_EQ(Refusal(GatherNd1(F32({2, 3}), U32({2, 2}), F32({1, 2}), 2, 2, 1)),
            "GATHER_ND1: IndicesTensor.Sizes[1], the size of an index tuple, is 2 but InputDimensionCount is "
            "2 and BatchDimensionCount 1; it must be in [1, 1]");
  EXPECT_EQ(Refusal(GatherNd(F32({2, 3, 4}), U32({2, 5, 1}), F32({2, 5, 3}), 3, 3)),
            "GATHER_ND: OutputTensor would need 4 dimensions, 2 of IndicesTensor and 2 of InputTensor, but "
            "DimensionCount is 3; it must be at least 4");
}

}  // namespace
}  // namespace anydml::testing
