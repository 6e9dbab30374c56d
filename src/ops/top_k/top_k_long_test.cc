// Long rows on a GPU: its kernels derive a bound from part of a row, and its blocks divide rows. Tries
// arbitrary data in that part and in the rest. (simd_test.cc tests the CPU's kernels target by target.)
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

class TopKLong : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* backend = std::getenv("ANYDML_TEST_BACKEND");
    if (backend == nullptr || std::string(backend) != "cuda") GTEST_SKIP() << "for GPUs";
  }

  static void Run(const TensorDesc& input, const Bytes& bytes, uint32_t k, uint32_t direction) {
    const std::vector<uint32_t> sizes = {input.sizes[0], k};
    const OperatorDesc desc = MakeDesc("TOP_K1", {{"InputTensor", input},
                                                  {"OutputValueTensor", Packed(input.type, sizes)},
                                                  {"OutputIndexTensor", Packed(DataType::kUInt32, sizes)},
                                                  {"Axis", uint32_t{1}},
                                                  {"K", k},
                                                  {"AxisDirection", direction}});
    SCOPED_TRACE(StrCat(Name(input.type), " ", SizesToString(input), " K ", k, " direction ", direction));
    ExpectAllAgree(desc, {bytes});
  }

  // For numbers up to 2^24; narrow integers keep the low bits.
  static Bytes BytesOf(const TensorDesc& input, const std::function<uint32_t(uint32_t)>& number_of) {
    Bytes bytes(input.total_bytes);
    const size_t width = BitSize(input.type) / 8;
    const uint64_t count = uint64_t{input.sizes[0]} * input.sizes[1];
    for (uint64_t at = 0; at < count; ++at) {
      const uint32_t number = number_of(static_cast<uint32_t>(at % input.sizes[1]));
      uint64_t element = number;
      if (input.type == DataType::kFloat32) {
        const auto value = static_cast<float>(number);
        std::memcpy(&element, &value, sizeof(value));
      }
      std::memcpy(bytes.data() + at * width, &element, width);
    }
    return bytes;
  }
};

TEST_F(TopKLong, RandomRows) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(StrCat("ANYDML_TEST_SEED=", seed));
  std::mt19937_64 random(seed);
  constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kInt8, DataType::kInt64};
  constexpr uint32_t kRows[] = {1, 2, 20, 100, 135, 265};
  for (int i = TestIterations(80); i > 0; --i) {
    const uint32_t rows = kRows[Uniform(random, 0, 5)];
    const uint32_t n = Uniform(random, 8192, std::min(3000000 / rows, 1000000u));
    const TensorDesc input = Packed(kTypes[Uniform(random, 0, 3)], {rows, n});
    const uint32_t k = Uniform(random, 1, Uniform(random, 0, 1) ? 50 : 2100);
    Run(input, RandomBytes(input, random), k, Uniform(random, 0, 1));
    if (HasFailure()) return;
  }
}

// As many rows as blocks, or a few more: one block reads a whole row, or several blocks divide it.
TEST_F(TopKLong, RowsOfOneBlockEach) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(StrCat("ANYDML_TEST_SEED=", seed));
  std::mt19937_64 random(seed);
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16, DataType::kInt8, DataType::kInt64}) {
    for (const uint32_t rows : {135u, 265u}) {
      const TensorDesc input = Packed(type, {rows, 50000 / (BitSize(type) / 8) + 1});
      for (const uint32_t k : {3u, 60u, 1000u}) {
        Run(input, RandomBytes(input, random), k, Uniform(random, 0, 1));
        if (HasFailure()) return;
      }
    }
  }
}

TEST_F(TopKLong, SortedAndEqualRows) {
  for (const DataType type : {DataType::kFloat32, DataType::kUInt16, DataType::kUInt8, DataType::kUInt64}) {
    for (const uint32_t rows : {1u, 20u, 135u}) {
      const TensorDesc input = Packed(type, {rows, 2000003 / rows});
      const uint32_t n = input.sizes[1];
      for (const uint32_t k : {1u, 300u, 1500u}) {
        Run(input, BytesOf(input, [](uint32_t i) { return i; }), k, 1);
        Run(input, BytesOf(input, [&](uint32_t i) { return n - i; }), k, 1);
        Run(input, BytesOf(input, [](uint32_t) { return 7; }), k, 0);
        if (HasFailure()) return;
      }
    }
  }
}

// The first elements that each warp reads are the best: a bound derived from them is wrong for the others.
TEST_F(TopKLong, BestElementsWhereABoundIsGuessed) {
  struct Rows {
    uint32_t rows, n;
    uint32_t parts;  // of a row, one per warp
  };
  for (const auto [rows, n, parts] : {Rows{135, 60000, 16}, Rows{100, 300000, 32}}) {
    constexpr uint32_t kUnit = 128;  // elements that a warp reads at one time
    const uint32_t units = (n - 1) / kUnit + 1;
    std::vector<uint32_t> numbers(n);
    for (uint32_t i = 0; i < n; ++i) numbers[i] = i % 1000;
    uint32_t best = 10000;
    for (uint32_t part = 0; part < parts; ++part) {
      const uint32_t begin = units * part / parts * kUnit;
      for (uint32_t i = 0; i < kUnit; i += 4) numbers[begin + i] = best++;
    }
    const TensorDesc input = Packed(DataType::kFloat32, {rows, n});
    Run(input, BytesOf(input, [&](uint32_t i) { return numbers[i]; }), 450, 1);
  }
}

}  // namespace
}  // namespace anydml::testing
