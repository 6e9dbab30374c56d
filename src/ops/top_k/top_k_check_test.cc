// Error messages, derived outputs and choice of implementation of TOP_K and TOP_K1.
#include <gtest/gtest.h>

#include "ops/column.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

OperatorDesc TopK1(const std::vector<uint32_t>& input, const std::vector<uint32_t>& value,
                   const std::vector<uint32_t>& index, uint32_t axis, uint32_t k) {
  return MakeDesc("TOP_K1", {{"InputTensor", Packed(DataType::kFloat32, input)},
                             {"OutputValueTensor", Packed(DataType::kFloat32, value)},
                             {"OutputIndexTensor", Packed(DataType::kUInt32, index)},
                             {"Axis", axis},
                             {"K", k},
                             {"AxisDirection", 1u}});
}

void ExpectRefused(const OperatorDesc& desc, const std::string& message) {
  const Status status = ImplementationOf(desc).check(desc, kLatestFeatureLevel);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), message);
}

TEST(TopKCheck, KIsWithinTheAxis) {
  ExpectRefused(TopK1({1, 1, 3, 4}, {1, 1, 3, 9}, {1, 1, 3, 9}, 3, 9),
                "TOP_K1: K is 9 but InputTensor.Sizes[Axis=3] is 4; K must be in [1, 4]");
  ExpectRefused(TopK1({4}, {4}, {4}, 0, 0),
                "TOP_K1: K is 0 but InputTensor.Sizes[Axis=0] is 4; K must be in [1, 4]");
  const OperatorDesc full_sort = TopK1({2, 4}, {2, 4}, {2, 4}, 1, 4);
  EXPECT_TRUE(ImplementationOf(full_sort).check(full_sort, kLatestFeatureLevel).ok());
}

TEST(TopKCheck, AxisIsADimension) {
  ExpectRefused(TopK1({3, 4}, {3, 2}, {3, 2}, 2, 2),
                "TOP_K1: Axis is 2 but InputTensor.DimensionCount is 2; Axis must be in [0, 1]");
  ExpectRefused(TopK1({3, 4}, {3, 2}, {3, 2}, 0xFFFFFFFF, 2),
                "TOP_K1: Axis is 4294967295 but InputTensor.DimensionCount is 2; Axis must be in [0, 1]");
}

TEST(TopKCheck, OutputsHaveTheInputsSizesWithK) {
  ExpectRefused(TopK1({3, 4}, {3, 3}, {3, 2}, 1, 2),
                "TOP_K1: OutputValueTensor.Sizes is {3,3} but must be {3,2}: the sizes of InputTensor with K "
                "along Axis");
  ExpectRefused(TopK1({3, 4}, {3, 2}, {2, 3}, 1, 2),
                "TOP_K1: OutputIndexTensor.Sizes is {2,3} but must be {3,2}: the sizes of InputTensor with K "
                "along Axis");
}

TEST(TopKInfer, FillsAbsentOutputs) {
  OperatorDesc desc = TopK1({3, 4}, {1}, {1}, 1, 2);
  desc.fields[1] = std::monostate();
  TensorDesc only_type;
  only_type.type = DataType::kUInt64;
  desc.fields[2] = only_type;
  ASSERT_TRUE(ImplementationOf(desc).infer(&desc).ok());
  EXPECT_TRUE(SameLayout(*desc.tensor("OutputValueTensor"), Packed(DataType::kFloat32, {3, 2})));
  EXPECT_TRUE(SameLayout(*desc.tensor("OutputIndexTensor"), Packed(DataType::kUInt64, {3, 2})));
  EXPECT_EQ(desc.tensor("OutputIndexTensor")->total_bytes, 48u);

  desc.fields[2] = std::monostate();
  ASSERT_TRUE(ImplementationOf(desc).infer(&desc).ok());
  EXPECT_EQ(desc.tensor("OutputIndexTensor")->type, DataType::kUInt32);
}

