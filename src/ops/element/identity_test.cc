// Every implementation of identity against the reference; the reference against results computed by hand.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

constexpr DataType kTypes[] = {DataType::kFloat64, DataType::kFloat32, DataType::kFloat16, DataType::kInt64,
                               DataType::kInt32,   DataType::kInt16,   DataType::kInt8,    DataType::kUInt64,
                               DataType::kUInt32,  DataType::kUInt16,  DataType::kUInt8};

OperatorDesc Identity(const TensorDesc& input, const TensorDesc& output, FieldValue scale_bias = {}) {
  return MakeDesc("ELEMENT_WISE_IDENTITY",
                  {{"InputTensor", input}, {"OutputTensor", output}, {"ScaleBias", scale_bias}});
}

// Computes x * scale + bias for each element with every implementation, out of place and in place.
template <typename T>
std::vector<T> Scaled(DataType type, const std::vector<T>& elements, float scale, float bias) {
  const TensorDesc tensor = Packed(type, {static_cast<uint32_t>(elements.size())});
  const OperatorDesc desc = Identity(tensor, tensor, ScaleBias{scale, bias});
  const Bytes bytes = Scattered(tensor, elements);
  const RunResult apart = ExpectAllAgree(desc, {bytes});
  EXPECT_EQ(ExpectAllAgree(desc, {bytes}, /*in_place=*/true).outputs, apart.outputs);
  return Gathered<T>(tensor, apart.outputs[0]);
}

TEST(Identity, CopiesBitForBit) {
  const TensorDesc tensor = Packed(DataType::kFloat32, {4});
  const std::vector<uint32_t> bits = {0x7F800001, 0xFFC12345, 0x80000000, 1};  // signalling NaN first
  const RunResult result = ExpectAllAgree(Identity(tensor, tensor), {Scattered(tensor, bits)});
  EXPECT_EQ(Gathered<uint32_t>(tensor, result.outputs[0]), bits);
}

TEST(Identity, TransposesBroadcastsAndPads) {
  const TensorDesc columns = Strided(DataType::kInt32, {2, 3}, {1, 2});
  const TensorDesc padded = Strided(DataType::kInt32, {2, 3}, {4, 1});
  RunResult result =
      ExpectAllAgree(Identity(columns, padded), {Scattered<int32_t>(columns, {1, 2, 3, 4, 5, 6})});
  EXPECT_EQ(Gathered<int32_t>(padded, result.outputs[0]), (std::vector<int32_t>{1, 2, 3, 4, 5, 6}));

  const TensorDesc row = Strided(DataType::kInt32, {2, 3}, {0, 1});
  result = ExpectAllAgree(Identity(row, padded), {Scattered<int32_t>(row, {7, 8, 9, 7, 8, 9})});
  EXPECT_EQ(Gathered<int32_t>(padded, result.outputs[0]), (std::vector<int32_t>{7, 8, 9, 7, 8, 9}));
}

TEST(IdentityScaleBias, Floats) {
  EXPECT_EQ(Scaled<float>(DataType::kFloat32, {1, -2, 0.5f}, 3, 0.25f),
            (std::vector<float>{3.25f, -5.75f, 1.75f}));
  EXPECT_EQ(Scaled<double>(DataType::kFloat64, {1, 0x1p-40}, 3, 1),
            (std::vector<double>{4, 1 + 3 * 0x1p-40}));
  // All NaN results count as equal.
  EXPECT_EQ(Scaled<uint32_t>(DataType::kFloat32, {0xFFC12345, 0x7F800000}, 0, 0),
            (std::vector<uint32_t>{0x7FC00000, 0x7FC00000}));
  EXPECT_EQ(Scaled<uint16_t>(DataType::kFloat16, {0xFE01}, 1, 0), (std::vector<uint16_t>{0x7E00}));
}

TEST(IdentityScaleBias, ProductAndSumAreRoundedSeparately) {
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24; rounding the product removes the last term, a fused operation would
  // return it.
  const float x = 1 + 0x1p-12f;
  EXPECT_EQ(Scaled<float>(DataType::kFloat32, {x}, x, -(1 + 0x1p-11f)), (std::vector<float>{0}));
}

TEST(IdentityScaleBias, HalvesRoundOnceToNearestEven) {
  const auto halves = [](const std::vector<float>& values) {
    std::vector<uint16_t> bits;
    for (float value : values) bits.push_back(ToHalf(value).bits);
    return bits;
  };
  // 2049 and 2051 are halfway between FLOAT16 numbers (spacing 2); 65520 overflows.
  EXPECT_EQ(Scaled(DataType::kFloat16, halves({2048, 2050, 65504, 0x1p-24f}), 1, 1),
            halves({2048, 2052, 65504, 1}));
  EXPECT_EQ(Scaled(DataType::kFloat16, halves({65504}), 1, 16), halves({INFINITY}));
  EXPECT_EQ(Scaled(DataType::kFloat16, halves({0x1p-24f}), 0.5f, 0), halves({0}));
}

