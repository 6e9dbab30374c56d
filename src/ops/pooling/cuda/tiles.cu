// Windows of two or three elements in both dimensions of packed FLOAT32 and FLOAT16: a thread loads 16 bytes
// of each row and computes the windows that begin there.
#include <algorithm>

#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/pooling/cuda/device.cuh"
#include "ops/pooling/cuda/kernels.h"

namespace anydml {
namespace {

using namespace pooling;

constexpr uint32_t kTileThreads = 256;
constexpr uint32_t kLoadBytes = 16;

struct TileParameters {
  const void* input;
  void* output;
  uint32_t count;      // number with work
  FastDivisor groups;  // of windows, in a row
  FastDivisor rows;    // of windows
  int32_t height;      // of the input
  int32_t width;
  uint32_t windows;  // per row
  // Taps in [low, high) count in an average's divisor.
  int32_t low[2];
  int32_t high[2];
  bool stores_units;  // stores all windows of a thread at once
};

template <typename T>
struct alignas(kLoadBytes) TileUnit {
  T elements[kLoadBytes / sizeof(T)];
};
template <typename T, uint32_t kCount>
struct alignas(kCount * sizeof(T)) Outputs {
  T elements[kCount];
};

// One window of a thread.
template <typename T, uint32_t kSize>
__device__ T FirstNan(const T* plane, const TileParameters& p, int32_t row, int32_t column) {
  for (int32_t i = max(row, 0); i < min(row + static_cast<int32_t>(kSize), p.height); ++i) {
    for (int32_t j = max(column, 0); j < min(column + static_cast<int32_t>(kSize), p.width); ++j) {
      const T x = plane[int64_t{i} * p.width + j];
      const float number = NumberOf(x);
      if (number != number) return x;
    }
  }
  return T{};
}

template <typename T, bool kMax, uint32_t kSize, uint32_t kStride, uint32_t kPad>
__global__ void __launch_bounds__(kTileThreads) TileKernel(const __grid_constant__ TileParameters p) {
  constexpr uint32_t kUnit = kLoadBytes / sizeof(T), kWindows = kUnit / kStride;
  constexpr int32_t kRight = kSize > kStride + kPad ? kSize - kStride - kPad : 0;
  constexpr uint32_t kColumns = kPad + kUnit + kRight;
  const uint32_t i = blockIdx.x * kTileThreads + threadIdx.x;
  if (i >= p.count) return;
  uint32_t group, window_row;
  const uint32_t plane = p.rows.Divide(p.groups.Divide(i, &group), &window_row);
  const T* const input = static_cast<const T*>(p.input) + uint64_t{plane} * p.height * p.width;
  const auto first_row = static_cast<int32_t>(window_row * kStride) - static_cast<int32_t>(kPad);
  const auto begin = static_cast<int32_t>(group * kUnit);  // the first column that is loaded at once

  float columns[kColumns];
#pragma unroll
  for (float& column : columns) column = kMax ? Lowest<float>() : 0;
  const auto combine = [](float& column, float x) { column = kMax ? LargerOf(column, x) : column + x; };
#pragma unroll
  for (int32_t r = 0; r < static_cast<int32_t>(kSize); ++r) {
    const int32_t row = first_row + r;
    if (row < 0 || row >= p.height) continue;
    const T* const from = input + int64_t{row} * p.width + begin;
    if (kPad == 1 && begin > 0 && begin <= p.width) combine(columns[0], NumberOf(from[-1]));
    if (begin < p.width) {  // then so are all of the unit
      const uint4 bytes = *reinterpret_cast<const uint4*>(from);
      TileUnit<T> unit;
      memcpy(&unit, &bytes, sizeof(unit));
#pragma unroll
      for (uint32_t j = 0; j < kUnit; ++j) combine(columns[kPad + j], NumberOf(unit.elements[j]));
    }
#pragma unroll
    for (int32_t j = 0; j < kRight; ++j) {
      if (begin + static_cast<int32_t>(kUnit) + j < p.width) {
        combine(columns[kPad + kUnit + j], NumberOf(from[kUnit + j]));
      }
    }
  }

  Outputs<T, kWindows> results;
#pragma unroll
  for (uint32_t o = 0; o < kWindows; ++o) {
    float result = columns[o * kStride];
#pragma unroll
    for (uint32_t k = 1; k < kSize; ++k) combine(result, columns[o * kStride + k]);
    const int32_t column = begin + static_cast<int32_t>(o * kStride) - static_cast<int32_t>(kPad);
    if constexpr (kMax) {
      results.elements[o] =
          result == result ? ElementOf<T>(result) : FirstNan<T, kSize>(input, p, first_row, column);
    } else {
      constexpr auto kTaps = static_cast<int32_t>(kSize);
      const int32_t rows = min(first_row + kTaps, p.high[0]) - max(first_row, p.low[0]);
      const int32_t taps = rows * (min(column + kTaps, p.high[1]) - max(column, p.low[1]));
      // Without a tap in the input: 0.
      results.elements[o] = ElementOf<T>(rows <= 0 || taps <= 0 ? 0 : result / static_cast<float>(taps));
    }
  }
  const uint32_t first = group * kWindows;
  T* const to =
      static_cast<T*>(p.output) + (uint64_t{plane} * p.rows.divisor() + window_row) * p.windows + first;
  if (p.stores_units) {
    using Bytes = std::conditional_t<sizeof(results) == sizeof(uint2), uint2, uint4>;
    Bytes bytes;
    memcpy(&bytes, &results, sizeof(bytes));
    *reinterpret_cast<Bytes*>(to) = bytes;
    return;
  }
#pragma unroll
  for (uint32_t o = 0; o < kWindows; ++o) {
    if (first + o < p.windows) to[o] = results.elements[o];
  }
}

using TileLaunch = void (*)(const TileParameters& p, uint64_t blocks, KernelChain* chain);

template <typename T, bool kMax, uint32_t kSize, uint32_t kStride, uint32_t kPad>
void LaunchTiles(const TileParameters& p, uint64_t blocks, KernelChain* chain) {
  chain->Launch(TileKernel<T, kMax, kSize, kStride, kPad>, blocks, kTileThreads, p);
}

template <typename T, bool kMax>
TileLaunch FindTiles(const WindowAxis& axis) {
  const auto is = [&](uint32_t size, uint32_t stride, uint32_t pad) {
    return axis.size == size && axis.stride == stride && axis.start == pad;
  };
  if (is(3, 2, 1)) return &LaunchTiles<T, kMax, 3, 2, 1>;
  if (is(3, 2, 0)) return &LaunchTiles<T, kMax, 3, 2, 0>;
  if (is(3, 1, 1)) return &LaunchTiles<T, kMax, 3, 1, 1>;
  if (is(2, 2, 0)) return &LaunchTiles<T, kMax, 2, 2, 0>;
  return nullptr;
}

TileLaunch FindTiles(const PoolingProblem& problem) {
  const WindowAxis& axis = problem.shape.axes[2];
  const bool max = problem.function == PoolingFunction::kMax;
  if (problem.input.type == DataType::kFloat16) {
    return max ? FindTiles<Half, true>(axis) : FindTiles<Half, false>(axis);
  }
  return max ? FindTiles<float, true>(axis) : FindTiles<float, false>(axis);
}

class PoolingCudaTiles final : public Kernel {
 public:
  PoolingCudaTiles(const PoolingProblem& problem, const LowerContext& context, TileLaunch launch)
      : launch_(launch),
        bytes_(BitSize(problem.input.type) / 8),
        unaligned_(CreatePoolingCudaWindows(problem, context, nullptr)) {
    const WindowAxis &rows = problem.shape.axes[1], &columns = problem.shape.axes[2];
    const uint32_t unit = kLoadBytes / bytes_;
    outputs_ = unit / columns.stride;
    const uint32_t groups = (columns.windows + outputs_ - 1) / outputs_;
    const uint64_t count = uint64_t{problem.shape.batch} * problem.shape.channels * rows.windows * groups;
    common_.count = static_cast<uint32_t>(count);
    common_.groups = FastDivisor(groups);
    common_.rows = FastDivisor(rows.windows);
    common_.height = static_cast<int32_t>(rows.input);
    common_.width = static_cast<int32_t>(columns.input);
    common_.windows = columns.windows;
    for (uint32_t d = 0; d < 2; ++d) {
      const WindowAxis& axis = problem.shape.axes[1 + d];
      const bool padded = problem.include_padding;
      common_.low[d] = padded ? -static_cast<int32_t>(axis.start) : 0;
      common_.high[d] = static_cast<int32_t>(axis.input + (padded ? axis.end : 0));
    }
    blocks_ = (count + kTileThreads - 1) / kTileThreads;
  }