TEST(TopKInfer, KeepsGivenOutputs) {
  OperatorDesc desc = TopK1({3, 4}, {3, 1}, {3, 2}, 1, 2);  // wrong, but chosen by the caller
  ASSERT_TRUE(ImplementationOf(desc).infer(&desc).ok());
  EXPECT_EQ(SizesToString(*desc.tensor("OutputValueTensor")), "{3,1}");
}

TEST(TopKInfer, RefusesWhatItCannotDerive) {
  OperatorDesc desc = TopK1({3, 4}, {1}, {1}, 5, 2);
  EXPECT_EQ(ImplementationOf(desc).infer(&desc).code(), Code::kInvalidArgument);
  desc = TopK1({3, 4}, {1}, {1}, 1, 5);
  EXPECT_EQ(ImplementationOf(desc).infer(&desc).code(), Code::kInvalidArgument);
  desc.fields[0] = std::monostate();
  EXPECT_NE(ImplementationOf(desc).infer(&desc).message().find("TOP_K1: InputTensor has no sizes"),
            std::string::npos);
}

TEST(TopKLower, ChoosesByTheShareOfKAndExplains) {
  OperatorDesc few = TopK1({100}, {3}, {3}, 0, 3);
  LoweredOperator lowered;
  ASSERT_TRUE(ImplementationOf(few).lower(few, {}, &lowered).ok());
  EXPECT_TRUE(lowered.in_place.empty());
  // Without Highway the first four do not exist.
  const bool vectorised = std::string_view(ImplementationNames(ImplementationOf(few)).front()) == "cpu.rank";
  EXPECT_EQ(lowered.implementation, vectorised ? "cpu.maxima" : "cpu.heap");
  if (vectorised) {
    EXPECT_EQ(lowered.explanation,
              "cpu.rank: K is 3 of 100 elements; it compares all with all, up to 64\n"
              "cpu.maxima: chosen\n"
              "cpu.sample: comes after cpu.maxima\n"
              "cpu.keys: comes after cpu.maxima\n"
              "cpu.sort: comes after cpu.maxima\n"
              "cpu.heap: comes after cpu.maxima\n"
              "cpu.reference: comes after cpu.maxima");
  }

  OperatorDesc all = TopK1({1000}, {1000}, {1000}, 0, 1000);
  ASSERT_TRUE(ImplementationOf(all).lower(all, {}, &lowered).ok());
  EXPECT_EQ(lowered.implementation, vectorised ? "cpu.keys" : "cpu.sort");
  OperatorDesc lengthy = TopK1({20000}, {5}, {5}, 0, 5);
  ASSERT_TRUE(ImplementationOf(lengthy).lower(lengthy, {}, &lowered).ok());
  EXPECT_EQ(lowered.implementation, vectorised ? "cpu.sample" : "cpu.heap");
  ASSERT_TRUE(ImplementationOf(all).lower(all, {.implementation = "cpu.heap"}, &lowered).ok());
  EXPECT_EQ(lowered.implementation, "cpu.heap");
}

TEST(TopKLower, RefusesUnknownImplementationsAndBackends) {
  OperatorDesc desc = TopK1({4}, {2}, {2}, 0, 2);
  LoweredOperator lowered;
  Status status = LowerOperator(ImplementationOf(desc), desc, {.implementation = "cpu.magic"}, &lowered);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  const std::string& message = status.message();
  EXPECT_TRUE(message.starts_with("TOP_K1: implementation cpu.magic was asked for but there are only cpu."))
      << message;
  EXPECT_TRUE(message.ends_with("cpu.sort, cpu.heap, cpu.reference")) << message;
  const Column none;
  const DeviceTraits abacus = {.backend = "abacus", .column = &none, .is_host = false};
  const LowerContext elsewhere = {.device = &abacus, .host_fallback = false};
  status = ImplementationOf(desc).lower(desc, elsewhere, &lowered);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_EQ(status.message(), "the backend abacus has no implementation of this family");
}

}  // namespace
}  // namespace anydml::testing
