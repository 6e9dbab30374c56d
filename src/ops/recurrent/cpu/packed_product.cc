#include "ops/recurrent/cpu/packed_product.h"

#include <algorithm>

#include "ops/common/parallel.h"
#include "ops/product/operands.h"
#include "ops/recurrent/cpu/few_panels.h"

namespace anydml {
namespace {

// For a few rows: weights as panels of columns, which are read sequentially.
class FewPackedProduct final : public Kernel {
 public:
  FewPackedProduct(const GemmProblem& problem, DataType weights, const FewPanels& few, uint32_t threads)
      : p_(problem), few_(few), panels_((p_.n + few.columns - 1) / few.columns), weights_(weights) {
    const uint64_t products = p_.Batches() * p_.m * p_.n * p_.k;
    const auto useful = std::clamp<uint64_t>(products / kProductsPerThread, 1, threads);
    workers_ = static_cast<uint32_t>(std::min(useful, p_.Batches() * panels_));
  }

  uint64_t persistent_bytes() const override {
    return p_.Batches() * panels_ * p_.k * few_.columns * sizeof(float);
  }

  Status Initialize(const KernelArguments& arguments) const override {
    auto* const to = reinterpret_cast<float*>(arguments.persistent.data);
    ForPanels(arguments, [&](uint64_t number) {
      const uint64_t first = number % panels_ * few_.columns;
      const uint64_t matrix = number / panels_ * p_.b.batch[0];
      const StridedPanels b(arguments.inputs[1].data + matrix * (BitSize(weights_) / 8), weights_,
                            p_.b.column, p_.b.row);
      b.Pack(first, std::min<uint64_t>(few_.columns, p_.n - first), 0, p_.k, few_.columns,
             to + number * p_.k * few_.columns);
    });
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    ForPanels(arguments, [&](uint64_t number) {
      const uint64_t matrix = number / panels_, column = number % panels_ * few_.columns;
      const auto* const a = reinterpret_cast<const float*>(arguments.inputs[0].data) + matrix * p_.m * p_.k;
      const auto* const b =
          reinterpret_cast<const float*>(arguments.persistent.data) + number * p_.k * few_.columns;
      auto* const to = reinterpret_cast<float*>(arguments.outputs[0].data) + matrix * p_.m * p_.n + column;
      alignas(64) float sums[kMostFewRows * kMaxFewColumns];
      few_.run(a, p_.m, b, p_.k, sums);
      const uint64_t count = std::min<uint64_t>(few_.columns, p_.n - column);
      for (uint64_t row = 0; row < p_.m; ++row) {
        std::copy_n(sums + row * few_.columns, count, to + row * p_.n);
      }
    });
    return {};
  }

 private:
  template <typename Body>
  void ForPanels(const KernelArguments& arguments, Body&& body) const {
    SharedParts shared(p_.Batches() * panels_, workers_);
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      for (uint64_t number; shared.Take(worker, &number);) body(number);
    });
  }

  const GemmProblem p_;
  const FewPanels few_;
  const uint64_t panels_;
  const DataType weights_;
  uint32_t workers_;
};

}  // namespace

std::unique_ptr<const Kernel> CreatePackedProduct(const GemmProblem& problem,
                                                  const GroupedProduct::Inputs& inputs, DataType weights,
                                                  uint32_t threads) {
  // With strides of 0, little memory describes any number of weights.
  constexpr double kMostWeights = 0x1p36;
  const double columns = static_cast<double>(problem.Batches()) * static_cast<double>(problem.n);
  if (columns * static_cast<double>(problem.k + inputs.k) > kMostWeights) return nullptr;
  if (problem.m <= kMostFewRows) {
    const FewPanels few = FindFewPanels();
    if (!problem.b_is_owned || few.columns > kMaxFewColumns) return nullptr;
    return std::make_unique<FewPackedProduct>(problem, weights, few, threads);
  }
  return std::make_unique<GroupedProduct>(problem, inputs, weights, threads);
}

}  // namespace anydml
