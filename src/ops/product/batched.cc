#include "ops/product/batched.h"

#include "ops/numbers/convert_rows.h"

namespace anydml {
namespace {

// With fewer multiplications, a thread costs more to wake than it saves.
constexpr double kProductsPerThread = 0x1p17;
// The size of a part if threads get several.
constexpr double kProductsPerPart = 0x1p24;
constexpr ProductCosts kCostsInPieces = {24, 4};  // rows of A may be copied
constexpr double kMaxPackedFloats = 0x1p40;

constexpr uint64_t RoundUpTo(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }

double Product(std::initializer_list<uint64_t> factors) {
  double product = 1;
  for (const uint64_t factor : factors) product *= static_cast<double>(factor);
  return product;
}

}  // namespace

ProductGrid CutProduct(uint64_t m, uint64_t n, uint32_t parts, const MicroKernel& kernel,
                       const ProductCosts& costs) {
  ProductGrid best;
  uint64_t least = ~uint64_t{0};
  for (uint32_t rows = 1; rows <= parts; ++rows) {
    const uint32_t columns = parts / rows;
    ProductGrid grid;
    grid.row_step = RoundUpTo((m + rows - 1) / rows, kernel.rows);
    grid.column_step = RoundUpTo((n + columns - 1) / columns, kernel.columns);
    grid.rows = static_cast<uint32_t>((m + grid.row_step - 1) / grid.row_step);
    grid.columns = static_cast<uint32_t>((n + grid.column_step - 1) / grid.column_step);
    // The cost of the largest part.
    const uint64_t cost =
        grid.row_step * grid.column_step + costs.row * grid.row_step + costs.column * grid.column_step;
    if (cost < least) {
      least = cost;
      best = grid;
    }
  }
  return best;
}

BatchedProduct::BatchedProduct(const BatchedSizes& sizes, bool sums_in_scratch, uint32_t threads,
                               ScratchLayout* scratch, const MicroKernel& kernel, uint32_t pieces)
    : sizes_(sizes) {
  const double products = Product({sizes.batch[0], sizes.batch[1], sizes.m, sizes.n, sizes.k});
  const auto useful = static_cast<uint32_t>(
      std::clamp<double>(products / kProductsPerThread, 1, static_cast<double>(threads)));
  // Whole matrices if there are enough of them.
  const uint64_t matrices = sizes.batch[0] * sizes.batch[1];
  ProductCosts costs;
  if (pieces > 1) costs = kCostsInPieces;
  pieces = useful == 1 ? 1
                       : static_cast<uint32_t>(std::clamp<double>(products / useful / kProductsPerPart, 1,
                                                                  static_cast<double>(pieces)));
  grid_ =
      CutProduct(sizes.m, sizes.n, matrices >= useful ? 1 : pieces * useful / static_cast<uint32_t>(matrices),
                 kernel, costs);
  workers_ = static_cast<uint32_t>(std::min<uint64_t>(matrices * grid_.rows * grid_.columns, useful));
  worker_floats_ = ProductScratch(std::min(grid_.row_step, sizes.m), std::min(grid_.column_step, sizes.n),
                                  sizes.k, sums_in_scratch, kernel);
  scratch_ = scratch->Add("panels", workers_ * worker_floats_ * sizeof(float), 64);
}

std::optional<PackedOperand> PackedOperand::Create(const Sizes& sizes, uint32_t threads,
                                                   ScratchLayout* layout) {
  PackedOperand operand;
  operand.sizes_ = sizes;
  operand.threads_ = threads;
  for (uint32_t d = 0; d < 2; ++d) operand.count_[d] = sizes.strides[d] == 0 ? 1 : sizes.batch[d];
  operand.panels_ = (sizes.elements + sizes.width - 1) / sizes.width;
  if (Product({operand.count_[0], operand.count_[1], operand.panels_, sizes.k, sizes.width}) >
      kMaxPackedFloats) {
    return std::nullopt;
  }
  const uint64_t numbers = operand.count_[0] * operand.count_[1] * operand.panels_ * sizes.k * sizes.width;
  operand.memory_ =
      layout->Add("packed panels", numbers * (sizes.halves ? sizeof(uint16_t) : sizeof(float)), 64);
  return operand;
}

void PackedOperand::PackPanels(const PanelSource& source, uint64_t first, uint64_t number, uint64_t count,
                               const Buffer& memory) const {
  const uint32_t width = sizes_.width;
  const uint64_t k = sizes_.k, elements = std::min<uint64_t>(count * width, sizes_.elements - first);
  if (!sizes_.halves) {
    source.Pack(first, elements, 0, k, width, memory_.In<float>(memory) + number * k * width);
    return;
  }
  uint16_t* const panels = memory_.In<uint16_t>(memory) + number * k * width;
  if (source.PackHalves(first, elements, 0, k, width, panels)) return;
  constexpr uint64_t kSteps = 64;
  alignas(64) float some[kSteps * kMaxTileColumns];
  for (uint64_t e = 0; e < elements; e += width) {
    for (uint64_t step = 0; step < k; step += kSteps) {
      const uint64_t steps = std::min(kSteps, k - step);
      source.Pack(first + e, std::min<uint64_t>(width, elements - e), step, steps, width, some);
      FloatsToHalves(some, panels + e * k + step * width, steps * width);
    }
  }
}

}  // namespace anydml
