// Nearest elements in the last two dimensions of images. A thread determines its columns once for several
// rows, and writes up to 16 bytes of a row at a time.
#include <cstring>

#include "base/dispatch.h"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/resample/cuda/doubled.cuh"
#include "ops/resample/cuda/strips.cuh"

namespace anydml {
namespace {

constexpr uint32_t kRowThreads = 256;

// Columns per thread.
template <typename T>
constexpr uint32_t kRowColumns = sizeof(T) == 4 ? 4 : 8;
template <typename T>
using Unit = std::conditional_t<sizeof(T) == 1, uint2, uint4>;

struct RowParameters {
  const void* source = nullptr;
  void* target = nullptr;
  bool is_aligned = false;  // a thread's columns can be written at once
  Strips strips;
};

template <typename T>
__global__ void __launch_bounds__(kRowThreads) CopyRows(const __grid_constant__ RowParameters p) {
  constexpr uint32_t kCount = kRowColumns<T>;
  const uint64_t number = uint64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  if (number >= p.strips.threads) return;
  const Strips::Part part = p.strips.PartOf(static_cast<uint32_t>(number));
  const ResampleAxis& y = p.strips.y;
  const ResampleAxis& x = p.strips.x;
  const T* const source = static_cast<const T*>(p.source) + part.offsets[0];
  T* const target = static_cast<T*>(p.target) + part.offsets[1] + part.column;
  uint64_t columns[kCount];
#pragma unroll
  for (uint32_t j = 0; j < kCount; ++j) {
    const uint32_t column = min(part.column + j, x.to - 1);
    columns[j] = uint64_t{NearestAt(x, p.strips.PlaceOfColumn(column))} * x.source_stride;
  }
  constexpr uint32_t kNoRow = ~0u;
  uint32_t loaded = kNoRow;
  alignas(Unit<T>) T elements[kCount];
  for (uint32_t row = part.first_row; row < part.end_row; ++row) {
    const uint32_t wanted = NearestAt(y, p.strips.PlaceOfRow(row));
    if (wanted != loaded) {
      const T* const from = source + uint64_t{wanted} * y.source_stride;
#pragma unroll
      for (uint32_t j = 0; j < kCount; ++j) elements[j] = from[columns[j]];
      loaded = wanted;
    }
    T* const to = target + uint64_t{row} * y.target_stride;
    if (p.is_aligned) {
      Unit<T> unit;
      memcpy(&unit, elements, sizeof(unit));
      *reinterpret_cast<Unit<T>*>(to) = unit;
      continue;
    }
#pragma unroll
    for (uint32_t j = 0; j < kCount; ++j) {
      if (part.column + j < x.to) to[j] = elements[j];
    }
  }
}

// Doubles every element of a word: the lower half of the result, and the upper one.
template <typename T>
__device__ uint2 Twice(uint32_t word) {
  if constexpr (sizeof(T) == 4) return {word, word};
  if constexpr (sizeof(T) == 2) return {__byte_perm(word, 0, 0x1010), __byte_perm(word, 0, 0x3232)};
  return {__byte_perm(word, 0, 0x1100), __byte_perm(word, 0, 0x3322)};
}

// Twice as many rows and columns: every element becomes four.
template <typename T>
__global__ void __launch_bounds__(kRowThreads) CopyDoubled(const __grid_constant__ DoubledImages p) {
  constexpr uint32_t kAtOnce = 4;  // rows
  const uint64_t number = uint64_t{blockIdx.x} * kRowThreads + threadIdx.x;
  if (number >= p.threads) return;
  const DoubledImages::Part part = p.PartOf(static_cast<uint32_t>(number));
  for (uint32_t first = part.first; first < part.end; first += kAtOnce) {
    uint2 read[kAtOnce];
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      read[i] = {};
      if (first + i < part.end) {
        read[i] = __ldcs(reinterpret_cast<const uint2*>(part.source + (first + i) * p.source_stride));
      }
    }
#pragma unroll
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      if (first + i >= part.end) break;
      const uint2 left = Twice<T>(read[i].x), right = Twice<T>(read[i].y);
      const uint4 unit = {left.x, left.y, right.x, right.y};
      std::byte* const to = part.target + 2 * (first + i) * p.target_stride;
      *reinterpret_cast<uint4*>(to) = unit;
      *reinterpret_cast<uint4*>(to + p.target_stride) = unit;
    }
  }
}

class ResampleCopyRowsCuda final : public Kernel {
 public:
  ResampleCopyRowsCuda(const ResampleProblem& problem, const ResampleLevels& plan,
                       const LowerContext& context)
      : type_(problem.type),
        element_bytes_(BitSize(problem.type) / 8),
        images_(plan, element_bytes_, context),
        strips_(plan, element_bytes_ == 4 ? 4 : 8, context),
        constraints_(StoreConstraints(plan, element_bytes_)) {
    const auto is_first_half = [](uint32_t i, const Taps& taps) { return taps.first == i / 2; };
    images_.possible = images_.possible && IsDoubledAxis(plan.levels[0], is_first_half) &&
                       IsDoubledAxis(plan.levels[1], is_first_half);
  }

  Status Run(const KernelArguments& arguments) const override {
    RowParameters p;
    p.source = arguments.inputs[0].data;
    p.target = arguments.outputs[0].data;
    p.is_aligned = LargestUnit(constraints_ | AddressOf(p.target)) >= strips_.columns * element_bytes_;
    p.strips = strips_;
    KernelChain chain(arguments.stream);
    if (images_.MayHave(p.source, p.target)) {
      DoubledImages images = images_;
      images.source = arguments.inputs[0].data;
      images.target = arguments.outputs[0].data;
      DispatchByWidth(type_, [&]<typename T>() {
        if constexpr (sizeof(T) <= 4) {
          chain.Launch(CopyDoubled<T>, (images.threads + kRowThreads - 1) / kRowThreads, kRowThreads, images);
        }
      });
      return {};
    }
    const uint64_t blocks = (strips_.threads + kRowThreads - 1) / kRowThreads;
    DispatchByWidth(type_, [&]<typename T>() {
      if constexpr (sizeof(T) <= 4) chain.Launch(CopyRows<T>, blocks, kRowThreads, p);
    });
    return {};
  }

 private:
  DataType type_;
  uint32_t element_bytes_;
  DoubledImages images_;  // both dimensions doubled
  Strips strips_;
  uint64_t constraints_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateResampleCopyRowsCuda(const ResampleProblem& problem,
                                                         const LowerContext& context, std::string* why_not) {
  const ResampleLevels plan(problem);
  const auto is_same = [](const ResampleAxis& axis) { return axis.rule == ResampleRule::kSame; };
  *why_not = IsNearest(problem) ? WhyNoStrips(problem, plan) : "elements are added up";
  if (!why_not->empty()) return nullptr;
  if (is_same(plan.levels[0]) || is_same(plan.levels[1])) {
    *why_not = "elements are repeated at the end only";
    return nullptr;
  }
  return std::make_unique<ResampleCopyRowsCuda>(problem, plan, context);
}

}  // namespace anydml
