// Depthwise convolutions of 3x3 taps with stride 1 and padding 1, of contiguous images. A warp copies several
// whole channels to shared memory in one piece, replaces them by the results and stores the piece: only whole
// lines are moved, and many warps have loads in flight.
#pragma once

#include "ops/convolution/cuda/depthwise/depthwise_columns.cuh"
#include "ops/device/cuda/bulk_copy.cuh"

namespace anydml {

inline constexpr uint32_t kDepthwiseWarpsAhead = 3;  // rows

template <typename T, uint32_t kAhead>
__global__ void __launch_bounds__(32) DepthwiseWarps(const __grid_constant__ ConvolutionParameters p) {
  extern __shared__ __align__(16) unsigned char shared[];
  __shared__ BulkBarrier barrier;
  WaitForPrevious();
  LetNextStart();
  const DeviceShape& s = p.shape;
  const uint32_t rows = s.windows[kMaxSpatial - 2].input, width = s.windows[kMaxSpatial - 1].input;
  const uint32_t elements = rows * width, first = blockIdx.x * p.warp_lines;
  const uint32_t count = min(p.warp_lines, s.matrices - first), bytes = count * elements * sizeof(T);
  const uint64_t offset = uint64_t{first} * elements;
  if (threadIdx.x == 0) {
    barrier.Initialize();
    barrier.Load(shared, static_cast<const T*>(p.input) + s.input.offset + offset, bytes);
  }
  __syncwarp();
  uint32_t run, group;
  const uint32_t line = p.runs.Divide(threadIdx.x, &run);
  const bool works = line < count;  // lanes without work still take part in exchanges
  const uint32_t image = p.groups.Divide(first + (works ? line : 0), &group);
  ColumnSums sums(run == 0, run + 1 == p.runs.divisor());
  sums.template LoadWeights<T>(p, image, group, 0);
  barrier.Wait(0);

  using Vector = PackedVector<T>;
  T* to = reinterpret_cast<T*>(shared) + (works ? line * elements + run * kDepthwiseVector : 0);
  const T* from = to;
  uint32_t left = rows;  // rows to be read
  const auto read = [&] {
    Vector vector = {};
    if (left != 0) {
      vector = *reinterpret_cast<const Vector*>(from);
      from += width;
      --left;
    }
    return vector;
  };
  Vector next[kAhead];
#pragma unroll
  for (Vector& vector : next) vector = read();
  // The row after the last one is zero.
  for (uint32_t begin = 0; begin <= rows; begin += kAhead) {
#pragma unroll
    for (uint32_t i = 0; i < kAhead; ++i) {
      const Vector vector = next[i];
      next[i] = read();
      const NumberVector result = sums.Add(vector);
      if (!works || begin + i == 0 || begin + i > rows) continue;
      sums.Store(p, result, to);
      to += width;
    }
  }
  BeforeBulkStore();
  __syncwarp();
  if (threadIdx.x == 0) BulkStore(static_cast<T*>(p.output) + s.output.offset + offset, shared, bytes);
}

}  // namespace anydml
