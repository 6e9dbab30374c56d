// Linear resampling of the last two dimensions of images whose rows are contiguous. A thread writes 16 bytes
// of a row (8 of 8-bit numbers), then the same columns of the rows below: what a row of the source gives
// along its own direction is computed once for all rows between it and its neighbours.
#include <cmath>
#include <type_traits>

#include "ops/common/cuda_chain.cuh"
#include "ops/common/cuda_nest.cuh"
#include "ops/common/cuda_units.cuh"
#include "ops/element/cuda/convert.cuh"
#include "ops/resample/cuda/elements.cuh"
#include "ops/resample/plan.h"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kMostRows = 16;  // of a thread

// Columns of a thread.
template <typename T>
constexpr uint32_t kColumns = sizeof(T) == 4 ? 4 : 8;

struct Parameters {
  const void* source = nullptr;
  void* target = nullptr;
  ResampleAxis y, x;
  float y_inverse = 0, x_inverse = 0;  // of the scales, where they are as exact; 0 otherwise
  uint32_t rows = 1;                   // of a thread
  bool is_aligned = false;             // a thread's columns can be written at once
  uint64_t threads = 0;
  FastDivisor groups;  // of columns
  FastDivisor strips;  // of rows
  DeviceNest<2> images;
};

__device__ Taps TapsIn(const ResampleAxis& axis, float inverse, uint32_t number) {
  const float distance = static_cast<float>(number) - axis.output_offset;
  // Powers of two: the product is the quotient.
  const float quotient = inverse != 0 ? distance * inverse : distance / axis.scale;
  return LinearTaps(axis.from, quotient - axis.input_offset);
}

__device__ float NumberOf(float x) { return x; }
__device__ float NumberOf(__half x) { return __half2float(x); }
__device__ float NumberOf(int8_t x) { return x; }
__device__ float NumberOf(uint8_t x) { return x; }

// A thread's columns in the source. Where every element stands for two pixels, with the pixels' middles as
// places, neighbours share elements in a way that is known before.
template <typename T, bool kDoubled>
struct Columns {
  static constexpr uint32_t kCount = kColumns<T>;
  static constexpr uint32_t kFirsts = kDoubled ? 1 : kCount;

  int32_t first[kFirsts];
  float weights[kCount];  // of the second element; 0: there is none
  int32_t last;           // index in a row

  __device__ Columns(const Parameters& p, uint32_t begin) : last(static_cast<int32_t>(p.x.from) - 1) {
#pragma unroll
    for (uint32_t j = 0; j < kCount; ++j) {
      const Taps taps = TapsIn(p.x, p.x_inverse, min(begin + j, p.x.to - 1));
      weights[j] = taps.second;
      if (!kDoubled) first[j % kFirsts] = static_cast<int32_t>(taps.first);
    }
    if (kDoubled) first[0] = static_cast<int32_t>(begin / 2) - 1;
  }

  __device__ float Mix(float a, float b, uint32_t j) const {
    const float mixed = a * (1 - weights[j]) + b * weights[j];
    return weights[j] == 0 ? a : mixed;
  }

  __device__ void Load(const T* row, float (&result)[kCount]) const {
    if constexpr (kDoubled) {
      constexpr uint32_t kWindow = kCount / 2 + 2;
      float window[kWindow];
#pragma unroll
      for (int32_t i = 0; i < static_cast<int32_t>(kWindow); ++i) {
        window[i] = NumberOf(row[max(0, min(last, first[0] + i))]);
      }
#pragma unroll
      for (uint32_t j = 0; j < kCount; ++j) {
        result[j] = Mix(window[(j + 1) / 2], window[(j + 1) / 2 + 1], j);
      }
    } else {
      float a[kCount], b[kCount];
#pragma unroll
      for (uint32_t j = 0; j < kCount; ++j) {
        a[j] = NumberOf(row[first[j]]);
        b[j] = NumberOf(row[min(last, first[j] + 1)]);
      }
#pragma unroll
      for (uint32_t j = 0; j < kCount; ++j) result[j] = Mix(a[j], b[j], j);
    }
  }
};