  Status Run(const KernelArguments& arguments) const override {
    TileParameters p = common_;
    p.input = arguments.inputs[0].data;
    p.output = arguments.outputs[0].data;
    if (reinterpret_cast<uintptr_t>(p.input) % kLoadBytes != 0) return unaligned_->Run(arguments);
    p.stores_units =
        p.windows % outputs_ == 0 && reinterpret_cast<uintptr_t>(p.output) % (outputs_ * bytes_) == 0;
    KernelChain chain(arguments.stream);
    launch_(p, blocks_, &chain);
    return {};
  }

 private:
  TileLaunch launch_;
  uint32_t bytes_;                           // per element
  std::unique_ptr<const Kernel> unaligned_;  // runs instead if the input is not aligned
  uint32_t outputs_;                         // windows per thread
  TileParameters common_{};                  // without addresses
  uint64_t blocks_;
};

}  // namespace

std::unique_ptr<const Kernel> CreatePoolingCudaTiles(const PoolingProblem& problem,
                                                     const LowerContext& context, std::string* why_not) {
  const auto no = [&](const char* reason) {
    *why_not = reason;
    return nullptr;
  };
  if (!IsPlainFloat(problem)) {
    return no("is for maxima and averages of FLOAT32 and FLOAT16, without indices");
  }
  const auto& axes = problem.shape.axes;
  const bool same = axes[1].size == axes[2].size && axes[1].stride == axes[2].stride &&
                    axes[1].start == axes[2].start && axes[1].dilation == 1 && axes[2].dilation == 1;
  const TileLaunch launch = same ? FindTiles(problem) : nullptr;
  if (launch == nullptr || axes[0].input != 1 || axes[0].windows != 1 || axes[0].size != 1) {
    return no("is for windows of 2x2 and 3x3");
  }
  if (axes[2].input % (kLoadBytes / (BitSize(problem.input.type) / 8)) != 0 ||
      !IsPacked(problem.input, problem.shape, false) || !IsPacked(problem.output, problem.shape, true)) {
    return no("is for packed tensors with rows of a multiple of 16 bytes");
  }
  if (problem.shape.Inputs() >= uint64_t{1} << 31 || uint64_t{axes[1].end} + axes[2].end >= 1 << 30) {
    return no("is for fewer than 2^31 elements");
  }
  return std::make_unique<PoolingCudaTiles>(problem, context, launch);
}

}  // namespace anydml
