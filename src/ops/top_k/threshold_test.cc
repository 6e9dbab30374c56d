// The vectorised kernel on every SIMD target of this machine against the reference:
// lengths around vector widths, K around switch points, hostile orders of values.
#include <gtest/gtest.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "ops/common/test_util.h"

namespace anydml::testing {
namespace {

constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kInt32, DataType::kInt16,
                               DataType::kInt8,    DataType::kUInt32,  DataType::kUInt16, DataType::kUInt8};

// Runs `body` once per target, with dispatch held to it.
template <typename Body>
void ForEachTarget(Body&& body) {
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

void ExpectAgreesWithReference(DataType type, uint32_t n, uint32_t k, uint32_t direction, const Bytes& row) {
  SCOPED_TRACE(StrCat(Name(type), " n ", n, " K ", k, " direction ", direction));
  const OperatorDesc desc = MakeDesc("TOP_K1", {{"InputTensor", Packed(type, {1, n})},
                                                {"OutputValueTensor", Packed(type, {1, k})},
                                                {"OutputIndexTensor", Packed(DataType::kUInt32, {1, k})},
                                                {"Axis", 1u},
                                                {"K", k},
                                                {"AxisDirection", direction}});
  const RunResult result = RunOperator(desc, {row}, {.implementation = "cpu.threshold"});
  ASSERT_EQ(result.implementation, "cpu.threshold");
  const RunResult reference = RunOperator(desc, {row}, {.implementation = "cpu.reference"});
  ASSERT_EQ(result.outputs, reference.outputs);
}

// Both directions, K around the switch points.
void ExpectAgreesForAllK(DataType type, uint32_t n, const Bytes& row) {
  for (uint32_t direction : {0u, 1u}) {
    for (uint32_t k : {1u, 2u, 21u, 22u, 85u, 86u, n / 32, n / 4}) {
      ExpectAgreesWithReference(type, n, k, direction, row);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(TopKThreshold, LengthsAroundVectorWidthsOfEveryType) {
  std::mt19937_64 random(TestSeed());
  ForEachTarget([&] {
    for (DataType type : kTypes) {
      for (uint32_t n : {512u, 513u, 575u, 639u, 1000u, 1023u, 1025u, 2047u, 2049u, 8191u, 8193u}) {
        ExpectAgreesForAllK(type, n, RandomBytes(Packed(type, {1, n}), random));
        ASSERT_FALSE(HasFatalFailure());
      }
    }
  });
}

std::vector<std::vector<float>> HostileRows(uint32_t n) {
  std::mt19937_64 random(TestSeed());
  std::vector<float> ascending(n), few(n), zeros(n), nans(n), spikes(n), near_one(n);
  for (uint32_t i = 0; i < n; ++i) {
    ascending[i] = static_cast<float>(i);
    few[i] = static_cast<float>(random() % 3);
    zeros[i] = random() % 2 ? 0.0f : -0.0f;
    nans[i] = std::bit_cast<float>(static_cast<uint32_t>(random()) | 0x7F800001u);
    // Large only where a sample at equal distances looks: the threshold is too high.
    spikes[i] = i % (n / static_cast<uint32_t>(2 * std::sqrt(n))) == 0 ? 1e6f : static_cast<float>(i % 7);
    near_one[i] = std::bit_cast<float>(0x3F800000u | static_cast<uint32_t>(random() % 4096));
  }
  std::vector<float> descending(ascending.rbegin(), ascending.rend());
  std::vector<float> mixed = nans;
  for (uint32_t i = 0; i < n; i += 2) mixed[i] = random() % 2 ? INFINITY : -INFINITY;
  return {ascending, descending, few, zeros, nans, spikes, near_one, mixed, std::vector<float>(n, 5.0f)};
}

TEST(TopKThreshold, HostileRows) {
  ForEachTarget([&] {
    for (uint32_t n : {1000u, 20000u}) {
      for (const std::vector<float>& row : HostileRows(n)) {
        const TensorDesc tensor = Packed(DataType::kFloat32, {1, n});
        ExpectAgreesForAllK(DataType::kFloat32, n, Scattered(tensor, row));
        ASSERT_FALSE(HasFatalFailure());
      }
    }
  });
}

TEST(TopKThreshold, RandomLongRows) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(StrCat("ANYDML_TEST_SEED=", seed));
  std::mt19937_64 random(seed);
  for (int i = TestIterations(60); i > 0; --i) {
    const DataType type = kTypes[Uniform(random, 0, std::size(kTypes) - 1)];
    const uint32_t n = Uniform(random, 512, 100000);
    ExpectAgreesWithReference(type, n, Uniform(random, 1, n / 4), Uniform(random, 0, 1),
                              RandomBytes(Packed(type, {1, n}), random));
    ASSERT_FALSE(HasFatalFailure());
  }
}

}  // namespace
}  // namespace anydml::testing
