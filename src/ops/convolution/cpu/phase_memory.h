// Memory between a backward convolution and its phases, so that these find neighbours on both sides: what
// they read and write themselves is several elements apart.
#pragma once

#include <optional>

#include "kernel/kernel.h"
#include "ops/common/nest_copy.h"
#include "ops/convolution/problem.h"

namespace anydml {

// A copy, by all threads, to or from memory of the kernel.
class PhaseCopy {
 public:
  PhaseCopy(const LoopNest<2>& nest, DataType type, uint32_t threads);
  void Run(const std::byte* from, std::byte* to, Executor* executor) const;
  uint64_t bytes() const { return copy_.bytes(); }

 private:
  NestCopy copy_;
  uint32_t parts_;
};

// A filter whose output channels are neighbours.
struct TurnedFilter {
  // None where they already are, or the filter is packed once for all runs.
  static std::optional<TurnedFilter> Create(const ConvolutionProblem& problem, uint32_t threads);

  uint64_t offset;           // of the first element that is copied
  ConvolutionTensor tensor;  // the copy
  PhaseCopy copy;
};

// Outputs of each phase as images of their own, one after the other.
struct PhasePlanes {
  // None where outputs of a phase may as well be written where they belong, or phases have different sizes.
  static std::optional<PhasePlanes> Create(const ConvolutionProblem& problem, uint32_t threads);
  // The same of a convolution whose windows do not overlap. It sees each input once: its phases are so many
  // times its output channels.
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

// The convolution whose output channels are all phases of the given one's; its bias has neighbours.
ConvolutionProblem JoinPhases(const ConvolutionProblem& problem, const PhasePlanes& planes);

}  // namespace anydml
