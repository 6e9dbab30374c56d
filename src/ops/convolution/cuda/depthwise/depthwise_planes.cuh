// Depthwise convolutions of contiguous images: a block copies several whole channels to shared memory, one
// contiguous piece of the input, and works on them as DepthwiseRows does.
#pragma once

#include "ops/convolution/cuda/depthwise/depthwise_rows.cuh"
#include "ops/device/cuda/tensor_cores.cuh"

namespace anydml {

template <typename T, uint32_t kStride>
__global__ void __launch_bounds__(kTileThreads, 4)
    DepthwisePlanes(const __grid_constant__ ConvolutionParameters p) {
  extern __shared__ __align__(16) unsigned char shared[];
  WaitForPrevious();
  LetNextStart();
  const DeviceShape& s = p.shape;
  const ConvolutionWindow &wy = s.windows[kMaxSpatial - 2], &wx = s.windows[kMaxSpatial - 1];
  const uint32_t elements = wy.input * wx.input, first = blockIdx.x * p.planes;
  const uint32_t count = min(p.planes, s.matrices - first), bytes = count * elements * sizeof(T);
  const auto* const from =
      static_cast<const unsigned char*>(p.input) + uint64_t{first} * elements * sizeof(T);
  const auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  for (uint32_t at = threadIdx.x * 16; at < bytes; at += kTileThreads * 16) {
    StartCopyOf(min(bytes - at, 16u), to + at, from + at);
  }
  EndCopies();
  __syncthreads();
  const uint32_t tasks = count * p.bands.divisor() * p.runs.divisor();
  for (uint32_t task = threadIdx.x; task < tasks; task += kTileThreads) {
    uint32_t run, band, group;
    const uint32_t plane = p.bands.Divide(p.runs.Divide(task, &run), &band);
    const uint32_t image = p.groups.Divide(first + plane, &group);
    DepthwiseBand<T, kStride>(p, reinterpret_cast<const T*>(shared) + plane * elements, wx.input, image,
                              group, 0, band, run);
  }
}

}  // namespace anydml
