// Runs sequences of steps as pipelines of stages: results stay in vector registers from one step to the next.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "ops/element/cpu/stages.h"
#include "ops/element/cpu/steps.h"

namespace anydml {

// The operands of all pipelines' stages: the registers' values before the pipeline, the places for values
// that are read later than by the next step, and the target of the last result.
struct PipelineOperands {
  std::array<LoopSource, kMaxRegisters> sources;
  std::array<LoopTarget, kMaxRegisters> kept;
  LoopTarget target;
};

struct Pipeline {
  size_t begin = 0, end = 0;  // its range of steps; the last one computes
  uint8_t target = 0;         // that step's target register
  uint32_t sources = 0;       // bits of registers
  uint32_t kept = 0;
  bool rounds = false;  // the last step rounds to FLOAT16
  const StageSet *set = nullptr, *half_set = nullptr;
  std::vector<Stage> stages;
  std::vector<Stage> half_stages;  // if all sources are FLOAT16; may be empty

  // Whether a step is done beforehand for the whole tile: loads, and values that are the same for all
  // elements.
  static bool IsInFront(const ElementStep& step);
};

// The stages point to the instructions of `steps`.
std::vector<Pipeline> FindPipelines(const std::vector<ElementStep>& steps);

// Runs rows of `columns` contiguous elements, with FLOAT16 stages or the others; operands have the matching
// storage, except that the last result of the others may be stored as FLOAT16, too.
void RunPipeline(const Pipeline& pipeline, bool halves, const PipelineOperands& operands, uint64_t rows,
                 uint64_t columns);

}  // namespace anydml
