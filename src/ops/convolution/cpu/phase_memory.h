// Memory between a backward convolution and its phases, so that these find contiguous elements on both sides:
// in the tensors, the elements of a phase are several elements apart.
#pragma once

#include <optional>

#include "kernel/kernel.h"
#include "ops/common/nest_copy.h"
#include "ops/convolution/problem.h"

namespace anydml {

// A copy, by all threads, to or from the kernel's memory.
class PhaseCopy {
 public:
  PhaseCopy(const LoopNest<2>& nest, DataType type, uint32_t threads);
  void Run(const std::byte* from, std::byte* to, Executor* executor) const;
  uint64_t bytes() const { return copy_.bytes(); }

 private:
  NestCopy copy_;
  uint32_t parts_;
};

// A copy of the filter with contiguous output channels.
struct TurnedFilter {
  // Empty if they already are, or if the filter is packed once for all runs.
  static std::optional<TurnedFilter> Create(const ConvolutionProblem& problem, uint32_t threads);

  uint64_t offset;           // of the first copied element
  ConvolutionTensor tensor;  // the copy
  PhaseCopy copy;
};

// The outputs of each phase as images of their own, one after the other.
struct PhasePlanes {
  // Empty if phases may as well write their outputs in place, or have different sizes.
  static std::optional<PhasePlanes> Create(const ConvolutionProblem& problem, uint32_t threads);
  // The same for a convolution whose windows do not overlap. It reads each input once, as a convolution with
  // as many times the output channels as there are phases.
  static std::optional<PhasePlanes> CreateJoined(const ConvolutionProblem& problem, uint32_t threads);

  ConvolutionTensor Phase(uint64_t number) const {
    ConvolutionTensor phase = tensor;
    phase.offset = number * phase_stride;
    return phase;
  }

  ConvolutionTensor tensor;  // of the first phase
  uint64_t phase_stride;
  uint64_t offset;  // of the output's first element
  PhaseCopy copy;   // to the output
};

// The convolution whose output channels are all phases of the given one's; its bias is contiguous.
ConvolutionProblem JoinPhases(const ConvolutionProblem& problem, const PhasePlanes& planes);

}  // namespace anydml
