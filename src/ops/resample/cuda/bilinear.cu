// Linear resampling of the last two dimensions of images with contiguous rows. A thread writes 16 bytes of a
// row (8 for 8-bit numbers), then the same columns of the rows below: the horizontal interpolation of a
// source row is computed once for all target rows that use it.
#include <type_traits>

#include "ops/device/cuda/convert.cuh"
#include "ops/device/cuda/float_elements.cuh"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/resample/cuda/doubled_linear.cuh"
#include "ops/resample/cuda/strips.cuh"

namespace anydml {
namespace {

constexpr uint32_t kBilinearThreads = 256;

// Columns per thread.
template <typename T>
constexpr uint32_t kBilinearColumns = sizeof(T) == 4 ? 4 : 8;

struct BilinearParameters {
  const void* source = nullptr;
  void* target = nullptr;
  bool is_aligned = false;  // a thread's columns can be written at once
  Strips strips;
};

__device__ float NumberOf(float x) { return x; }
__device__ float NumberOf(__half x) { return __half2float(x); }
__device__ float NumberOf(int8_t x) { return x; }
__device__ float NumberOf(uint8_t x) { return x; }

// How columns are interpolated within a row. If every element stands for two pixels, with pixel centres as
// places, neighbours share elements in a pattern known at compile time; most of these may be read at once.
enum class Way { kAnyhow, kDoubled, kDoubledInVectors };

// A thread's columns in the source.
template <typename T, Way kWay>
struct Columns {
  static constexpr bool kDoubled = kWay != Way::kAnyhow;
  static constexpr uint32_t kCount = kBilinearColumns<T>;
  static constexpr uint32_t kFirsts = kDoubled ? 1 : kCount;

  // The elements read of a row: a contiguous window, or two elements for each column.
  static constexpr uint32_t kMiddle = kCount / 2;  // of a window, without its two ends
  static constexpr uint32_t kRead = kDoubled ? kMiddle + 2 : 2 * kCount;
  struct Elements {
    T x[kRead];
  };

  int32_t first[kFirsts];
  float weights[kCount];  // of the second element; 0: there is none
  int32_t last;           // index in a row

  __device__ Columns(const Strips& strips, uint32_t begin) : last(static_cast<int32_t>(strips.x.from) - 1) {
#pragma unroll
    for (uint32_t j = 0; j < kCount; ++j) {
      const uint32_t column = min(begin + j, strips.x.to - 1);
      const Taps taps = LinearTaps(strips.x.from, strips.PlaceOfColumn(column));
      weights[j] = taps.second;
      if (!kDoubled) first[j % kFirsts] = static_cast<int32_t>(taps.first);
    }
    if (kDoubled) first[0] = static_cast<int32_t>(begin / 2) - 1;
  }

  __device__ Elements Read(const T* row) const {
    Elements read;
    if constexpr (kWay == Way::kDoubledInVectors) {
      using Middle = std::conditional_t<kMiddle * sizeof(T) == 8, uint2, uint32_t>;
      const Middle middle = *reinterpret_cast<const Middle*>(row + first[0] + 1);
      memcpy(read.x + 1, &middle, sizeof(middle));
      read.x[0] = row[max(0, first[0])];
      read.x[kRead - 1] = row[min(last, first[0] + static_cast<int32_t>(kRead) - 1)];
    } else if constexpr (kDoubled) {
#pragma unroll
      for (int32_t i = 0; i < static_cast<int32_t>(kRead); ++i) {
        read.x[i] = row[max(0, min(last, first[0] + i))];
      }
    } else {
#pragma unroll
      for (uint32_t j = 0; j < kCount; ++j) {
        read.x[2 * j] = row[first[j]];
        read.x[2 * j + 1] = row[min(last, first[j] + 1)];
      }
    }
    return read;
  }

