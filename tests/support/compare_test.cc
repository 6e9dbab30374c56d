// The comparison with the reference accepts what an implementation declares, and nothing else.
#include "support/compare.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

float After(float value, int ulps) {
  for (; ulps > 0; --ulps) value = std::nextafter(value, kInfinity);
  return value;
}

std::string Compare(std::vector<float> got, std::vector<float> want, const Exactness& exactness) {
  const TensorDesc tensor = Packed(DataType::kFloat32, {static_cast<uint32_t>(got.size())});
  return Difference(tensor, Scattered(tensor, got), Scattered(tensor, want), exactness);
}

TEST(Compare, ExactMeansBytes) {
  EXPECT_EQ(Compare({1, kNan}, {1, kNan}, {}), "");
  EXPECT_NE(Compare({0.0f}, {-0.0f}, {}), "");
  EXPECT_NE(Compare({1}, {After(1, 1)}, {}), "");
  EXPECT_NE(Compare({-kNan}, {kNan}, {}), "");
}

TEST(Compare, Ulps) {
  const Exactness two = {.float32_ulps = 2};
  EXPECT_EQ(Compare({After(1, 2), -0.0f, -kNan}, {1, 0, kNan}, two), "");
  EXPECT_EQ(Compare({0.0f}, {-1e-45f}, two), "");
  EXPECT_NE(Compare({After(1, 3)}, {1}, two), "");
  EXPECT_NE(Compare({kNan}, {kInfinity}, two), "");
  EXPECT_NE(Compare({1}, {kNan}, two), "");
  EXPECT_EQ(UlpsApart(-1e-45f, 1e-45f), 2u);
  EXPECT_EQ(HalfUlpsApart(0x8001, 0x0001), 2u);
  const TensorDesc half = Packed(DataType::kFloat16, {1});
  const auto compare = [&](uint16_t got) {
    return Difference(half, Scattered<uint16_t>(half, {got}), Scattered<uint16_t>(half, {0x3C00}),
                      {.float32_ulps = 100, .float16_ulps = 1});
  };
  EXPECT_EQ(compare(0x3C01), "");
  EXPECT_NE(compare(0x3C02), "");
}

TEST(Compare, RelativeAndAbsolute) {
  EXPECT_EQ(Compare({101}, {100}, {.relative = 0.0101}), "");
  EXPECT_NE(Compare({101}, {100}, {.relative = 0.0099}), "");
  EXPECT_EQ(Compare({0.001f}, {0}, {.absolute = 0.01}), "");
  EXPECT_EQ(Compare({kInfinity}, {kInfinity}, {.absolute = 1}), "");
  EXPECT_NE(Compare({kInfinity}, {1}, {.relative = 1e9}), "");
}

TEST(Compare, IntegersAndGapsAreExact) {
  const Exactness loose = {.float32_ulps = 100, .relative = 1, .absolute = 100};
  const TensorDesc integers = Packed(DataType::kInt32, {1});
  EXPECT_NE(Difference(integers, Scattered<int32_t>(integers, {1}), Scattered<int32_t>(integers, {2}), loose),
            "");
  const TensorDesc padded = Strided(DataType::kFloat32, {2}, {2});
  Bytes got = Scattered<float>(padded, {1, 2});
  const Bytes want = Scattered<float>(padded, {1.5, 2});
  EXPECT_EQ(Difference(padded, got, want, loose), "");
  got[5] ^= 1;
  EXPECT_NE(Difference(padded, got, want, loose), "");
}

TEST(Compare, SaysWhere) {
  EXPECT_EQ(Compare({1, 3}, {1, 2}, {.float32_ulps = 2}),
            "element 1 is 3 but 2 in the reference; within 2 ulp of FLOAT32, 0 of FLOAT16, 0 of it or 0 is "
            "allowed");
}

}  // namespace
}  // namespace anydml::testing
