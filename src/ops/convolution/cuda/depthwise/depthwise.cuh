// Convolutions whose filters have one input channel: only taps are summed.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "ops/convolution/activation.h"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/cuda/window_operands.cuh"

namespace anydml {

__device__ inline float LoadNumber(const void* data, uint64_t at, float) {
  return static_cast<const float*>(data)[at];
}
__device__ inline float LoadNumber(const void* data, uint64_t at, __half) {
  return __half2float(static_cast<const __half*>(data)[at]);
}

template <typename T>
__device__ void FinishSum(const ConvolutionParameters& p, uint32_t matrix, uint32_t channel,
                          uint32_t position, float sum) {
  if (p.bias != nullptr) {
    const uint64_t group = matrix % p.shape.inner;
    sum += LoadNumber(p.bias, (group * p.shape.output_channels + channel) * p.bias_stride, T());
  }
  sum = p.limits.Of(sum);
  const uint64_t at = OutputOffset(p.shape, matrix, channel, position);
  if (p.half_output) {
    static_cast<__half*>(p.output)[at] = __float2half_rn(sum);
  } else {
    static_cast<float*>(p.output)[at] = sum;
  }
}

// 3x3 taps and the bias of groups from `group` on.
template <typename T, uint32_t kGroups>
__device__ __forceinline__ void LoadFilters(const ConvolutionParameters& p, uint32_t image, uint32_t group,
                                            float (&weights)[3][3][kGroups], float (&bias)[kGroups]) {
  constexpr uint32_t kX = kMaxSpatial - 1, kY = kX - 1;
#pragma unroll
  for (uint32_t i = 0; i < kGroups; ++i) {
    const T* const filter = static_cast<const T*>(p.filter) + p.shape.filter.Matrix(image, group + i);
#pragma unroll
    for (uint32_t t = 0; t < 9; ++t) {
      const uint64_t at = t / 3 * p.shape.filter.spatial[kY] + t % 3 * p.shape.filter.spatial[kX];
      weights[t / 3][t % 3][i] = static_cast<float>(filter[static_cast<int64_t>(at)]);
    }
    if (p.bias != nullptr) {
      bias[i] = static_cast<float>(static_cast<const T*>(p.bias)[(group + i) * p.bias_stride]);
    }
  }
}

// With more channels or taps, a product is faster.
inline constexpr uint32_t kDepthwiseChannels = 4, kDepthwiseTaps = 128;

// Neighbouring outputs per thread.
inline constexpr uint32_t kDepthwiseRun = 4;

// Rows of 3 contiguous taps, a stride of 1 or 2, and offsets that fit into 31 bits.
inline bool HasThreeTaps(const ConvolutionShape& shape) {
  const ConvolutionWindow& x = shape.windows[kMaxSpatial - 1];
  for (const ConvolutionWindow& window : shape.windows) {
    const uint64_t reach = uint64_t{window.output} * window.stride + uint64_t{window.taps} * window.dilation;
    if (reach + window.input + window.start_padding >= uint64_t{1} << 30 || window.reached < window.output)
      return false;
  }
  return !shape.backward && x.taps == 3 && x.dilation == 1 && (x.stride == 1 || x.stride == 2) &&
         shape.windows[0].taps == 1 && shape.windows[0].output == 1 && shape.windows[0].start_padding == 0;
}

inline constexpr uint32_t kDepthwiseRows = 7;  // rows per band: image sizes in networks are often multiples
                                               // of it
inline constexpr uint32_t kDepthwiseVector = 4;

// 3x3 taps and rows of whole vectors of four numbers. Addresses are multiples of 16 bytes.
inline bool HasDepthwiseRows(const ConvolutionShape& s) {
  constexpr uint32_t kX = kMaxSpatial - 1, kY = kX - 1;
  const ConvolutionWindow &x = s.windows[kX], &y = s.windows[kY];
  if (!HasThreeTaps(s) || x.start_padding != 1 || y.taps != 3 || y.dilation != 1 || y.stride != x.stride) {
    return false;
  }
  if (s.input.spatial[kX] != 1 || s.output.spatial[kX] != 1) return false;
  uint64_t elements = x.input | x.output | s.input.offset | s.output.offset;
  const auto add = [&](uint64_t size, uint64_t input, uint64_t output) {
    if (size > 1) elements |= input | output;
  };
  add(s.outer[0], s.input.outer[0], s.output.outer[0]);
  add(s.outer[1], s.input.outer[1], s.output.outer[1]);
  add(s.output_channels, 0, s.output.channel);
  add(y.input, s.input.spatial[kY], 0);
  add(y.output, 0, s.output.spatial[kY]);
  return elements % kDepthwiseVector == 0 && s.Elements() < uint64_t{1} << 32;
}

// The same with stride 1, if a warp has whole rows and nothing to their right is read.
inline bool HasDepthwiseColumns(const ConvolutionShape& s) {
  const ConvolutionWindow& x = s.windows[kMaxSpatial - 1];
  return HasDepthwiseRows(s) && x.stride == 1 && x.output <= 32 * kDepthwiseVector && x.input <= x.output;
}

// Whether images of this size are contiguous.
inline bool IsOnePiece(const ConvolutionShape& s, const ConvolutionTensor& t, uint32_t rows,
                       uint32_t columns) {
  const uint64_t elements = uint64_t{rows} * columns;
  const auto follows = [](uint64_t size, uint64_t stride, uint64_t expected) {
    return size == 1 || stride == expected;
  };
  return follows(rows, t.spatial[kMaxSpatial - 2], columns) && follows(s.outer[1], t.outer[1], elements) &&
         follows(s.outer[0], t.outer[0], elements * s.outer[1]);
}

// The number of whole channels that a warp copies to shared memory, where results replace them; 0 if images
// are not contiguous, differ in size from the results, or have channels that are too large.
inline uint32_t DepthwiseWarpPlanes(const ConvolutionShape& s, uint32_t element_bytes) {
  constexpr uint64_t kMostBytes = 13 << 10, kUnit = 16;
  constexpr uint32_t kLeastLanes = 24;  // lanes with work
  const ConvolutionWindow &x = s.windows[kMaxSpatial - 1], &y = s.windows[kMaxSpatial - 2];
  if (!HasDepthwiseColumns(s) || s.output_channels != 1 || s.Matrices() >= uint64_t{1} << 31 ||
      s.windows[0].input != 1 || x.input != x.output || y.input != y.output || y.start_padding != 1 ||
      !IsOnePiece(s, s.input, y.input, x.input) || !IsOnePiece(s, s.output, y.output, x.output) ||
      (s.input.offset | s.output.offset) * element_bytes % kUnit != 0) {
    return 0;
  }
  const uint32_t lanes = x.output / kDepthwiseVector;
  const uint64_t bytes = uint64_t{x.input} * y.input * element_bytes;
  for (uint32_t planes = 32 / lanes; planes * lanes >= kLeastLanes; --planes) {
    const bool is_whole = planes * bytes % kUnit == 0 && s.Matrices() % planes * bytes % kUnit == 0;
    if (is_whole && planes * bytes <= kMostBytes) return planes;
  }
  return 0;
}

// The number of whole channels that a block copies to shared memory; 0 if images are not contiguous, or have
// channels that are too large.
inline uint32_t DepthwisePlaneCount(const ConvolutionShape& s, uint32_t element_bytes) {
  constexpr uint32_t kX = kMaxSpatial - 1, kY = kX - 1;
  constexpr uint64_t kMostBytes = 50 << 10, kEnoughBytes = 32 << 10;
  const ConvolutionWindow &x = s.windows[kX], &y = s.windows[kY];
  const uint64_t elements = uint64_t{x.input} * y.input, bytes = elements * element_bytes;
  if (!HasDepthwiseRows(s) || s.output_channels != 1 || s.Matrices() >= uint64_t{1} << 31 ||
      bytes > kMostBytes || s.windows[0].input != 1 || !IsOnePiece(s, s.input, y.input, x.input)) {
    return 0;
  }
  const uint64_t tasks = uint64_t{(y.output - 1) / kDepthwiseRows + 1} * (x.output / kDepthwiseVector);
  uint32_t best = 0;
  double most = 0;  // largest share of threads with work
  for (uint32_t count = 1; count == 1 || count * bytes <= kEnoughBytes; ++count) {
    if (count * bytes % 16 != 0) continue;
    const uint64_t turns = (count * tasks + kTileThreads - 1) / kTileThreads;
    const double share = static_cast<double>(count * tasks) / static_cast<double>(turns * kTileThreads);
    if (share < most - 0.02) continue;  // at nearly the same share, more channels at a time are better
    most = std::max(most, share);
    best = count;
  }
  return best;
}

// A thread's outputs in a row, for each of kDepthwiseVector groups.
inline constexpr uint32_t kDepthwisePair = 2;

// 3x3 taps and contiguous groups in whole vectors.
inline bool HasDepthwiseVectors(const ConvolutionShape& s, uint32_t vector = kDepthwiseVector) {
  const ConvolutionWindow &x = s.windows[kMaxSpatial - 1], &y = s.windows[kMaxSpatial - 2];
  if (!HasThreeTaps(s) || y.taps != 3 || y.dilation != 1 || y.stride != x.stride || s.output_channels != 1 ||
      s.outer[1] == 1 || s.input.outer[1] != 1 || s.output.outer[1] != 1) {
    return false;
  }
  uint64_t elements = s.outer[1] | s.input.offset | s.output.offset;
  const auto add = [&](uint64_t size, uint64_t stride) {
    if (size > 1) elements |= stride;
  };
  add(s.outer[0], s.input.outer[0]);
  add(s.outer[0], s.output.outer[0]);
  for (uint32_t d = 0; d < kMaxSpatial; ++d) {
    add(s.windows[d].input, s.input.spatial[d]);
    add(s.windows[d].output, s.output.spatial[d]);
  }
  return elements % vector == 0 && s.Elements() < uint64_t{1} << 32;
}

// How a block cuts a channels-last image: `kOutputs` rows of outputs, `kLine` bytes of channels, of which a
// thread has `kNumbers`.
template <typename T, uint32_t kOutputs, uint32_t kNumbers, uint32_t kLine, uint32_t kWarps, uint32_t kLeast>
struct DepthwiseTile {
  static constexpr uint32_t kRows = kOutputs, kVector = kNumbers, kBytes = kLine;
  static constexpr uint32_t kThreads = kWarps * 32, kBlocks = kLeast;  // per multiprocessor
  static constexpr uint32_t kChannels = kBytes / sizeof(T);
  static constexpr uint32_t kAcross = kChannels / kVector;  // threads across the channels
  static constexpr uint32_t kAlong = kThreads / kAcross;    // threads along the columns
};
template <typename T>
struct UsualDepthwiseTile : DepthwiseTile<T, 7, 2, 128, 4, 5> {};
inline constexpr uint32_t kDepthwiseTileColumns = 32;  // approximate maximum

// Whole units of 16 bytes and stride 1.
inline bool HasDepthwiseTiles(const ConvolutionShape& s, uint32_t element_bytes) {
  return HasDepthwiseVectors(s, 16 / element_bytes) && s.windows[kMaxSpatial - 1].stride == 1 &&
         s.windows[0].input == 1;
}

// With few vectors of groups, a thread has those of one row.
enum class DepthwiseWay : uint8_t {
  kAny,
  kThreeTaps,
  kRows,
  kColumns,
  kWarps,
  kPlanes,
  kTiles,
  kRing,
  kVectors,
  kFewVectors
};

using ConvolutionFunction = void (*)(ConvolutionParameters);

// `stride`: 1 or 2, except for kAny. kRing: FLOAT16 only.
ConvolutionFunction FindDepthwise(DepthwiseWay way, bool half, uint32_t stride);

}  // namespace anydml
