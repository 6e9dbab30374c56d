// Blocked products: parts smaller than the one that determined the scratch size do not exceed it.
#include "ops/product/blocked.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "ops/numbers/convert_rows.h"
#include "ops/product/operands.h"

namespace anydml {
namespace {

struct Sizes {
  uint64_t m, n, k;
};

void PrintTo(const Sizes& s, std::ostream* out) { *out << s.m << " x " << s.n << " x " << s.k; }

constexpr float kGuard = 0x1p100f;

class Keeps final : public ProductSink {
 public:
  Keeps(uint64_t columns, std::vector<float>* to) : columns_(columns), to_(to) {}
  void Finish(uint64_t row, uint64_t column, uint64_t count, float* sums) const override {
    std::copy_n(sums, count, to_->begin() + static_cast<ptrdiff_t>(row * columns_ + column));
  }

 private:
  uint64_t columns_;
  std::vector<float>* to_;
};

// Small integers, whose sums are exact.
std::vector<float> Numbers(uint64_t count, std::mt19937* random) {
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>((*random)() % 7) - 3;
  return numbers;
}

void RunInScratchOf(const Sizes& most, const Sizes& s, bool in_scratch, std::mt19937* random) {
  SCOPED_TRACE(::testing::PrintToString(s) + " in scratch of " + ::testing::PrintToString(most));
  ASSERT_TRUE(s.m <= most.m && s.n <= most.n && s.k <= most.k);
  const std::vector<float> a = Numbers(s.m * s.k, random), b = Numbers(s.k * s.n, random);
  const uint64_t floats = ProductScratch(most.m, most.n, most.k, in_scratch);
  constexpr uint64_t kBehind = 1 << 16;
  std::vector<float> scratch(floats + kBehind, kGuard), result(s.m * s.n);
  const StridedPanels rows(reinterpret_cast<const std::byte*>(a.data()), DataType::kFloat32, s.k, 1);
  const StridedPanels columns(reinterpret_cast<const std::byte*>(b.data()), DataType::kFloat32, 1, s.n);
  const Keeps sink(s.n, &result);
  ProductPart part = {0, s.m, 0, s.n, s.k, in_scratch ? nullptr : result.data(), s.n};
  part.few_steps = s.k % 4 == 0;
  RunProduct<float>(part, rows, columns, in_scratch ? &sink : nullptr, {scratch.data(), floats});
  for (uint64_t i = 0; i < kBehind; ++i) ASSERT_EQ(scratch[floats + i], kGuard) << i << " behind";
  for (int sample = 0; sample < 200; ++sample) {
    const uint64_t i = (*random)() % s.m, j = (*random)() % s.n;
    float sum = 0;
    for (uint64_t step = 0; step < s.k; ++step) sum += a[i * s.k + step] * b[step * s.n + j];
    ASSERT_EQ(result[i * s.n + j], sum) << i << ", " << j;
  }
}

// A smaller part may get deeper panels, which need more scratch than those of the largest part.
TEST(BlockedProduct, SmallerPartsStayInTheirScratch) {
  std::mt19937 random(1);
  const std::pair<Sizes, Sizes> parts[] = {
      {{144, 64, 384}, {96, 64, 384}},      {{144, 64, 512}, {80, 64, 512}},
      {{144, 64, 1024}, {144, 64, 700}},    {{144, 64, 1024}, {24, 64, 900}},
      {{144, 2048, 64}, {144, 700, 64}},    {{136, 1056, 1024}, {136, 1008, 1024}},
      {{1000, 300, 600}, {1000, 200, 600}}, {{300, 400, 2048}, {150, 300, 2048}},
      {{100, 300, 1024}, {9, 300, 1024}}};
  for (const auto& [most, part] : parts) {
    for (const bool in_scratch : {true, false}) RunInScratchOf(most, part, in_scratch, &random);
  }
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const Sizes most = {1 + random() % 300, 1 + random() % 1200, 1 + random() % 1200};
    const Sizes part = {1 + random() % most.m, 1 + random() % most.n, 1 + random() % most.k};
    RunInScratchOf(most, part, round % 2 != 0, &random);
  }
}

std::vector<uint16_t> Halves(const std::vector<float>& numbers) {
  std::vector<uint16_t> halves(numbers.size());
  FloatsToHalves(numbers.data(), halves.data(), numbers.size());
  return halves;
}

// FLOAT16, and rows of A that are not contiguous along k; `expected` is FLOAT16, too.
void RunOtherWays(const Sizes& s, const std::vector<float>& a, const std::vector<float>& b,
                  const std::vector<float>& expected) {
  const auto [m, n, k] = s;
  const uint32_t width = GemmMicroKernel().columns;
  const std::vector<uint16_t> half_a = Halves(a), half_b = Halves(b);
  std::vector<float> across(a.size());
  for (uint64_t i = 0; i < m; ++i) {
    for (uint64_t step = 0; step < k; ++step) across[step * m + i] = a[i * k + step];
  }
  const auto panels = [](const auto& numbers, DataType type, uint64_t element, uint64_t step) {
    return StridedPanels(reinterpret_cast<const std::byte*>(numbers.data()), type, element, step);
  };
  const StridedPanels rows = panels(half_a, DataType::kFloat16, k, 1);
  const StridedPanels rows_across = panels(across, DataType::kFloat32, 1, m);
  const StridedPanels columns = panels(half_b, DataType::kFloat16, 1, n);
  std::vector<uint16_t> packed((n + width - 1) / width * width * k);
  ASSERT_TRUE(columns.PackHalves(0, n, 0, k, width, packed.data()));
  for (const bool in_scratch : {true, false}) {
    std::vector<float> scratch(ProductScratch(m, n, k, in_scratch)), result(m * n);
    const Keeps sink(n, &result);
    const ProductPart part = {0, m, 0, n, k, in_scratch ? nullptr : result.data(), n};
    const auto run = [&](const ProductOperand& of_a, const ProductOperand& of_b) {
      std::fill(result.begin(), result.end(), kGuard);
      RunProduct<float>(part, of_a, of_b, in_scratch ? &sink : nullptr, scratch);
      ASSERT_EQ(result, expected);
    };
    run(rows, columns);
    run(rows_across, columns);
    run(rows, ProductOperand(packed.data()));
    run(rows_across, panels(b, DataType::kFloat32, 1, n));
  }
}

// Rows are read in place, for a whole tile and for a partial one; B is packed during the product or
// beforehand.
TEST(BlockedProduct, EveryNumberOfRowsAndVectors) {
  std::mt19937 random(2);
  const MicroKernel& kernel = GemmMicroKernel();
  for (uint64_t m = 1; m <= 3 * uint64_t{kernel.rows}; ++m) {
    for (uint64_t n = 1; n <= 2 * uint64_t{kernel.columns}; n += kernel.lanes / 2 + 1) {
      const uint64_t k = m % 5 == 0 ? 1024 : random() % 700 + 1;
      SCOPED_TRACE(::testing::PrintToString(Sizes{m, n, k}));
      const std::vector<float> a = Numbers(m * k, &random), b = Numbers(k * n, &random);
      const StridedPanels rows(reinterpret_cast<const std::byte*>(a.data()), DataType::kFloat32, k, 1);
      const StridedPanels columns(reinterpret_cast<const std::byte*>(b.data()), DataType::kFloat32, 1, n);
      std::vector<float> panels((n + kernel.columns - 1) / kernel.columns * kernel.columns * k);
      columns.Pack(0, n, 0, k, kernel.columns, panels.data());
      std::vector<float> scratch(ProductScratch(m, n, k, false)), expected(m * n), result(m * n);
      for (uint64_t i = 0; i < m; ++i) {
        for (uint64_t step = 0; step < k; ++step) {
          for (uint64_t j = 0; j < n; ++j) expected[i * n + j] += a[i * k + step] * b[step * n + j];
        }
      }
      const ProductPart part = {0, m, 0, n, k, result.data(), n};
      RunProduct<float>(part, rows, columns, nullptr, scratch);
      ASSERT_EQ(result, expected);
      std::fill(result.begin(), result.end(), kGuard);
      RunProduct<float>(part, rows, ProductOperand(panels.data()), nullptr, scratch);
      ASSERT_EQ(result, expected);
      RunOtherWays({m, n, k}, a, b, expected);
    }
  }
}

}  // namespace
}  // namespace anydml
