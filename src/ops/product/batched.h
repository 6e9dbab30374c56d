// Shared by GEMM, convolutions and integer products: batches of products of one size, cut into parts for
// threads, with operands that may have been packed at initialisation.
#pragma once

#include <array>
#include <optional>

#include "kernel/scratch_layout.h"
#include "ops/common/parallel.h"
#include "ops/product/blocked.h"

namespace anydml {

// The index of a product in a batch of two dimensions.
using BatchIndex = std::array<uint64_t, 2>;

struct BatchedSizes {
  std::array<uint64_t, 2> batch;
  uint64_t m, n, k;
};

// The costs by which an m x n product is cut into at most `parts` parts. Each row and each column of a part
// costs as much, besides its products, as this many of them.
struct ProductCosts {
  uint64_t row = 4, column = 4;
};
struct ProductGrid {
  uint32_t rows = 1;
  uint32_t columns = 1;
  uint64_t row_step, column_step;  // multiples of the tile
};
ProductGrid CutProduct(uint64_t m, uint64_t n, uint32_t parts, const MicroKernel& kernel = GemmMicroKernel(),
                       const ProductCosts& costs = {});

class BatchedProduct {
 public:
  // `scratch` is the layout of the kernel's temporary memory. `pieces`: little or nothing is packed per part,
  // so each thread may get up to this many, and a delayed thread leaves some of them to others.
  BatchedProduct(const BatchedSizes& sizes, bool sums_in_scratch, uint32_t threads, ScratchLayout* scratch,
                 const MicroKernel& kernel = GemmMicroKernel(), uint32_t pieces = 1);

  // Calls body(index, part, memory) for all parts of all products; the part's sums are not set, and the
  // memory is what RunProduct needs.
  template <typename Sum, typename Body>
  void ForParts(const KernelArguments& arguments, Body&& body) const {
    const uint64_t parts = sizes_.batch[0] * sizes_.batch[1] * grid_.rows * grid_.columns;
    SharedParts shared(parts, workers_);
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      const std::span<float> memory(scratch_.In<float>(arguments.temporary) + worker * worker_floats_,
                                    worker_floats_);
      for (uint64_t number; shared.Take(worker, &number);) {
        const uint64_t column = number % grid_.columns * grid_.column_step;
        const uint64_t row = number / grid_.columns % grid_.rows * grid_.row_step;
        const uint64_t product = number / grid_.columns / grid_.rows;
        const PartOf<Sum> part = {row,      std::min(grid_.row_step, sizes_.m - row),
                                  column,   std::min(grid_.column_step, sizes_.n - column),
                                  sizes_.k, nullptr,
                                  0};
        body(BatchIndex{product / sizes_.batch[1], product % sizes_.batch[1]}, part, memory);
      }
    });
  }

 private:
  BatchedSizes sizes_;
  ProductGrid grid_;
  uint32_t workers_;
  uint64_t worker_floats_;
  ScratchLayout::Piece scratch_;
};

// A packed operand: in persistent memory, or in temporary memory if every run packs it for all threads. It
// contains the panels of each matrix, with all their steps.
class PackedOperand {
 public:
  struct Sizes {
    std::array<uint64_t, 2> batch;
    std::array<uint64_t, 2> strides;  // of the batch: matrices repeated by a stride of 0 are stored once
    uint64_t elements;                // rows of A or columns of B
    uint64_t k;
    uint32_t width;       // panel width: that of a tile
    bool halves = false;  // FLOAT16 is stored as such, in half of the memory
    bool temporary = false;
  };

  // Empty if it would be absurdly large: with strides of 0, little memory describes a matrix of any size.
  static std::optional<PackedOperand> Create(const Sizes& sizes, uint32_t threads, ScratchLayout* layout);

  // `source_of(index)` is the PanelSource of that matrix.
  template <typename SourceOf>
  void Pack(const KernelArguments& arguments, SourceOf&& source_of) const {
    // Several panels at a time, because their elements are neighbours in memory.
    constexpr uint64_t kTogether = 8;
    const uint64_t all = count() * panels_;
    const auto workers = static_cast<uint32_t>(std::min<uint64_t>(threads_, all));
    ParallelFor(arguments.executor, workers, [&](uint32_t worker) {
      const uint64_t end = PartBegin(all, worker + 1, workers);
      for (uint64_t number = PartBegin(all, worker, workers), some; number < end; number += some) {
        const uint64_t panel = number % panels_;
        some = std::min({kTogether, panels_ - panel, end - number});
        PackPanels(source_of(FirstOf(number / panels_)), panel * sizes_.width, number, some,
                   MemoryOf(arguments));
      }
    });
  }

  ProductOperand Find(const KernelArguments& arguments, const BatchIndex& index) const {
    const uint64_t at = IndexOf(index) * panels_ * sizes_.k * sizes_.width;
    if (sizes_.halves) return ProductOperand(memory_.In<const uint16_t>(MemoryOf(arguments)) + at);
    return ProductOperand(memory_.In<const float>(MemoryOf(arguments)) + at);
  }

  // The number of distinct matrices.
  uint64_t count() const { return count_[0] * count_[1]; }
  uint64_t IndexOf(const BatchIndex& index) const {
    return index[0] % count_[0] * count_[1] + index[1] % count_[1];
  }
  BatchIndex FirstOf(uint64_t number) const { return {number / count_[1], number % count_[1]}; }

 private:
  PackedOperand() = default;
  const Buffer& MemoryOf(const KernelArguments& arguments) const {
    return sizes_.temporary ? arguments.temporary : arguments.persistent;
  }
  // Packs elements from `first` on as `count` panels, of which `number` is the first one's index.
  void PackPanels(const PanelSource& source, uint64_t first, uint64_t number, uint64_t count,
                  const Buffer& memory) const;

  Sizes sizes_;
  uint32_t threads_;
  std::array<uint64_t, 2> count_;  // of distinct matrices
  uint64_t panels_;                // per matrix
  ScratchLayout::Piece memory_;
};

// An operand that was packed, or that is packed during the product.
inline ProductOperand OperandOf(const std::optional<PackedOperand>& packed, const KernelArguments& arguments,
                                const BatchIndex& index, const PanelSource& source) {
  return packed ? packed->Find(arguments, index) : ProductOperand(source);
}

}  // namespace anydml
