// PADDING with a constant, where the output has no gaps: a thread writes 16 bytes of the output, each element
// from the input or the constant. (As copies, the thin slabs around the input would write parts of sectors,
// long before or after the rest of them.)
#include <cstring>

#include "ops/common/cuda_chain.cuh"
#include "ops/common/cuda_nest.cuh"
#include "ops/common/cuda_units.cuh"
#include "ops/move/problem.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 256;
constexpr uint32_t kShortestRow = 16;  // what a thread writes is in two rows at most

// Of the output. Where `at - start` is below `inner` there is an element of the input.
struct FrameLoop {
  uint32_t size = 1;
  uint32_t inner = 1;
  uint32_t start = 0;
  uint64_t stride = 0;  // in the input
};

struct DeviceLoop {
  FastDivisor size;
  uint32_t inner = 1;
  uint32_t start = 0;
  uint64_t stride = 0;

  DeviceLoop() = default;
  explicit DeviceLoop(const FrameLoop& loop)
      : size(loop.size), inner(loop.inner), start(loop.start), stride(loop.stride) {}
};

struct Parameters {
  const void* from = nullptr;
  void* to = nullptr;
  bool is_aligned = false;  // `to`, to 16 bytes
  uint64_t fill = 0;
  uint32_t elements = 0;
  uint32_t rank = 0;  // of the loops around rows
  DeviceLoop loops[kMaxDimensions];
  DeviceLoop row;
};

// Where a row of the output has its elements from; null where all are the constant.
template <typename T>
__device__ const T* SourceOfRow(const Parameters& p, uint32_t row) {
  uint64_t offset = 0;
  bool is_inside = true;
  for (uint32_t d = p.rank; d-- > 0;) {
    uint32_t at = row;
    if (d > 0) row = p.loops[d].size.Divide(row, &at);
    const uint32_t inner = at - p.loops[d].start;
    is_inside = is_inside && inner < p.loops[d].inner;
    offset += inner * p.loops[d].stride;
  }
  return is_inside ? static_cast<const T*>(p.from) + offset : nullptr;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) FrameKernel(const __grid_constant__ Parameters p) {
  constexpr uint32_t kCount = kMaxUnitBytes / sizeof(T);
  const uint64_t begin = (uint64_t{blockIdx.x} * kThreads + threadIdx.x) * kCount;
  if (begin >= p.elements) return;
  const auto first = static_cast<uint32_t>(begin);
  const uint32_t count = min(kCount, p.elements - first);
  const uint32_t length = p.row.size.divisor();
  uint32_t column;
  const uint32_t row = p.row.size.Divide(first, &column);
  const T* const here = SourceOfRow<T>(p, row);
  const T* const next = column + count > length ? SourceOfRow<T>(p, row + 1) : nullptr;
  struct alignas(kMaxUnitBytes) {
    T elements[kCount];
  } unit;
#pragma unroll
  for (uint32_t k = 0; k < kCount; ++k) {
    const bool is_here = column + k < length;
    const T* const source = is_here ? here : next;
    const uint32_t inner = column + k - (is_here ? 0 : length) - p.row.start;
    unit.elements[k] = static_cast<T>(p.fill);
    if (k < count && source != nullptr && inner < p.row.inner) {
      unit.elements[k] = source[inner * p.row.stride];
    }
  }
  T* const to = static_cast<T*>(p.to) + first;
  if (p.is_aligned && count == kCount) {
    uint4 bytes;
    memcpy(&bytes, &unit, sizeof(bytes));
    *reinterpret_cast<uint4*>(to) = bytes;
    return;
  }
#pragma unroll
  for (uint32_t k = 0; k < kCount; ++k) {
    if (k < count) to[k] = unit.elements[k];
  }
}

// Dimensions from the outermost; those without a frame that continue the one around them are one with it.
template <typename Desc>
std::vector<FrameLoop> LoopsOf(const Desc& desc) {
  std::vector<FrameLoop> loops;
  for (uint32_t d = 0; d < desc.output.rank; ++d) {
    const uint32_t size = desc.output.sizes[d], inner = desc.input.sizes[d];
    const uint64_t stride = desc.input.strides[d];
    if (size == 1) continue;
    if (!loops.empty() && size == inner && loops.back().stride == inner * stride) {
      FrameLoop& last = loops.back();
      last = {last.size * size, last.inner * inner, last.start * size, stride};
    } else {
      loops.push_back({size, inner, desc.start_padding[d], stride});
    }
  }
  return loops;
}

bool IsPacked(const TensorDesc& tensor) {
  uint64_t expected = 1;
  for (uint32_t d = tensor.rank; d-- > 0; expected *= tensor.sizes[d]) {
    if (tensor.sizes[d] != 1 && tensor.strides[d] != expected) return false;
  }
  return true;
}

class FrameCuda final : public Kernel {
 public:
  FrameCuda(const MoveProblem& problem, const std::vector<FrameLoop>& loops, uint64_t elements)
      : element_bytes_(BitSize(problem.type) / 8) {
    common_.fill = problem.fill;
    common_.elements = static_cast<uint32_t>(elements);
    common_.rank = static_cast<uint32_t>(loops.size() - 1);
    for (uint32_t d = 0; d < common_.rank; ++d) common_.loops[d] = DeviceLoop(loops[d]);
    common_.row = DeviceLoop(loops.back());
  }

  Status Run(const KernelArguments& arguments) const override {
    Parameters p = common_;
    p.from = arguments.inputs[0].data;
    p.to = arguments.outputs[0].data;
    p.is_aligned = AddressOf(p.to) % kMaxUnitBytes == 0;
    const uint64_t per_block = uint64_t{kThreads} * (kMaxUnitBytes / element_bytes_);
    const uint64_t blocks = (p.elements + per_block - 1) / per_block;
    DispatchByUnit(element_bytes_, [&]<typename T>() {
      if constexpr (sizeof(T) <= 8) {
        KernelChain(arguments.stream).Launch(FrameKernel<T>, blocks, kThreads, p);
      }
    });
    return {};
  }

 private:
  uint32_t element_bytes_;
  Parameters common_;  // but for addresses
};

template <typename Desc>
std::unique_ptr<const Kernel> CreateFrame(const MoveProblem& problem, const Desc& desc,
                                          std::string* why_not) {
  const std::vector<FrameLoop> loops = LoopsOf(desc);
  if (desc.padding_mode != PaddingMode::kConstant) {
    *why_not = "the padding is no constant";
  } else if (!IsPacked(desc.output)) {
    *why_not = "the output has gaps";
  } else if (loops.empty() || loops.back().size < kShortestRow) {
    *why_not = StrCat("rows are shorter than ", kShortestRow, " elements");
  } else {
    return std::make_unique<FrameCuda>(problem, loops, ElementCount(desc.output));
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<const Kernel> CreateFrameCuda(const MoveProblem& problem, const LowerContext&,
                                              std::string* why_not) {
  switch (static_cast<OperatorType>(problem.desc.schema->type)) {
    case OperatorType::kPadding:
      return CreateFrame(problem, PaddingDesc::From(problem.desc), why_not);
    case OperatorType::kPadding1:
      return CreateFrame(problem, Padding1Desc::From(problem.desc), why_not);
    default:
      *why_not = "nothing is padded";
      return nullptr;
  }
}

}  // namespace anydml
