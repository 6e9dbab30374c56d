#include "ops/recurrent/cpu/packed_product.h"

#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/gemm/cpu/operands.h"
#include "ops/recurrent/cpu/few_panels.h"

namespace anydml {
namespace {

// Below this many multiplications a thread costs more to wake than it saves.
constexpr uint64_t kProductsPerThread = uint64_t{1} << 17;
// As many steps of a panel at a time as stay in the first-level cache.
constexpr uint64_t kPanelFloats = 6144;

// Weights as panels of `columns` columns.
class PanelProduct : public Kernel {
 public:
  PanelProduct(const GemmProblem& problem, DataType weights, uint32_t columns, uint32_t threads)
      : p_(problem), columns_(columns), panels_((p_.n + columns - 1) / columns), weights_(weights) {
    const uint64_t products = p_.Batches() * p_.m * p_.n * p_.k;
    const auto useful = std::clamp<uint64_t>(products / kProductsPerThread, 1, threads);
    workers_ = static_cast<uint32_t>(std::min(useful, p_.Batches() * panels_));
  }

  uint64_t persistent_bytes() const override {
    return p_.Batches() * panels_ * p_.k * columns_ * sizeof(float);
  }

  Status Initialize(const KernelArguments& arguments) const override {
    auto* const to = reinterpret_cast<float*>(arguments.persistent.data);
    ForPanels(arguments, [&](uint64_t number) {
      const uint64_t first = number % panels_ * columns_;
      const uint64_t matrix = number / panels_ * p_.b.batch[0];
      const StridedPanels b(arguments.inputs[1].data + matrix * (BitSize(weights_) / 8), weights_,
                            p_.b.column, p_.b.row);
      b.Pack(first, std::min<uint64_t>(columns_, p_.n - first), 0, p_.k, columns_,
             to + number * p_.k * columns_);
    });
    return {};
  }

 protected:
  template <typename Body>
  void ForPanels(const KernelArguments& arguments, Body&& body) const {
    const uint64_t all = p_.Batches() * panels_;
    SharedParts shared(all, workers_);
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      for (uint64_t number; shared.Take(worker, &number);) body(number);
    });
  }

  const GemmProblem p_;
  const uint32_t columns_;
  const uint64_t panels_;

 private:
  DataType weights_;
  uint32_t workers_;
};

class FewPackedProduct final : public PanelProduct {
 public:
  FewPackedProduct(const GemmProblem& problem, DataType weights, const FewPanels& few, uint32_t threads)
      : PanelProduct(problem, weights, few.columns, threads), few_(few) {}

  Status Run(const KernelArguments& arguments) const override {
    ForPanels(arguments, [&](uint64_t number) {
      const uint64_t matrix = number / panels_, column = number % panels_ * columns_;
      const auto* const a = reinterpret_cast<const float*>(arguments.inputs[0].data) + matrix * p_.m * p_.k;
      const auto* const b =
          reinterpret_cast<const float*>(arguments.persistent.data) + number * p_.k * columns_;
      auto* const to = reinterpret_cast<float*>(arguments.outputs[0].data) + matrix * p_.m * p_.n + column;
      alignas(64) float sums[kMostFewRows * kMaxFewColumns];
      few_.run(a, p_.m, b, p_.k, sums);
      const uint64_t count = std::min<uint64_t>(columns_, p_.n - column);
      for (uint64_t row = 0; row < p_.m; ++row) std::copy_n(sums + row * columns_, count, to + row * p_.n);
    });
    return {};
  }

 private:
  FewPanels few_;
};

class PackedProduct final : public PanelProduct {
 public:
  PackedProduct(const GemmProblem& problem, DataType weights, uint32_t threads)
      : PanelProduct(problem, weights, GemmMicroKernel().columns, threads), tile_(GemmMicroKernel()) {
    tiles_ = (p_.m + tile_.rows - 1) / tile_.rows;
    steps_ = std::clamp<uint64_t>(kPanelFloats / tile_.columns, 64, 256);
  }

  uint64_t temporary_bytes() const override {
    return p_.Batches() * tiles_ * p_.k * tile_.rows * sizeof(float);
  }

  Status Run(const KernelArguments& arguments) const override {
    auto* const packed_a = reinterpret_cast<float*>(arguments.temporary.data);
    for (uint64_t number = 0; number < p_.Batches() * tiles_; ++number) {
      const uint64_t first = number % tiles_ * tile_.rows;
      const uint64_t matrix = number / tiles_ * p_.m * p_.k;
      const StridedPanels a(arguments.inputs[0].data + matrix * sizeof(float), DataType::kFloat32, p_.k, 1);
      a.Pack(first, std::min<uint64_t>(tile_.rows, p_.m - first), 0, p_.k, tile_.rows,
             packed_a + number * p_.k * tile_.rows);
    }
    ForPanels(arguments, [&](uint64_t number) { RunPanel(number, packed_a, arguments); });
    return {};
  }

 private:
  void RunPanel(uint64_t number, const float* packed_a, const KernelArguments& arguments) const {
    const uint64_t matrix = number / panels_, column = number % panels_ * tile_.columns;
    const float* const a = packed_a + matrix * tiles_ * p_.k * tile_.rows;
    const float* const b =
        reinterpret_cast<const float*>(arguments.persistent.data) + number * p_.k * tile_.columns;
    float* const output = reinterpret_cast<float*>(arguments.outputs[0].data) + matrix * p_.m * p_.n + column;
    const uint64_t columns = std::min<uint64_t>(tile_.columns, p_.n - column);
    for (uint64_t step = 0; step < p_.k; step += steps_) {
      const uint64_t steps = std::min(steps_, p_.k - step);
      for (uint64_t tile = 0; tile < tiles_; ++tile) {
        const uint64_t row = tile * tile_.rows;
        RunTile(a + (tile * p_.k + step) * tile_.rows, b + step * tile_.columns, steps,
                std::min<uint64_t>(tile_.rows, p_.m - row), columns, step != 0, output + row * p_.n);
      }
    }
  }

  // At the borders through memory of a whole tile.
  void RunTile(const float* a, const float* b, uint64_t steps, uint64_t rows, uint64_t columns,
               bool accumulate, float* to) const {
    if (rows == tile_.rows && columns == tile_.columns) {
      tile_.run(a, b, tile_.columns, steps, to, p_.n, accumulate, {b, 0});
      return;
    }
    alignas(64) float whole[kMaxTileRows * kMaxTileColumns];
    tile_.run(a, b, tile_.columns, steps, whole, tile_.columns, false, {b, 0});
    for (uint64_t i = 0; i < rows; ++i) {
      for (uint64_t j = 0; j < columns; ++j) {
        const float sum = whole[i * tile_.columns + j];
        to[i * p_.n + j] = accumulate ? to[i * p_.n + j] + sum : sum;
      }
    }
  }

  const MicroKernel& tile_;
  uint64_t tiles_;  // of rows of A
  uint64_t steps_;
};

}  // namespace

std::unique_ptr<const Kernel> CreatePackedProduct(const GemmProblem& problem, DataType weights,
                                                  uint32_t threads) {
  if (problem.m <= kMostFewRows) {
    const FewPanels few = FindFewPanels();
    if (!problem.b_is_owned || few.columns > kMaxFewColumns) return nullptr;
    return std::make_unique<FewPackedProduct>(problem, weights, few, threads);
  }
  return std::make_unique<PackedProduct>(problem, weights, threads);
}

}  // namespace anydml
