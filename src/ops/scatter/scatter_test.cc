// Every scatter implementation against the reference; the reference against the page's examples, results
// computed by hand and a second, independent algorithm.
#include <gtest/gtest.h>

#include <limits>

#include "ops/scatter/scatter_test_cases.h"
#include "support/cases.h"

namespace anydml::testing {
namespace {

constexpr DataType kTypes[] = {DataType::kFloat64, DataType::kFloat32, DataType::kFloat16, DataType::kInt64,
                               DataType::kInt32,   DataType::kInt16,   DataType::kInt8,    DataType::kUInt64,
                               DataType::kUInt32,  DataType::kUInt16,  DataType::kUInt8};

using Floats = std::vector<float>;

TEST(ScatterNd, PageExample) {
  const TensorDesc data = Packed(DataType::kFloat32, {1, 8});
  const TensorDesc indices = Packed(DataType::kUInt32, {4, 1});
  const TensorDesc updates = Packed(DataType::kFloat32, {1, 4});
  const RunResult result = ExpectAllAgree(
      ScatterNd(data, indices, updates, data, 1, 2),
      {Scattered<float>(data, {1, 2, 3, 4, 5, 6, 7, 8}), Scattered<uint32_t>(indices, {4, 3, 1, 7}),
       Scattered<float>(updates, {9, 10, 11, 12})});
  EXPECT_EQ(Gathered<float>(data, result.outputs[0]), (Floats{1, 11, 3, 10, 9, 6, 7, 12}));
  EXPECT_TRUE(result.data_errors.empty());
}

TEST(ScatterNd, PageExampleOfSizes) {
  const TensorDesc data = Packed(DataType::kFloat32, {3, 4, 5, 6, 7});
  const TensorDesc indices = Packed(DataType::kInt32, {1, 1, 1, 2, 3});
  const TensorDesc updates = Packed(DataType::kFloat32, {1, 1, 2, 6, 7});
  Floats zeros(3 * 4 * 5 * 6 * 7), slices(2 * 6 * 7);
  for (size_t i = 0; i < slices.size(); ++i) slices[i] = static_cast<float>(i + 1);
  const RunResult result =
      ExpectAllAgree(ScatterNd(data, indices, updates, data, 5, 3),
                     {Scattered(data, zeros), Scattered<int32_t>(indices, {2, 0, 4, -3, -1, 1}),
                      Scattered(updates, slices)});
  Floats expected = zeros;
  for (int i = 0; i < 42; ++i) expected[((2 * 4 + 0) * 5 + 4) * 42 + i] = slices[i];
  for (int i = 0; i < 42; ++i) expected[((0 * 4 + 3) * 5 + 1) * 42 + i] = slices[42 + i];
  EXPECT_EQ(Gathered<float>(data, result.outputs[0]), expected);
}

TEST(ScatterNd, LatestUpdateWins) {
  const TensorDesc data = Packed(DataType::kFloat32, {4, 2});
  const TensorDesc indices = Packed(DataType::kUInt32, {3, 1});
  const TensorDesc updates = Packed(DataType::kFloat32, {3, 2});
  const RunResult result =
      ExpectAllAgree(ScatterNd(data, indices, updates, data, 2, 2),
                     {Scattered<float>(data, Floats(8, 0)), Scattered<uint32_t>(indices, {2, 1, 2}),
                      Scattered<float>(updates, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(Gathered<float>(data, result.outputs[0]), (Floats{0, 0, 3, 4, 5, 6, 0, 0}));
}

TEST(ScatterElements, ByHand) {
  // 3 occurs twice: the latest update stays.
  TensorDesc data = Packed(DataType::kFloat32, {5});
  TensorDesc indices = Packed(DataType::kUInt32, {4});
  TensorDesc updates = Packed(DataType::kFloat32, {4});
  RunResult result =
      ExpectAllAgree(ScatterElements(data, indices, updates, data, 0),
                     {Scattered<float>(data, {0, 1, 2, 3, 4}), Scattered<uint32_t>(indices, {3, 1, 3, 0}),
                      Scattered<float>(updates, {5, 6, 7, 8})});
  EXPECT_EQ(Gathered<float>(data, result.outputs[0]), (Floats{8, 6, 2, 7, 4}));

  data = Packed(DataType::kFloat32, {3, 3});
  indices = Packed(DataType::kUInt32, {2, 3});
  updates = Packed(DataType::kFloat32, {2, 3});
  result =
      ExpectAllAgree(ScatterElements(data, indices, updates, data, 0),
                     {Scattered<float>(data, Floats(9, 0)), Scattered<uint32_t>(indices, {1, 0, 2, 0, 2, 1}),
                      Scattered<float>(updates, {1.0f, 1.1f, 1.2f, 2.0f, 2.1f, 2.2f})});
  EXPECT_EQ(Gathered<float>(data, result.outputs[0]),
            (Floats{2.0f, 1.1f, 0.0f, 1.0f, 0.0f, 2.2f, 0.0f, 2.1f, 1.2f}));
}

// One update of 7 into five zeros at `index`; expects the result at `place`, or no result and the message
// about the index.
template <typename Index>
void ExpectPlace(DataType type, Index index, int place, const std::string& allowed = "") {
  const TensorDesc data = Packed(DataType::kUInt8, {5});
  const TensorDesc indices = Packed(type, {1});
  const TensorDesc updates = Packed(DataType::kUInt8, {1});
  const std::vector<Bytes> inputs = {Scattered(data, std::vector<uint8_t>(5)),
                                     Scattered<Index>(indices, {index}), Scattered<uint8_t>(updates, {7})};
  std::vector<uint8_t> expected(5);
  if (place >= 0) expected[place] = 7;
  RunResult result = ExpectAllAgree(ScatterNd(data, indices, updates, data, 1, 1), inputs);
  EXPECT_EQ(Gathered<uint8_t>(data, result.outputs[0]), expected) << Name(type) << index;
  std::vector<std::string> sentences;
  if (place < 0) {
    sentences = {StrCat("SCATTER_ND: the tuple IndicesTensor[:] is {", index,
                        "} but InputTensor.Sizes[0] is 5; its component 0 must be in ", allowed,
                        "; updates with an index out of range are dropped")};
  }
  EXPECT_EQ(result.data_errors, sentences);

  result = ExpectAllAgree(ScatterElements(data, indices, updates, data, 0), inputs);
  EXPECT_EQ(Gathered<uint8_t>(data, result.outputs[0]), expected);
  if (place < 0) {
    sentences = {StrCat("SCATTER_ELEMENTS: IndicesTensor[0] is ", index,
                        " but InputTensor.Sizes[Axis=0] is 5; it must be in ", allowed,
                        "; updates with an index out of range are dropped")};
  }
  EXPECT_EQ(result.data_errors, sentences);
}

template <typename Index>
void ExpectSignedPlaces(DataType type) {
  ExpectPlace<Index>(type, 4, 4);
  ExpectPlace<Index>(type, -1, 4);
  ExpectPlace<Index>(type, -5, 0);
  for (Index bad :
       {Index{5}, Index{-6}, std::numeric_limits<Index>::min(), std::numeric_limits<Index>::max()}) {
    ExpectPlace<Index>(type, bad, -1, "[-5, 4]");
  }
}

template <typename Index>
void ExpectUnsignedPlaces(DataType type) {
  ExpectPlace<Index>(type, 4, 4);
  for (Index bad :
       {Index{5}, static_cast<Index>(-1), static_cast<Index>(-5), std::numeric_limits<Index>::max()}) {
    ExpectPlace<Index>(type, bad, -1, "[0, 4]");
  }
}

TEST(Scatter, IndicesWrapOnceOrAreDropped) {
  ExpectSignedPlaces<int64_t>(DataType::kInt64);
  ExpectSignedPlaces<int32_t>(DataType::kInt32);
  ExpectUnsignedPlaces<uint64_t>(DataType::kUInt64);
  ExpectUnsignedPlaces<uint32_t>(DataType::kUInt32);
  // Beyond 2^32: the low half alone would be in range.
  ExpectPlace<int64_t>(DataType::kInt64, int64_t{1} << 32, -1, "[-5, 4]");
  ExpectPlace<uint64_t>(DataType::kUInt64, uint64_t{1} << 32, -1, "[0, 4]");
}

TEST(Scatter, TheFirstBadTupleIsNamed) {
  const TensorDesc data = Packed(DataType::kFloat32, {1, 3, 4});
  const TensorDesc indices = Packed(DataType::kInt64, {2, 2, 2});
  const TensorDesc updates = Packed(DataType::kFloat32, {1, 2, 2});
  const OperatorDesc desc = ScatterNd(data, indices, updates, data, 2, 3);
  const std::vector<Bytes> inputs = {Scattered<float>(data, Floats(12)),
                                     Scattered<int64_t>(indices, {0, 0, 2, -5, 3, 9, 1, 1}),
                                     Scattered<float>(updates, {1, 2, 3, 4})};
  const RunResult result = ExpectAllAgree(desc, inputs);
  EXPECT_EQ(Gathered<float>(data, result.outputs[0]), (Floats{1, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(result.data_errors,
            std::vector<std::string>{"SCATTER_ND: the tuple IndicesTensor[0,1,:] is {2,-5} but "
                                     "InputTensor.Sizes[2] is 4; its component 1 must be in [-4, 3]; updates "
                                     "with an index out of range are dropped"});
  // Without a message callback: the same bytes.
  for (const char* name : RunnableImplementations(desc)) {
    const RunResult silent = RunOperator(desc, inputs, {.implementation = name, .listen = false});
    if (!silent.implementation.empty()) EXPECT_EQ(silent.outputs, result.outputs) << name;
  }
}

TEST(Scatter, InPlaceOnlyForIdenticalLayouts) {
  const TensorDesc packed = Packed(DataType::kFloat32, {2, 3});
  const TensorDesc padded = Strided(DataType::kFloat32, {2, 3}, {4, 1});
  const TensorDesc indices = Packed(DataType::kUInt32, {1, 3});
  const TensorDesc updates = Packed(DataType::kFloat32, {1, 3});
  LoweredOperator lowered;
  OperatorDesc desc = ScatterElements(padded, indices, updates, padded, 0);
  ASSERT_TRUE(ImplementationOf(desc).lower(desc, {}, &lowered).ok());
  EXPECT_EQ(lowered.in_place, (std::vector<std::pair<uint32_t, uint32_t>>{{0, 0}}));
  const RunResult result =
      ExpectAllAgree(desc,
                     {Scattered<float>(padded, {1, 2, 3, 4, 5, 6}), Scattered<uint32_t>(indices, {1, 0, 1}),
                      Scattered<float>(updates, {7, 8, 9})},
                     /*in_place=*/true);
  EXPECT_EQ(Gathered<float>(padded, result.outputs[0]), (Floats{1, 8, 3, 7, 5, 9}));

  lowered = {};
  desc = ScatterElements(padded, indices, updates, packed, 0);
  ASSERT_TRUE(ImplementationOf(desc).lower(desc, {}, &lowered).ok());
  EXPECT_TRUE(lowered.in_place.empty());
}

TEST(ScatterElements, EveryTypeRankAndAxis) {
  std::mt19937_64 random(TestSeed());
  const std::vector<uint32_t> all_sizes = {2, 3, 1, 2, 4, 2, 3, 5};
  for (DataType type : kTypes) {
    for (uint32_t rank = 1; rank <= 8; ++rank) {
      for (uint32_t axis = 0; axis < rank; ++axis) {
        for (int repeat = 0; repeat < 4; ++repeat) {
          RunElementsCase(type, {all_sizes.end() - rank, all_sizes.end()}, axis, random);
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST(ScatterNd, EveryTypeAndShape) {
  std::mt19937_64 random(TestSeed());
  const std::vector<uint32_t> some = {3, 2, 4, 2, 3, 2, 1, 2};
  for (DataType type : kTypes) {
    for (uint32_t input_rank = 1; input_rank <= 8; ++input_rank) {
      for (uint32_t positions = 0; positions <= 7; ++positions) {
        for (uint32_t tuple_size = 1; tuple_size <= input_rank; ++tuple_size) {
          const uint32_t needed = std::max({input_rank, positions + 1, positions + input_rank - tuple_size});
          if (needed > 8) continue;
          RunNdCase(type, {some.end() - positions, some.end()}, {some.begin(), some.begin() + input_rank},
                    tuple_size, Uniform(random, needed, 8), random);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Other tests compare the implementations with the reference on the same cases.
TEST(Scatter, RandomCasesByOtherAlgorithms) {
  ForCases(family::scatter::Cases(), 2, [](const Case& problem) {
    const RunResult result = RunOperator(problem.desc, problem.inputs,
                                         {.implementation = "cpu.reference", .in_place = problem.in_place});
    if (problem.desc.schema == FindOperator(OperatorType::kScatterNd)) {
      ExpectNdBySlices(problem.desc, problem.inputs, result);
    } else {
      ExpectElementsByLookup(problem.desc, problem.inputs, result);
    }
  });
}

}  // namespace
}  // namespace anydml::testing
