#include "ops/device/cuda/copies.cuh"

#include <cstring>
#include <variant>

#include "ops/device/cuda/copy.cuh"
#include "ops/device/cuda/transpose.cuh"

namespace anydml {
namespace {

enum Operand { kFrom = DeviceCopy::kFrom, kTo = DeviceCopy::kTo };

__device__ uint4 VectorOf(const FillPattern& pattern) {
  return {pattern.words[0], pattern.words[1], pattern.words[2], pattern.words[3]};
}

// A copy, or a fill if `from` is null.
template <typename Unit>
__device__ void FillUnit(const DeviceCopy& copy, std::byte* to, uint64_t number, uint4 pattern) {
  if (number >= copy.units) return;
  uint64_t offsets[2] = {number, number};
  if (!copy.contiguous) copy.nest.OffsetsOf(static_cast<uint32_t>(number), offsets);
  Unit unit;
  memcpy(&unit, &pattern, sizeof(Unit));
  reinterpret_cast<Unit*>(to)[offsets[kTo]] = unit;
}

__device__ void CopyOrFillBlock(const DeviceCopy& copy, const std::byte* from, std::byte* to, uint64_t block,
                                uint4 pattern) {
  if (from != nullptr) return MapBlock<uint8_t>(copy, from, to, block, KeepBits{});
  DispatchByUnit(copy.unit_bytes, [&]<typename Unit>() {
    FillUnit<Unit>(copy, to, block * blockDim.x + threadIdx.x, pattern);
  });
  if (block == 0 && threadIdx.x < copy.tail_bytes) {
    // A part of a word of the pattern: units and elements are powers of two.
    const uint32_t words[4] = {pattern.x, pattern.y, pattern.z, pattern.w};
    to[uint64_t{copy.units} * copy.unit_bytes + threadIdx.x] =
        static_cast<std::byte>(words[threadIdx.x / 4] >> (threadIdx.x % 4 * 8));
  }
}

__global__ void __launch_bounds__(kCopyThreads) CopyOneKernel(const __grid_constant__ OneCopy p) {
  WaitForPrevious();
  LetNextStart();
  CopyOrFillBlock(p.copy, p.copy.from, p.copy.to, blockIdx.x, VectorOf(p.pattern));
}

__global__ void __launch_bounds__(kCopyThreads) CopyMixedKernel(const __grid_constant__ MixedCopies p) {
  WaitForPrevious();
  LetNextStart();
  uint32_t i = 0;
  while (blockIdx.x >= p.ends[i]) ++i;
  const DeviceCopy& copy = p.copies[i];
  CopyOrFillBlock(copy, copy.from, copy.to, blockIdx.x - (i == 0 ? 0 : p.ends[i - 1]), VectorOf(p.pattern));
}

__global__ void __launch_bounds__(kCopyThreads) CopySameKernel(const __grid_constant__ SameCopies p) {
  WaitForPrevious();
  LetNextStart();
  uint32_t i;
  const uint32_t block = p.count.Divide(blockIdx.x, &i);
  CopyOrFillBlock(p.shape, p.from[i], p.to[i], block, VectorOf(p.pattern));
}

// Every second element of a row; a thread writes sixteen bytes.
template <typename T>
__global__ void __launch_bounds__(kCopyThreads)
    CopyEverySecondKernel(const __grid_constant__ EverySecondCopy p) {
  const DeviceCopy& copy = p.copy;
  WaitForPrevious();
  LetNextStart();
  const uint64_t number = uint64_t{blockIdx.x} * kCopyThreads + threadIdx.x;
  if (number >= copy.units) return;
  uint64_t offsets[2];
  copy.nest.OffsetsOf(static_cast<uint32_t>(number), offsets);
  // The skipped element beside the last one is in the same sixteen bytes.
  const uint4* const from = reinterpret_cast<const uint4*>(copy.from) + offsets[kFrom];
  const uint4 both[2] = {__ldcs(from), __ldcs(from + 1)};
  constexpr uint32_t kCount = kMaxUnitBytes / sizeof(T);
  struct alignas(kMaxUnitBytes) {
    T elements[2 * kCount];
  } read;
  struct alignas(kMaxUnitBytes) {
    T elements[kCount];
  } kept;
  memcpy(&read, both, sizeof(read));
#pragma unroll
  for (uint32_t i = 0; i < kCount; ++i) kept.elements[i] = read.elements[2 * i];
  uint4 unit;
  memcpy(&unit, &kept, sizeof(unit));
  reinterpret_cast<uint4*>(copy.to)[offsets[kTo]] = unit;
}

template <typename Unit>
__global__ void __launch_bounds__(kCopyThreads) CopyRepeatedKernel(const __grid_constant__ RepeatedCopy p) {
  WaitForPrevious();
  LetNextStart();
  const uint64_t number = uint64_t{blockIdx.x} * kCopyThreads + threadIdx.x;
  uint32_t unit_number;
  const uint32_t first = p.units.Divide(static_cast<uint32_t>(number), &unit_number) * p.per_thread;
  if (number > ~0u || first >= p.repeats) return;
  uint64_t offsets[2];
  p.nest.OffsetsOf(unit_number, offsets);
  const Unit unit = reinterpret_cast<const Unit*>(p.from)[offsets[kFrom]];
  Unit* const to = reinterpret_cast<Unit*>(p.to) + offsets[kTo];
  const uint32_t end = min(first + p.per_thread, p.repeats);
  for (uint32_t i = first; i < end; ++i) {
    uint64_t target[1];
    p.targets.OffsetsOf(i, target);
    to[target[0]] = unit;
  }
}

template <typename T>
auto* TransposeKernelFor(TransposedCopy::Reads reads) {
  using enum TransposedCopy::Reads;
  if (reads == kVectors) return TransposeVectorsKernel<T, kVectors>;
  if constexpr (sizeof(T) <= 4) {
    if (reads == kWords) return TransposeVectorsKernel<T, kWords>;
  }
  return TransposeKernel<T>;
}

// Launches a CopyLaunch by its parameters.
struct Launcher {
  KernelChain* chain;
  const CopyLaunch& launch;

  void operator()(const OneCopy& p) const { chain->Launch(CopyOneKernel, launch.grid, p); }
  void operator()(const MixedCopies& p) const { chain->Launch(CopyMixedKernel, launch.grid, p); }
  void operator()(const SameCopies& p) const { chain->Launch(CopySameKernel, launch.grid, p); }
  void operator()(const EverySecondCopy& p) const {
    DispatchByUnit(launch.unit_bytes, [&]<typename T>() {
      if constexpr (sizeof(T) <= 8) chain->Launch(CopyEverySecondKernel<T>, launch.grid, p);
    });
  }
  void operator()(const RepeatedCopy& p) const {
    DispatchByUnit(launch.unit_bytes,
                   [&]<typename Unit>() { chain->Launch(CopyRepeatedKernel<Unit>, launch.grid, p); });
  }
  void operator()(const TransposedCopy& p) const {
    DispatchByUnit(launch.unit_bytes, [&]<typename T>() {
      if constexpr (sizeof(T) <= 8) chain->Launch(TransposeKernelFor<T>(launch.reads), launch.grid, p);
    });
  }
};

}  // namespace

void LaunchCopies(const DeviceCopies& copies, const KernelArguments& arguments, uint64_t fill,
                  KernelChain* chain) {
  for (uint32_t i = 0; i < copies.launches(); ++i) {
    const CopyLaunch launch = copies.Launch(i, arguments, fill);
    std::visit(Launcher{chain, launch}, launch.parameters);
  }
}

}  // namespace anydml
