// How a GPU multiplies matrices of any strides: in which tiles, with which parameters. Plain data, the same
// for every GPU backend, which adds addresses and launches. Few and deep outputs are cut along k: a second
// launch adds the sums of the parts up, in their order.
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
  float* parts;  // sums of parts [part][batch][m][n]; null: k is not cut
  uint32_t m, n, k;
  ProductTiles plan;
  uint32_t batches;
  FastDivisor inner_batch;
  float alpha, beta;
  SumLimits limits;
  bool half_output, has_c;
};

struct GemmTiledPlan {
  GemmTiledParameters parameters = {};  // but for addresses
  Grid grid;
  Grid parts_grid;               // where k is cut
  uint64_t temporary_bytes = 0;  // of the sums of parts
};

// `limits`: of the problem's activation, which is not looked at.
GemmTiledPlan MakeGemmTiledPlan(const GemmProblem& problem, const SumLimits& limits,
                                const DeviceTraits& device);

}  // namespace anydml
