// Nearest elements in the last two dimensions of images. A thread finds the columns that it takes once, for
// several rows, and writes up to 16 bytes of a row at a time.
#include <cstring>

#include "ops/common/cuda_chain.cuh"
#include "ops/common/dispatch.h"
#include "ops/resample/cuda/strips.cuh"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 256;

// Columns of a thread.
template <typename T>
constexpr uint32_t kColumns = sizeof(T) == 4 ? 4 : 8;
template <typename T>
using Unit = std::conditional_t<sizeof(T) == 1, uint2, uint4>;

struct Parameters {
  const void* source = nullptr;
  void* target = nullptr;
  bool is_aligned = false;  // a thread's columns can be written at once
  Strips strips;
};

template <typename T>
__global__ void __launch_bounds__(kThreads) CopyRows(const __grid_constant__ Parameters p) {
  constexpr uint32_t kCount = kColumns<T>;
  const uint64_t number = uint64_t{blockIdx.x} * kThreads + threadIdx.x;
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

class ResampleCopyRowsCuda final : public Kernel {
 public:
  ResampleCopyRowsCuda(const ResampleProblem& problem, const ResamplePlan& plan, const LowerContext& context)
      : type_(problem.type),
        element_bytes_(BitSize(problem.type) / 8),
        strips_(plan, element_bytes_ == 4 ? 4 : 8, context),
        constraints_(StoreConstraints(plan, element_bytes_)) {}

  Status Run(const KernelArguments& arguments) const override {
    Parameters p;
    p.source = arguments.inputs[0].data;
    p.target = arguments.outputs[0].data;
    p.is_aligned = LargestUnit(constraints_ | AddressOf(p.target)) >= strips_.columns * element_bytes_;
    p.strips = strips_;
    const uint64_t blocks = (strips_.threads + kThreads - 1) / kThreads;
    KernelChain chain(arguments.stream);
    DispatchByWidth(type_, [&]<typename T>() {
      if constexpr (sizeof(T) <= 4) chain.Launch(CopyRows<T>, blocks, kThreads, p);
    });
    return {};
  }

 private:
  DataType type_;
  uint32_t element_bytes_;
  Strips strips_;
  uint64_t constraints_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateResampleCopyRowsCuda(const ResampleProblem& problem,
                                                         const LowerContext& context, std::string* why_not) {
  const ResamplePlan plan(problem);
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