template <typename T>
void ExpectExactNegation(DataType type) {
  const T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  std::vector<T> elements = {0, 1, 2, static_cast<T>(high - 1), high, low, static_cast<T>(low + 1)};
  std::vector<T> expected;
  for (T x : elements) expected.push_back(static_cast<T>(uint64_t{0} - static_cast<uint64_t>(x)));
  EXPECT_EQ(Scaled(type, elements, -1, 0), expected) << Name(type);
}

TEST(IdentityScaleBias, NegationIsExactForEveryInteger) {
  ExpectExactNegation<int64_t>(DataType::kInt64);
  ExpectExactNegation<int32_t>(DataType::kInt32);
  ExpectExactNegation<int16_t>(DataType::kInt16);
  ExpectExactNegation<int8_t>(DataType::kInt8);
  ExpectExactNegation<uint64_t>(DataType::kUInt64);
  ExpectExactNegation<uint32_t>(DataType::kUInt32);
  ExpectExactNegation<uint16_t>(DataType::kUInt16);
  ExpectExactNegation<uint8_t>(DataType::kUInt8);
}

TEST(IdentityScaleBias, IntegralScaleAndBiasWrap) {
  EXPECT_EQ(Scaled<int8_t>(DataType::kInt8, {100, -100, 3}, 2, 5), (std::vector<int8_t>{-51, 61, 11}));
  EXPECT_EQ(Scaled<uint8_t>(DataType::kUInt8, {0, 5}, 1, -1), (std::vector<uint8_t>{255, 4}));
  EXPECT_EQ(Scaled<int64_t>(DataType::kInt64, {(int64_t{1} << 62) + 1}, 1, 1),
            (std::vector<int64_t>{(int64_t{1} << 62) + 2}));
  EXPECT_EQ(Scaled<uint64_t>(DataType::kUInt64, {3, 2}, 0x1p63f, 1),
            (std::vector<uint64_t>{(uint64_t{1} << 63) + 1, 1}));
  EXPECT_EQ(Scaled<int64_t>(DataType::kInt64, {7}, 1, -0x1p63f),
            (std::vector<int64_t>{std::numeric_limits<int64_t>::min() + 7}));
}

TEST(IdentityScaleBias, FractionsRoundTowardZeroAndSaturate) {
  EXPECT_EQ(Scaled<int32_t>(DataType::kInt32, {3, -3, 5}, 0.5f, 0), (std::vector<int32_t>{1, -1, 2}));
  EXPECT_EQ(Scaled<int8_t>(DataType::kInt8, {100, -100}, 1.5f, 0), (std::vector<int8_t>{127, -128}));
  EXPECT_EQ(Scaled<uint8_t>(DataType::kUInt8, {200, 1}, 1.5f, -2), (std::vector<uint8_t>{255, 0}));
  EXPECT_EQ(Scaled<uint64_t>(DataType::kUInt64, {std::numeric_limits<uint64_t>::max()}, 1.5f, 0),
            (std::vector<uint64_t>{std::numeric_limits<uint64_t>::max()}));
  const int64_t low = std::numeric_limits<int64_t>::min(), high = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Scaled<int64_t>(DataType::kInt64, {low, high, 9}, 1.5f, 0),
            (std::vector<int64_t>{low, high, 13}));
  EXPECT_EQ(
      Scaled<int32_t>(DataType::kInt32, {1, -1, 0}, INFINITY, 0),
      (std::vector<int32_t>{std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min(), 0}));
  EXPECT_EQ(Scaled<int32_t>(DataType::kInt32, {1}, NAN, 0), (std::vector<int32_t>{0}));
  EXPECT_EQ(Scaled<int8_t>(DataType::kInt8, {1}, 0x1p64f, 0.5f), (std::vector<int8_t>{127}));
}

void RunCase(DataType type, const std::vector<uint32_t>& sizes, LayoutKind from, LayoutKind to,
             const FieldValue& scale_bias, std::mt19937_64& random) {
  const TensorDesc output = MakeTensor(type, sizes, to, random);
  const bool in_place = from == to && Uniform(random, 0, 1) == 0;
  const TensorDesc input = in_place ? output : MakeTensor(type, sizes, from, random);
  SCOPED_TRACE(StrCat(Name(type), " ", SizesToString(input), " layouts ", int(from), int(to)));
  const Bytes bytes = RandomBytes(input, random);
  const RunResult result = ExpectAllAgree(Identity(input, output, scale_bias), {bytes}, in_place);
  if (!std::holds_alternative<std::monostate>(scale_bias)) return;
  const size_t width = BitSize(type) / 8;
  const auto from_at = RowMajorOffsets(input), to_at = RowMajorOffsets(output);
  for (size_t i = 0; i < from_at.size(); ++i) {
    ASSERT_EQ(
        std::memcmp(result.outputs[0].data() + to_at[i] * width, bytes.data() + from_at[i] * width, width),
        0);
  }
}

