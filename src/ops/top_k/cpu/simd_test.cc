// The vectorized kernels on every SIMD target of this machine, with several numbers of threads, against the
// reference: lengths around vector widths, K around thresholds, adversarial orders of values, sequences that
// are not packed.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "support/operator_runner.h"
#include "support/simd_targets.h"

namespace anydml::testing {
namespace {

constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kInt64,  DataType::kInt32,
                               DataType::kInt16,   DataType::kInt8,    DataType::kUInt64, DataType::kUInt32,
                               DataType::kUInt16,  DataType::kUInt8};
constexpr const char* kVectorised[] = {"cpu.rank", "cpu.maxima", "cpu.sample", "cpu.keys"};

OperatorDesc Describe(const TensorDesc& input, uint32_t axis, uint32_t k, uint32_t direction,
                      DataType index_type = DataType::kUInt32) {
  std::vector<uint32_t> sizes(input.sizes.begin(), input.sizes.begin() + input.rank);
  sizes[axis] = k;
  return MakeDesc("TOP_K1", {{"InputTensor", input},
                             {"OutputValueTensor", Packed(input.type, sizes)},
                             {"OutputIndexTensor", Packed(index_type, sizes)},
                             {"Axis", axis},
                             {"K", k},
                             {"AxisDirection", direction}});
}

// Every target, vectorized implementation and number of threads gives the reference's bytes.
void ExpectAgrees(const OperatorDesc& desc, const Bytes& bytes) {
  const RunResult reference = RunOperator(desc, {bytes}, {.implementation = "cpu.reference"});
  const TensorDesc& input = *desc.tensor("InputTensor");
  const uint32_t axis = desc.uint("Axis");
  SCOPED_TRACE(StrCat(Name(input.type), " n ", input.sizes[axis], " K ", desc.uint("K"), " direction ",
                      desc.uint("AxisDirection")));
  ForEachTarget([&] {
    int fit = 0;
    for (const char* name : kVectorised) {
      for (const uint32_t threads : {1u, 2u, 7u}) {
        const RunResult result = RunOperator(desc, {bytes}, {.implementation = name, .threads = threads});
        if (result.implementation.empty()) break;  // does not fit
        ++fit;
        ASSERT_EQ(result.outputs, reference.outputs) << name << ", threads " << threads;
      }
    }
    ASSERT_GT(fit, 0);
  });
}

void ExpectRowAgrees(DataType type, uint32_t n, uint32_t k, uint32_t direction, const Bytes& row) {
  ExpectAgrees(Describe(Packed(type, {1, n}), 1, k, direction), row);
}

// Both directions, with K around the thresholds that are at most n.
void ExpectAgreesForAllK(DataType type, uint32_t n, const Bytes& row, Thinning& thinning) {
  std::vector<uint32_t> ks = {1,  2,      16,    17,    39,        40,    64,    65, 80,
                              81, n / 32, n / 8, n / 6, n / 6 + 1, n / 4, n - 1, n};
  std::sort(ks.begin(), ks.end());
  ks.erase(std::unique(ks.begin(), ks.end()), ks.end());
  for (uint32_t k : ks) {
    if (k < 1 || k > n) continue;
    for (uint32_t direction : {0u, 1u}) {
      if (!thinning.Runs()) continue;
      ExpectRowAgrees(type, n, k, direction, row);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(TopKSimd, EveryLengthUpTo300) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(StrCat("ANYDML_TEST_SEED=", seed));
  std::mt19937_64 random(seed);
  Thinning thinning;
  for (uint32_t n = 1; n <= 300; ++n) {
    for (DataType type : kTypes) {
      for (uint32_t direction : {0u, 1u}) {
        if (!thinning.Runs()) continue;
        ExpectRowAgrees(type, n, Uniform(random, 1, n), direction, RandomBytes(Packed(type, {1, n}), random));
        ExpectRowAgrees(type, n, Uniform(random, 1, std::max(1u, n / 6)), direction,
                        RandomBytes(Packed(type, {1, n}), random));
      }
      ASSERT_FALSE(HasFailure());
    }
  }
}

TEST(TopKSimd, LengthsAroundVectorWidthsOfEveryType) {
  std::mt19937_64 random(TestSeed());
  Thinning thinning;
  for (DataType type : kTypes) {
    for (uint32_t n : {511u, 512u, 513u, 639u, 1000u, 2047u, 2049u, 8191u, 8193u}) {
      ExpectAgreesForAllK(type, n, RandomBytes(Packed(type, {1, n}), random), thinning);
      ASSERT_FALSE(HasFailure());
    }
  }
}

std::vector<std::vector<float>> HostileRows(uint32_t n) {
  std::mt19937_64 random(TestSeed());
  std::vector<float> ascending(n), few(n), zeros(n), nans(n), spikes(n), near_one(n), late(n);
  for (uint32_t i = 0; i < n; ++i) {
    ascending[i] = static_cast<float>(i);
    few[i] = static_cast<float>(random() % 3);
    zeros[i] = random() % 2 ? 0.0f : -0.0f;
    nans[i] = std::bit_cast<float>(static_cast<uint32_t>(random()) | 0x7F800001u);
    // Only one of the groups whose maxima form the bound has large values: the bound is too low.
    spikes[i] = i % 16 == 3 ? 1e6f + static_cast<float>(i) : static_cast<float>(i % 7);
    near_one[i] = std::bit_cast<float>(0x3F800000u | static_cast<uint32_t>(random() % 4096));
    // Only elements that the sample skips are large: too many candidates pass.
    late[i] = i < n / 2 ? 0.0f : static_cast<float>(i);
  }
  // Only elements of the sample are large: the threshold is too high.
  std::vector<float> sampled(n, 1.0f);
  const auto size = static_cast<uint32_t>(4 * std::sqrt(n));
  for (uint32_t i = 0; i < size / 16; ++i) {
    const uint64_t step = n / (size / 16);
    std::fill_n(sampled.begin() +
                    static_cast<std::ptrdiff_t>(i * step + (uint64_t{i * 0x9E3779B1u} * (step - 16) >> 32)),
                16, 1e6f);
  }
  std::vector<float> descending(ascending.rbegin(), ascending.rend());
  std::vector<float> mixed = nans;
  for (uint32_t i = 0; i < n; i += 2) mixed[i] = random() % 2 ? INFINITY : -INFINITY;
  return {ascending,
          descending,
          few,
          zeros,
          nans,
          spikes,
          near_one,
          late,
          mixed,
          sampled,
          std::vector<float>(n, 5.0f)};
}

TEST(TopKSimd, HostileRows) {
  Thinning thinning;
  for (uint32_t n : {100u, 1000u, 20000u}) {
    for (const std::vector<float>& row : HostileRows(n)) {
      ExpectAgreesForAllK(DataType::kFloat32, n, Scattered(Packed(DataType::kFloat32, {1, n}), row),
                          thinning);
      ASSERT_FALSE(HasFailure());
    }
  }
}

// FLOAT16 is compared by its bits: every kind of value against every other.
TEST(TopKSimd, SpecialHalves) {
  constexpr uint32_t kLength = 600;
  constexpr uint16_t kValues[] = {0,      0x8000, 1,      0x8001, 0x3C00, 0xBC00, 0x7BFF,
                                  0xFBFF, 0x7C00, 0xFC00, 0x7C01, 0xFC01, 0x7FFF, 0xFFFF};
  Thinning thinning;
  for (const uint16_t most : kValues) {
    for (const uint16_t some : kValues) {
      std::vector<uint16_t> row(kLength, most);
      for (uint32_t i : {3u, 70u, 300u, 301u, kLength - 1}) row[i] = some;
      const Bytes bytes = Scattered(Packed(DataType::kFloat16, {1, kLength}), row);
      for (const uint32_t k : {1u, 4u, 60u, 400u}) {
        for (uint32_t direction : {0u, 1u}) {
          if (thinning.Runs()) ExpectRowAgrees(DataType::kFloat16, kLength, k, direction, bytes);
        }
      }
      ASSERT_FALSE(HasFailure()) << std::hex << most << " " << some;
    }
  }
}

// Rows long enough for several threads; K around the thresholds above which parts find their own maxima,
// share the sort as well, or sort by radix.
TEST(TopKSimd, SplitRows) {
  std::mt19937_64 random(TestSeed());
  Thinning thinning;
  for (DataType type : {DataType::kFloat32, DataType::kInt8, DataType::kUInt64}) {
    for (uint32_t n : {65536u, 150001u}) {
      for (uint32_t k : {1u, 20u, 100u, 600u, 7000u, n / 2, n}) {
        if (!thinning.Runs()) continue;
        ExpectRowAgrees(type, n, k, k % 2, RandomBytes(Packed(type, {1, n}), random));
        ASSERT_FALSE(HasFailure());
      }
    }
  }
  for (const std::vector<float>& row : HostileRows(120000)) {
    for (uint32_t k : {50u, 5000u}) {
      if (!thinning.Runs()) continue;
      ExpectRowAgrees(DataType::kFloat32, 120000, k, 1,
                      Scattered(Packed(DataType::kFloat32, {1, 120000}), row));
      ASSERT_FALSE(HasFailure());
    }
  }
}

// Sequences that are not packed are processed in tiles: numbers of sequences around a tile's, lengths around
// a block's.
TEST(TopKSimd, OtherAxes) {
  std::mt19937_64 random(TestSeed());
  Thinning thinning;
  for (DataType type : kTypes) {
    for (uint32_t neighbours : {1u, 3u, 4u, 5u, 66u}) {
      for (uint32_t n : {2u, 15u, 70u, 520u}) {
        const TensorDesc input = Packed(type, {2, n, neighbours});
        for (uint32_t k : {Uniform(random, 1, n), std::max(1u, n / 7)}) {
          if (!thinning.Runs()) continue;
          ExpectAgrees(Describe(input, 1, k, Uniform(random, 0, 1), DataType::kUInt64),
                       RandomBytes(input, random));
        }
        ASSERT_FALSE(HasFailure());
      }
    }
    // As many as the widest block of columns has, and more; also without ties.
    const TensorDesc input = Packed(type, {300, 330});
    Bytes distinct(input.total_bytes);
    for (uint8_t& byte : distinct) byte = static_cast<uint8_t>(random());
    ExpectAgrees(Describe(input, 0, 20, Uniform(random, 0, 1)), distinct);
    ASSERT_FALSE(HasFailure());
  }
}

TEST(TopKSimd, RandomRows) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(StrCat("ANYDML_TEST_SEED=", seed));
  std::mt19937_64 random(seed);
  for (int i = TestIterations(40); i > 0; --i) {
    const DataType type = kTypes[Uniform(random, 0, std::size(kTypes) - 1)];
    const uint32_t n = Uniform(random, 1, 1u << Uniform(random, 1, 17));
    const uint32_t rows = Uniform(random, 1, 1 + 100000 / n);
    const bool last = Uniform(random, 0, 2) != 0;
    const TensorDesc input = last ? Packed(type, {rows, n}) : Packed(type, {n, rows});
    const uint32_t k = std::min(n, Uniform(random, 1, 1 + n / Uniform(random, 1, 100)));
    ExpectAgrees(Describe(input, last ? 1 : 0, k, Uniform(random, 0, 1)), RandomBytes(input, random));
    ASSERT_FALSE(HasFailure());
  }
}

// For packed sequences, the memory of a run beyond its operands is bounded by K and the number of threads.
TEST(TopKSimd, ScratchGrowsWithKNotWithN) {
  const auto scratch = [](uint32_t n, uint32_t k, uint32_t threads) {
    LoweredOperator lowered;
    const OperatorDesc desc = Describe(Packed(DataType::kFloat32, {1, n}), 1, k, 1);
    LowerContext context;
    context.threads = threads;
    EXPECT_TRUE(ImplementationOf(desc).lower(desc, context, &lowered).ok());
    return lowered.kernel->temporary_bytes();
  };
  constexpr uint64_t kConstant = 512 << 10;
  for (const uint32_t threads : {1u, 2u, 16u}) {
    for (const uint32_t k : {1u, 10u, 1000u, 100000u}) {
      for (uint32_t n = k; n <= 1u << 28; n = n * 4 + 1) {
        EXPECT_LE(scratch(n, k, threads), threads * (kConstant + 128 * uint64_t{k})) << n << " " << k;
      }
    }
  }
}

}  // namespace
}  // namespace anydml::testing