__device__ uint32_t PackedBytes(const float* x, int32_t lowest) {
  uint32_t bytes = 0;
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) bytes |= (static_cast<uint32_t>(ByteOf(x[i], lowest)) & 255u) << (8 * i);
  return bytes;
}

template <typename T>
__device__ void StoreAligned(T* to, const float (&x)[kColumns<T>]) {
  if constexpr (sizeof(T) == 4) {
    *reinterpret_cast<float4*>(to) = {OneNan(x[0]), OneNan(x[1]), OneNan(x[2]), OneNan(x[3])};
  } else if constexpr (sizeof(T) == 2) {
    using element_cuda::FloatsToHalves;
    *reinterpret_cast<uint4*>(to) = {FloatsToHalves(x[0], x[1]), FloatsToHalves(x[2], x[3]),
                                     FloatsToHalves(x[4], x[5]), FloatsToHalves(x[6], x[7])};
  } else {
    constexpr int32_t kLowest = std::is_signed_v<T> ? -128 : 0;
    *reinterpret_cast<uint2*>(to) = {PackedBytes(x, kLowest), PackedBytes(x + 4, kLowest)};
  }
}

template <typename T>
constexpr DataType kTypeOf = std::is_same_v<T, float>    ? DataType::kFloat32
                             : std::is_same_v<T, __half> ? DataType::kFloat16
                             : std::is_same_v<T, int8_t> ? DataType::kInt8
                                                         : DataType::kUInt8;

template <typename T, bool kDoubled>
__global__ void __launch_bounds__(kThreads) ResampleBilinear(const __grid_constant__ Parameters p) {
  constexpr uint32_t kCount = kColumns<T>;
  const uint64_t number = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (number >= p.threads) return;
  uint32_t group, strip;
  const uint32_t image = p.strips.Divide(p.groups.Divide(static_cast<uint32_t>(number), &group), &strip);
  uint64_t offsets[2];
  p.images.OffsetsOf(image, offsets);
  const uint32_t begin = group * kCount;
  const T* const source = static_cast<const T*>(p.source) + offsets[0];
  T* const target = static_cast<T*>(p.target) + offsets[1] + begin;
  const Columns<T, kDoubled> columns(p, begin);

  constexpr uint32_t kNoRow = ~0u;
  uint32_t upper_row = kNoRow, lower_row = kNoRow;
  float upper[kCount], lower[kCount];
  const uint32_t first = strip * p.rows, last = min(first + p.rows, p.y.to);
  for (uint32_t row = first; row < last; ++row) {
    const Taps taps = TapsIn(p.y, p.y_inverse, row);
    if (taps.first != upper_row) {
      if (taps.first == lower_row) {
#pragma unroll
        for (uint32_t j = 0; j < kCount; ++j) upper[j] = lower[j];
      } else {
        columns.Load(source + uint64_t{taps.first} * p.y.source_stride, upper);
      }
      upper_row = taps.first;
    }
    if (taps.second != 0 && taps.first + 1 != lower_row) {
      lower_row = taps.first + 1;
      columns.Load(source + uint64_t{lower_row} * p.y.source_stride, lower);
    }
    float result[kCount];
#pragma unroll
    for (uint32_t j = 0; j < kCount; ++j) {
      const float mixed = upper[j] * (1 - taps.second) + lower[j] * taps.second;
      result[j] = taps.second == 0 ? upper[j] : mixed;
    }
    T* const to = target + uint64_t{row} * p.y.target_stride;
    if (p.is_aligned) {
      StoreAligned<T>(to, result);
      continue;
    }
#pragma unroll
    for (uint32_t j = 0; j < kCount; ++j) {
      if (begin + j < p.x.to) StoreNumber(to, j, kTypeOf<T>, result[j]);
    }
  }
}

// Whether columns are as Columns<T, true> assumes.
bool IsDoubled(const ResampleAxis& axis) {
  constexpr uint32_t kQuickly = 1 << 16;
  if (axis.to > kQuickly) return false;
  for (uint32_t i = 0; i < axis.to; ++i) {
    const uint32_t first = i == 0 ? 0 : (i + 1) / 2 - 1;
    const Taps taps = TapsOf(axis, i);
    if (taps.first != std::min(first, axis.from - 1)) return false;
  }
  return true;
}

