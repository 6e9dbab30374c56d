// Plan of tensor generation on a GPU: each thread writes a unit of neighbouring elements of the output (for
// RANDOM_GENERATOR, the four words of a Philox block). Plain data, the same for every GPU backend; the
// backend adds addresses and launches.
#pragma once

#include <cstdint>

#include "ops/device/grid.h"
#include "ops/device/nest.h"
#include "ops/generate/problem.h"
#include "ops/generate/random.h"

namespace anydml {

inline constexpr uint32_t kGenerateThreads = 256;

struct GenerateParameters {
  const void* input;
  void* output;
  uint64_t value;
  uint64_t delta;
  int64_t begin;
  int64_t end;
  uint32_t units;
  LoopNest<4>::Loop inner;  // strides between the elements of a unit
  DeviceNest<4> nest;       // over units, in elements
};

struct GeneratePlan {
  // Elements per unit: 16 bytes or one element.
  uint32_t unit_elements = 1;
  GenerateParameters parameters = {};  // except addresses
  Grid grid;
};

// `aligned`: the output begins at a multiple of kMaxUnitBytes.
GeneratePlan MakeGeneratePlan(const GenerateProblem& problem, bool aligned);

struct RandomParameters {
  const uint32_t* state;
  uint32_t state_stride;
  uint32_t* output;
  uint32_t* output_state;  // null: not requested
  uint32_t output_state_stride;
  uint32_t count;   // of words
  uint32_t blocks;  // of four words
  bool in_units;    // the output can be written 16 bytes at a time
  DeviceNest<1> nest;
};

struct RandomPlan {
  RandomParameters parameters = {};  // except addresses
  Grid grid;
};

RandomPlan MakeRandomPlan(const RandomProblem& problem, bool aligned);

}  // namespace anydml
