// Runs of steps as pipelines of stages: what one step computes stays in the processor's registers for the
// next.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/element/cpu/stages.h"
#include "ops/element/cpu/steps.h"

namespace anydml {

// The same stages' operands for all pipelines: what registers hold before it, where it keeps what is read
// later than by the next step, and where its last result goes.
struct PipelineOperands {
  std::array<LoopSource, kMaxRegisters> sources;
  std::array<LoopTarget, kMaxRegisters> kept;
  LoopTarget target;
};

struct Pipeline {
  size_t begin = 0, end = 0;  // the steps that it stands for; the last one computes
  uint8_t target = 0;         // that one's register
  uint32_t sources = 0;       // bits of registers
  uint32_t kept = 0;
  bool rounds = false;  // the last step does
  const StageSet *set = nullptr, *half_set = nullptr;
  std::vector<Stage> stages;
  std::vector<Stage> half_stages;  // for sources that are all FLOAT16; may be none

  // Whether a step is done before, for all of the tile: loads, and what is the same for all elements.
  static bool IsInFront(const ElementStep& step);
};

// Stages point to the instructions of `steps`.
std::vector<Pipeline> FindPipelines(const std::vector<ElementStep>& steps);

// For rows of `columns` neighbours, by the stages of FLOAT16 or by the others; operands have the storage of
// these, but that the last result of the others may become FLOAT16, too.
void RunPipeline(const Pipeline& pipeline, bool halves, const PipelineOperands& operands, uint64_t rows,
                 uint64_t columns);

}  // namespace anydml
