// Plan of GPU pooling in any layout: blocks and parameters. Plain data, the same for every GPU backend; the
// backend adds addresses and launches.
//
// - Windows: one thread per window, for any function and type.
// - Gradients: one thread per element of the input's gradient; it collects from the windows that contain it.
// If there are more items than threads, threads continue with further items.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernel/device_traits.h"
#include "ops/common/window.h"
#include "ops/device/grid.h"
#include "ops/device/nest.h"
#include "ops/pooling/problem.h"

namespace anydml {
namespace pooling {

inline constexpr uint32_t kPoolingThreads = 256;

// A window, or an element of the input.
struct WindowPlace {
  uint32_t n;
  uint32_t c;
  uint32_t d;
  uint32_t h;
  uint32_t w;
};

struct DevicePoolingTensor {
  uint64_t strides[kPoolingRank];

  DevicePoolingTensor() = default;
  explicit DevicePoolingTensor(const PoolingTensor& tensor) {
    std::copy(tensor.strides.begin(), tensor.strides.end(), strides);
  }

  constexpr uint64_t Offset(const WindowPlace& at) const {
    return at.n * strides[0] + at.c * strides[1] + at.d * strides[2] + at.h * strides[3] + at.w * strides[4];
  }
};

// Decomposes positions into indices. The dimension that is contiguous in memory (channels or the last one) is
// innermost.
struct PlaceNumbers {
  FastDivisor channels;
  FastDivisor sizes[kSpatialRank];
  bool channels_last;

  constexpr WindowPlace At(uint32_t number) const {
    WindowPlace at;
    if (channels_last) number = channels.Divide(number, &at.c);
    number = sizes[2].Divide(number, &at.w);
    number = sizes[1].Divide(number, &at.h);
    number = sizes[0].Divide(number, &at.d);
    at.n = channels_last ? number : channels.Divide(number, &at.c);
    return at;
  }
};

inline bool HasChannelsLast(const PoolingTensor& tensor) { return tensor.strides[1] < tensor.strides[4]; }

struct DeviceWindows : PlaceNumbers {
  uint64_t count;
  WindowAxis axes[kSpatialRank];

  DeviceWindows() = default;
  // `written`: the tensor whose layout determines the order.
  DeviceWindows(const PoolingShape& shape, const PoolingTensor& written) : count(shape.Windows()) {
    channels = FastDivisor(shape.channels);
    channels_last = HasChannelsLast(written);
    for (uint32_t d = 0; d < kSpatialRank; ++d) {
      axes[d] = shape.axes[d];
      sizes[d] = FastDivisor(shape.axes[d].windows);
    }
  }
};

struct WindowParameters {
  const void* input;
  void* output;
  void* indices;
  const void* parameters[PoolingProblem::kParameters];
  PoolingFunction function;
  DataType output_type;
  DataType index_type;
  bool include_padding;
  uint32_t p;
  DeviceWindows windows;
  DevicePoolingTensor input_at;
  DevicePoolingTensor output_at;
  DevicePoolingTensor indices_at;
  uint64_t parameter_strides[PoolingProblem::kParameters];
};

struct GradientParameters {
  const void* gradient;    // of the windows
  const uint32_t* maxima;  // positions of the maxima; null for averages
  void* output;
  uint64_t count;  // of the output's elements
  bool include_padding;
  uint32_t channels;
  PlaceNumbers places;  // of the output
  WindowAxis axes[kSpatialRank];
  DevicePoolingTensor gradient_at;
  DevicePoolingTensor output_at;
};

}  // namespace pooling

struct PoolingWindowsPlan {
  pooling::WindowParameters parameters = {};  // except addresses
  Grid grid;
};
PoolingWindowsPlan MakePoolingWindowsPlan(const PoolingProblem& problem, const DeviceTraits& device);

struct PoolingGradientPlan {
  pooling::GradientParameters parameters = {};  // except addresses
  Grid grid;
};
PoolingGradientPlan MakePoolingGradientPlan(const PoolingGradProblem& problem, const DeviceTraits& device);

}  // namespace anydml
