// Plan of a GPU convolution in any layout, computed as a matrix product of filters and input windows that are
// read in place: tiles and kernel parameters. Plain data, the same for every GPU backend; the backend adds
// addresses and launches. A deep product with few outputs is split along channels and taps; a second launch
// adds the partial sums in a fixed order.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernel/device_traits.h"
#include "ops/convolution/problem.h"
#include "ops/device/nest.h"
#include "ops/device/product_tiles.h"
#include "ops/device/sum_limits.h"

namespace anydml {

struct DeviceShape {
  ConvolutionWindow windows[kMaxSpatial];
  ConvolutionTensor input, filter, output;
  uint32_t inner;  // outer[1]
  uint32_t matrices;
  uint32_t output_channels, positions, steps;
  FastDivisor taps[kMaxSpatial], outputs[kMaxSpatial];
  ProductTiles plan;
  bool backward;

  DeviceShape() = default;
  DeviceShape(const ConvolutionShape& shape, uint32_t multiprocessors)
      : input(shape.input),
        filter(shape.filter),
        output(shape.output),
        inner(static_cast<uint32_t>(shape.outer[1])),
        matrices(static_cast<uint32_t>(shape.Matrices())),
        output_channels(static_cast<uint32_t>(shape.output_channels)),
        positions(static_cast<uint32_t>(shape.Positions())),
        steps(static_cast<uint32_t>(shape.Steps())),
        plan(matrices, output_channels, positions, steps, multiprocessors),
        backward(shape.backward) {
    std::copy(shape.windows.begin(), shape.windows.end(), windows);
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {
      taps[d] = FastDivisor(shape.windows[d].taps);
      outputs[d] = FastDivisor(shape.windows[d].output);
    }
  }
};

struct ConvolutionParameters {
  DeviceShape shape;
  const void* input;
  const void* filter;
  const void* bias;
  void* output;
  float* parts;  // partial sums [part][matrix][channel][position]; null: the product is not split
  uint64_t bias_stride;
  SumLimits limits;
  bool half_output;
  // For depthwise kernels: runs in a row of outputs; bands of rows; output channels per group; number of
  // groups or of vectors of groups.
  FastDivisor runs, bands, channels, groups;
  uint64_t threads;  // blocks or threads with work
  uint32_t planes;   // per block
  // For column kernels: rows per band, and lines of threads (in total and per warp). Each line processes the
  // runs of a band.
  uint32_t band_rows, all_lines, warp_lines;
  uint32_t tile_columns, segment;  // for tiles: columns per tile and per thread; also for a ring's block
  uint32_t ring_rows;              // in shared memory at one time
};

struct ConvolutionTiledPlan {
  ConvolutionParameters parameters = {};  // except addresses and limits
  Grid grid;
  Grid parts_grid;           // if the product is split
  uint64_t parts_bytes = 0;  // of the partial sums
};

ConvolutionTiledPlan MakeConvolutionTiledPlan(const ConvolutionProblem& problem, const DeviceTraits& device);

}  // namespace anydml
