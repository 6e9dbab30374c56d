// Plan of a GPU matrix product with any strides: tiles and parameters. Plain data, the same for every GPU
// backend; the backend adds addresses and launches. A deep product with few outputs is split along k; a
// second launch adds the partial sums in a fixed order.
#pragma once

#include <cstdint>

#include "kernel/device_traits.h"
#include "ops/device/nest.h"
#include "ops/device/product_tiles.h"
#include "ops/device/sum_limits.h"
#include "ops/gemm/problem.h"

namespace anydml {

struct GemmOperand {
  void* data;
  uint64_t batch[2];
  uint64_t row, column;
};

struct GemmTiledParameters {
  GemmOperand a, b, c, output;
  float* parts;  // partial sums [part][batch][m][n]; null: k is not split
  uint32_t m, n, k;
  ProductTiles plan;
  uint32_t batches;
  FastDivisor inner_batch;
  float alpha, beta;
  SumLimits limits;
  bool half_output, has_c;
};

struct GemmTiledPlan {
  GemmTiledParameters parameters = {};  // except addresses
  Grid grid;
  Grid parts_grid;               // if k is split
  uint64_t temporary_bytes = 0;  // of the partial sums
};

// `limits`: from the problem's activation, which this does not read.
GemmTiledPlan MakeGemmTiledPlan(const GemmProblem& problem, const SumLimits& limits,
                                const DeviceTraits& device);

}  // namespace anydml