  // Interpolates the columns in a row.
  __device__ void Mix(const Elements& read, float (&result)[kCount]) const {
#pragma unroll
    for (uint32_t j = 0; j < kCount; ++j) {
      const uint32_t at = kDoubled ? (j + 1) / 2 : 2 * j;
      const float a = NumberOf(read.x[at]), b = NumberOf(read.x[at + 1]);
      const float mixed = a * (1 - weights[j]) + b * weights[j];
      result[j] = weights[j] == 0 ? a : mixed;
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
__device__ void StoreAligned(T* to, const float (&x)[kBilinearColumns<T>]) {
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

template <typename T, Way kWay>
__global__ void __launch_bounds__(kBilinearThreads)
    ResampleBilinear(const __grid_constant__ BilinearParameters p) {
  constexpr uint32_t kCount = kBilinearColumns<T>;
  const uint64_t number = uint64_t{blockIdx.x} * kBilinearThreads + threadIdx.x;
  if (number >= p.strips.threads) return;
  const Strips::Part part = p.strips.PartOf(static_cast<uint32_t>(number));
  const ResampleAxis& y = p.strips.y;
  const T* const source = static_cast<const T*>(p.source) + part.offsets[0];
  T* const target = static_cast<T*>(p.target) + part.offsets[1] + part.column;
  using RowColumns = Columns<T, kWay>;
  const RowColumns columns(p.strips, part.column);
  const auto read = [&](uint32_t row) { return columns.Read(source + uint64_t{row} * y.source_stride); };

  constexpr uint32_t kNoRow = ~0u;
  // In an image that grows, the row after the present one is needed next: it is loaded ahead.
  typename RowColumns::Elements ahead;
  uint32_t ahead_row = kNoRow;
  const auto line = [&](uint32_t row, float(&result)[kCount]) {
    if constexpr (RowColumns::kDoubled) {
      if (ahead_row != row) ahead = read(row);
      columns.Mix(ahead, result);
      ahead_row = min(row + 1, y.from - 1);
      ahead = read(ahead_row);
    } else {
      columns.Mix(read(row), result);
    }
  };
  uint32_t upper_row = kNoRow, lower_row = kNoRow;
  float upper[kCount], lower[kCount];
  for (uint32_t row = part.first_row; row < part.end_row; ++row) {
    const Taps taps = LinearTaps(y.from, p.strips.PlaceOfRow(row));
    if (taps.first != upper_row) {
      if (taps.first == lower_row) {
#pragma unroll
        for (uint32_t j = 0; j < kCount; ++j) upper[j] = lower[j];
      } else {
        line(taps.first, upper);
      }
      upper_row = taps.first;
    }
    if (taps.second != 0 && taps.first + 1 != lower_row) {
      lower_row = taps.first + 1;
      line(lower_row, lower);
    }
    float result[kCount];
#pragma unroll
    for (uint32_t j = 0; j < kCount; ++j) {
      const float mixed = upper[j] * (1 - taps.second) + lower[j] * taps.second;
      result[j] = taps.second == 0 ? upper[j] : mixed;
    }
    T* const to = target + uint64_t{row} * y.target_stride;
    if (p.is_aligned) {
      StoreAligned<T>(to, result);
      continue;
    }
#pragma unroll
    for (uint32_t j = 0; j < kCount; ++j) {
      if (part.column + j < p.strips.x.to) StoreNumber(to, j, kTypeOf<T>, result[j]);
    }
  }
}

// Whether columns have the pattern that Columns<T, true> assumes.
bool IsDoubled(const ResampleAxis& axis) {
  constexpr uint32_t kQuickly = 1 << 16;
  if (axis.to > kQuickly) return false;
  for (uint32_t i = 0; i < axis.to; ++i) {
    const uint32_t first = i == 0 ? 0 : (i + 1) / 2 - 1;
    const Taps taps = TapsOf(axis, i);
    if (taps.first != std::min(first, axis.from - 1)) return false;
    if (i == 0 && taps.second != 0) return false;  // the first pixel is before the first element
  }
  return true;
}

uint64_t SourceConstraints(const ResampleLevels& plan, uint32_t element_bytes) {
  uint64_t elements = plan.levels[1].from | plan.levels[0].source_stride;
  for (uint32_t d = 0; d < plan.batch_rank; ++d) elements |= plan.batch[d].source_stride;
  return elements * element_bytes;
}

class ResampleBilinearCuda final : public Kernel {
 public:
  ResampleBilinearCuda(const ResampleProblem& problem, const ResampleLevels& plan,
                       const LowerContext& context)
      : type_(problem.type),
        element_bytes_(BitSize(problem.type) / 8),
        doubled_(IsDoubled(plan.levels[1])),
        images_(plan, element_bytes_, context),
        strips_(plan, element_bytes_ == 4 ? 4 : 8, context),
        constraints_(StoreConstraints(plan, element_bytes_)),
        source_constraints_(SourceConstraints(plan, element_bytes_)) {
    const bool is_float = type_ == DataType::kFloat32 || type_ == DataType::kFloat16;
    images_.possible = images_.possible && is_float && IsDoubledLinearly(plan.levels[0]) &&
                       IsDoubledLinearly(plan.levels[1]);
  }

  Status Run(const KernelArguments& arguments) const override {
    BilinearParameters p;
    p.source = arguments.inputs[0].data;
    p.target = arguments.outputs[0].data;
    p.is_aligned = LargestUnit(constraints_ | AddressOf(p.target)) >= strips_.columns * element_bytes_;
    p.strips = strips_;
    if (images_.MayHave(p.source, p.target)) {
      DoubledImages images = images_;
      images.source = arguments.inputs[0].data;
      images.target = arguments.outputs[0].data;
      const auto kernel = type_ == DataType::kFloat16 ? ResampleDoubled<__half> : ResampleDoubled<float>;
      const uint64_t blocks = (images.threads + kDoubledThreads - 1) / kDoubledThreads;
      KernelChain(arguments.stream).Launch(kernel, blocks, kDoubledThreads, images);
      return {};
    }
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
  void Launch(void* stream, const BilinearParameters& p) const {
    constexpr uint32_t kMiddleBytes = Columns<T, Way::kDoubled>::kMiddle * sizeof(T);
    const bool in_vectors = p.is_aligned && p.strips.x.to == uint64_t{p.strips.x.from} * 2 &&
                            LargestUnit(source_constraints_ | AddressOf(p.source)) >= kMiddleBytes;
    const auto kernel = !doubled_    ? ResampleBilinear<T, Way::kAnyhow>
                        : in_vectors ? ResampleBilinear<T, Way::kDoubledInVectors>
                                     : ResampleBilinear<T, Way::kDoubled>;
    KernelChain(stream).Launch(kernel, (p.strips.threads + kBilinearThreads - 1) / kBilinearThreads,
                               kBilinearThreads, p);
  }

  DataType type_;
  uint32_t element_bytes_;
  bool doubled_;
  DoubledImages images_;  // both dimensions doubled
  Strips strips_;
  uint64_t constraints_;
  uint64_t source_constraints_;  // the same for loads
};

}  // namespace

std::unique_ptr<const Kernel> CreateResampleBilinearCuda(const ResampleProblem& problem,
                                                         const LowerContext& context, std::string* why_not) {
  const ResampleLevels plan(problem);
  const auto is_linear = [](const ResampleAxis& axis) { return axis.rule == ResampleRule::kLinear; };
  *why_not = WhyNoStrips(problem, plan);
  if (!why_not->empty()) return nullptr;
  if (!is_linear(plan.levels[0]) || !is_linear(plan.levels[1])) {
    *why_not = "elements are taken in another way";
  } else if (plan.levels[1].source_stride != 1) {
    *why_not = "rows of the source are not contiguous";
  } else {
    return std::make_unique<ResampleBilinearCuda>(problem, plan, context);
  }
  return nullptr;
}

}  // namespace anydml
