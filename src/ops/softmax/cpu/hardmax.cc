#include "ops/softmax/hardmax.h"

#include <algorithm>

#include "ops/common/nest_parts.h"

namespace anydml {
namespace {

class HardmaxCpu final : public HardmaxKernel {
 public:
  HardmaxCpu(const SoftmaxProblem& problem, LoweredOperator argmax, const LowerContext& context)
      : HardmaxKernel(problem, std::move(argmax)) {
    by_stride_ = SortedByStride(elements_, 0);
    const uint32_t parts = PartsForBytes(ElementCount(problem.output) * bytes_, context.threads);
    parts_ = CutNest(sets_, LoopToCut(sets_, parts), parts);
  }

 private:
  Status Write(const uint32_t* positions, const KernelArguments& arguments) const override {
    std::byte* const output = arguments.outputs[0].data;
    ParallelFor(arguments.executor, static_cast<uint32_t>(parts_.size()), [&](uint32_t part) {
      if (bytes_ == sizeof(uint16_t)) {
        WritePart(parts_[part], positions, reinterpret_cast<uint16_t*>(output), kOneAsFloat16);
      } else {
        WritePart(parts_[part], positions, reinterpret_cast<uint32_t*>(output), kOneAsFloat32);
      }
    });
    return {};
  }

  template <typename T>
  void WritePart(const NestPart<2>& part, const uint32_t* positions, T* output, T one) const {
    LoopNest<1> outer = by_stride_;
    const auto inner = TakeInnermost(&outer);
    ForEach(part.outer, part.start, [&](LoopNest<2>::Offsets offsets) {
      for (uint64_t i = 0; i < part.inner.size; ++i) {
        T* const set = output + offsets[1];
        ForEach(outer, [&](const LoopNest<1>::Offsets& row) {
          if (inner.strides[0] == 1) {
            std::fill_n(set + row[0], inner.size, T{0});
          } else {
            for (uint64_t e = 0; e < inner.size; ++e) set[row[0] + e * inner.strides[0]] = 0;
          }
        });
        set[OffsetsOf(elements_, positions[offsets[0]])[0]] = one;
        for (size_t o = 0; o < 2; ++o) offsets[o] += part.inner.strides[o];
      }
    });
  }

  LoopNest<1> by_stride_;
  std::vector<NestPart<2>> parts_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateHardmaxCpu(const SoftmaxProblem& problem, const LowerContext& context,
                                               std::string* why_not) {
  return CreateHardmax<HardmaxCpu>(problem, context, why_not);
}

}  // namespace anydml
