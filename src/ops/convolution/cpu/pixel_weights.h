// The memory from which tiles of pixels read weights: filters that were packed before, completely or by the
// worker piece by piece.
#pragma once

#include <cstdint>
#include <optional>

#include "kernel/scratch_layout.h"
#include "ops/convolution/cpu/pixel_filter.h"
#include "ops/convolution/cpu/pixel_steps.h"

namespace anydml {

class PixelWeights {
 public:
  // Keeps references to `filter` and `steps`.
  PixelWeights(const ConvolutionProblem& problem, const PixelFilter& filter, const PixelSteps& steps,
               ScratchLayout* scratch);

  bool is_near() const { return is_near_; }  // few enough for a near cache
  bool turns() const { return turns_; }      // packs piece by piece from the filter tensor
  uint64_t persistent_bytes() const { return persistent_.bytes(); }
  uint64_t OwnFloats(uint64_t width) const;  // per worker

  void Initialize(const KernelArguments& arguments, uint32_t threads) const;
  // To be called first.
  void Pack(const KernelArguments& arguments, uint32_t threads) const;

  struct Place {
    uint64_t group;
    PixelFilter::Block block;
    uint64_t number;  // the block's index
    const PixelSteps::Piece& piece;
  };
  // `own`: the worker's memory.
  const float* Of(const KernelArguments& arguments, const Place& place, float* own) const;
  // What to prefetch of distant weights: rows, of which each run prefetches one; or a number of consecutive
  // bytes, of which each step of all tiles prefetches a part.
  struct Next {
    std::optional<RowsAhead> rows;
    uintptr_t first = 0;
    uint64_t bytes = 0;
  };
  Next Behind(const KernelArguments& arguments, const Place& place) const;

 private:
  uint64_t WidthOf(const Place& place) const { return uint64_t{place.block.vectors} * filter_.lanes(); }
  const std::byte* PackedOf(const KernelArguments& arguments, const Place& place) const;

  const PixelFilter& filter_;
  const PixelSteps& steps_;
  bool owned_, turns_, halves_, is_near_;
  ScratchLayout persistent_;
  ScratchLayout::Piece packed_;
};

}  // namespace anydml