TEST(Identity, EveryTypeRankAndLayout) {
  std::mt19937_64 random(TestSeed());
  const std::vector<uint32_t> all_sizes = {2, 3, 1, 2, 3, 2, 5, 3};
  for (DataType type : kTypes) {
    for (uint32_t rank = 1; rank <= 8; ++rank) {
      const std::vector<uint32_t> sizes(all_sizes.end() - rank, all_sizes.end());
      for (LayoutKind from : kInputLayouts) {
        for (LayoutKind to : kOutputLayouts) {
          RunCase(type, sizes, from, to, {}, random);
          RunCase(type, sizes, from, to, ScaleBias{-1, 0}, random);
          RunCase(type, sizes, from, to, ScaleBias{1.25f, -3.5f}, random);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// Large enough to be divided among threads.
TEST(Identity, LargeOnes) {
  std::mt19937_64 random(TestSeed());
  for (DataType type : {DataType::kFloat16, DataType::kInt64}) {
    for (LayoutKind to : kOutputLayouts) {
      RunCase(type, {3, 300, 300}, LayoutKind::kPacked, to, {}, random);
      RunCase(type, {300, 3, 300}, LayoutKind::kTransposed, to, ScaleBias{-1, 0}, random);
      if (HasFailure()) return;
    }
  }
}

TEST(Identity, RandomCases) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(StrCat("ANYDML_TEST_SEED=", seed));
  std::mt19937_64 random(seed);
  for (int i = TestIterations(3000); i > 0; --i) {
    std::vector<uint32_t> sizes;
    for (uint32_t d = Uniform(random, 1, 8); d > 0; --d) sizes.push_back(Uniform(random, 1, d > 4 ? 2 : 5));
    FieldValue scale_bias;
    if (Uniform(random, 0, 2) == 0) {
      // Arbitrary bits, including denormals, infinities and NaNs.
      scale_bias = ScaleBias{std::bit_cast<float>(static_cast<uint32_t>(random())),
                             std::bit_cast<float>(static_cast<uint32_t>(random()))};
    }
    RunCase(kTypes[Uniform(random, 0, std::size(kTypes) - 1)], sizes, kInputLayouts[Uniform(random, 0, 3)],
            kOutputLayouts[Uniform(random, 0, 2)], scale_bias, random);
    if (HasFailure()) return;
  }
}

TEST(Identity, InPlaceOnlyForIdenticalLayouts) {
  const TensorDesc packed = Packed(DataType::kFloat32, {2, 3});
  const TensorDesc padded = Strided(DataType::kFloat32, {2, 3}, {4, 1});
  LoweredOperator lowered;
  OperatorDesc desc = Identity(padded, padded, ScaleBias{2, 0});
  ASSERT_TRUE(ImplementationOf(desc).lower(desc, {}, &lowered).ok());
  EXPECT_EQ(lowered.in_place, (std::vector<std::pair<uint32_t, uint32_t>>{{0, 0}}));
  EXPECT_EQ(lowered.implementation, "cpu.tiles");
  lowered = {};
  desc = Identity(packed, padded);
  ASSERT_TRUE(ImplementationOf(desc).lower(desc, {}, &lowered).ok());
  EXPECT_TRUE(lowered.in_place.empty());
  EXPECT_EQ(lowered.implementation, "cpu.copy");
}

TEST(Identity, ForcedButUnfitSaysWhy) {
  const TensorDesc tensor = Packed(DataType::kFloat32, {2});
  const OperatorDesc desc = Identity(tensor, tensor, ScaleBias{2, 0});
  LoweredOperator lowered;
  const Status status = LowerOperator(ImplementationOf(desc), desc, {.implementation = "cpu.copy"}, &lowered);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_EQ(status.message(),
            "ELEMENT_WISE_IDENTITY: implementation cpu.copy was asked for but does not fit: elements are "
            "not only moved");
}

TEST(IdentityInfer, OutputIsLikeTheInput) {
  OperatorDesc desc = Identity(Strided(DataType::kInt8, {3, 4}, {0, 1}), {});
  desc.fields[1] = std::monostate();
  ASSERT_TRUE(ImplementationOf(desc).infer(&desc).ok());
  EXPECT_TRUE(SameLayout(*desc.tensor("OutputTensor"), Packed(DataType::kInt8, {3, 4})));
}

}  // namespace
}  // namespace anydml::testing