float ExactInverse(float scale) {
  int exponent;
  const bool is_power = std::frexp(scale, &exponent) == 0.5f && std::abs(exponent) < 64;
  return is_power ? 1 / scale : 0;
}

class ResampleBilinearCuda final : public Kernel {
 public:
  ResampleBilinearCuda(const ResampleProblem& problem, const ResamplePlan& plan, const LowerContext& context)
      : type_(problem.type), doubled_(IsDoubled(plan.levels[1])) {
    Parameters& p = parameters_;
    p.y = plan.levels[0];
    p.x = plan.levels[1];
    p.y_inverse = ExactInverse(p.y.scale);
    p.x_inverse = ExactInverse(p.x.scale);
    LoopNest<2> images;
    for (uint32_t d = 0; d < plan.batch_rank; ++d) {
      images.Append(plan.batch[d].to, {plan.batch[d].source_stride, plan.batch[d].target_stride});
    }
    p.images = DeviceNest<2>(images);
    const uint32_t element_bytes = BitSize(type_) / 8, columns = element_bytes == 4 ? 4 : 8;
    const uint32_t groups = (p.x.to + columns - 1) / columns;
    // Rows in one thread save loads, as long as there are threads enough.
    const uint64_t wanted = uint64_t{context.device->multiprocessors} * 1024;
    const uint64_t row_groups = Iterations(images) * p.y.to * groups;
    p.rows = static_cast<uint32_t>(std::clamp<uint64_t>(row_groups / wanted, 1, kMostRows));
    const uint32_t strips = (p.y.to + p.rows - 1) / p.rows;
    p.groups = FastDivisor(groups);
    p.strips = FastDivisor(strips);
    p.threads = Iterations(images) * strips * groups;
    constraints_ = uint64_t{p.x.to} * element_bytes | uint64_t{p.y.target_stride} * element_bytes;
    for (uint32_t d = 0; d < plan.batch_rank; ++d) {
      constraints_ |= uint64_t{plan.batch[d].target_stride} * element_bytes;
    }
    store_bytes_ = columns * element_bytes;
  }

  Status Run(const KernelArguments& arguments) const override {
    Parameters p = parameters_;
    p.source = arguments.inputs[0].data;
    p.target = arguments.outputs[0].data;
    p.is_aligned = LargestUnit(constraints_ | AddressOf(p.target)) >= store_bytes_;
    switch (type_) {
      case DataType::kFloat16:
        Launch<__half>(arguments.stream, p);
        break;
      case DataType::kInt8:
        Launch<int8_t>(arguments.stream, p);
        break;
      case DataType::kUInt8:
        Launch<uint8_t>(arguments.stream, p);
        break;
      default:
        Launch<float>(arguments.stream, p);
    }
    return {};
  }

 private:
  template <typename T>
  void Launch(void* stream, const Parameters& p) const {
    KernelChain(stream).Launch(doubled_ ? ResampleBilinear<T, true> : ResampleBilinear<T, false>,
                               (p.threads + kThreads - 1) / kThreads, kThreads, p);
  }

  DataType type_;
  bool doubled_;
  Parameters parameters_;
  uint64_t constraints_;  // what a store must divide, in bytes, or-ed together
  uint32_t store_bytes_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateResampleBilinearCuda(const ResampleProblem& problem,
                                                         const LowerContext& context, std::string* why_not) {
  const ResamplePlan plan(problem);
  const auto is_linear = [](const ResampleAxis& axis) { return axis.rule == ResampleRule::kLinear; };
  constexpr uint32_t kMostColumns = 1u << 30;
  if (problem.gradient || plan.level_count != 2 || !is_linear(plan.levels[0]) || !is_linear(plan.levels[1])) {
    *why_not = "it is not two dimensions that are interpolated";
  } else if (plan.levels[1].source_stride != 1 || plan.levels[1].target_stride != 1) {
    *why_not = "rows are not contiguous";
  } else if (std::max(plan.levels[1].from, plan.levels[1].to) > kMostColumns) {
    *why_not = "rows are too long";
  } else {
    return std::make_unique<ResampleBilinearCuda>(problem, plan, context);
  }
  return nullptr;
}

}  // namespace anydml
