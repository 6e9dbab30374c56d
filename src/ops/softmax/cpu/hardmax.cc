#include "ops/softmax/hardmax.h"

#include <algorithm>

#include "ops/common/nest_parts.h"

namespace anydml {
namespace {

class HardmaxCpu final : public HardmaxKernel {
 public:
  HardmaxCpu(const SoftmaxProblem& problem, LoweredOperator argmax, const LowerContext& context)
      : HardmaxKernel(problem, std::move(argmax)) {
    LoopNest<1> all;
    const TensorDesc& output = problem.output;
    for (uint32_t d = 0; d < output.rank; ++d) all.Append(output.sizes[d], {output.strides[d]});
    all = SortedByStride(all, 0);
    const uint32_t parts = PartsForBytes(ElementCount(output) * bytes_, context.threads);
    parts_ = CutNest(all, LoopToCut(all, parts), parts);
  }

 private:
  Status Write(const uint32_t* positions, const KernelArguments& arguments) const override {
    std::byte* const output = arguments.outputs[0].data;
    if (bytes_ == sizeof(uint16_t)) {
      WriteAs<uint16_t>(positions, output, kOneAsFloat16, arguments.executor);
    } else {
      WriteAs<uint32_t>(positions, output, kOneAsFloat32, arguments.executor);
    }
    return {};
  }

  template <typename T>
  void WriteAs(const uint32_t* positions, std::byte* data, T one, Executor* executor) const {
    T* const output = reinterpret_cast<T*>(data);
    ParallelFor(executor, static_cast<uint32_t>(parts_.size()), [&](uint32_t p) {
      const NestPart<1>& part = parts_[p];
      ForEach(part.outer, part.start, [&](const LoopNest<1>::Offsets& row) {
        if (part.inner.strides[0] == 1) {
          std::fill_n(output + row[0], part.inner.size, T{0});
        } else {
          for (uint64_t i = 0; i < part.inner.size; ++i) output[row[0] + i * part.inner.strides[0]] = 0;
        }
      });
    });
    ForEach(sets_, [&](const LoopNest<2>::Offsets& set) {
      output[set[1] + OffsetsOf(elements_, positions[set[0]])[0]] = one;
    });
  }

  std::vector<NestPart<1>> parts_;  // of the output
};

}  // namespace

std::unique_ptr<const Kernel> CreateHardmaxCpu(const SoftmaxProblem& problem, const LowerContext& context,
                                               std::string* why_not) {
  return CreateHardmax<HardmaxCpu>(problem, context, why_not);
}

}  // namespace anydml
