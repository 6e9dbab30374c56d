#include "ops/common/dispatch.h"
#include "ops/common/strided_copy.h"
#include "ops/identity/problem.h"
#include "ops/identity/scale_bias.h"

namespace anydml {
namespace {

enum Operand { kInput, kOutput };

class IdentityCopy final : public Kernel {
 public:
  IdentityCopy(const IdentityProblem& problem, uint32_t threads)
      : copy_(problem.input, problem.output, threads) {}

  Status Run(const KernelArguments& arguments) const override {
    copy_.Run(arguments.inputs[0].data, arguments.outputs[0].data, arguments.executor);
    return {};
  }

 private:
  StridedCopy copy_;
};

template <typename T>
class IdentityTyped final : public Kernel {
 public:
  IdentityTyped(const IdentityProblem& problem, uint32_t threads) : scale_bias_(*problem.scale_bias) {
    LoopNest<2> nest;
    for (uint32_t d = 0; d < problem.output.rank; ++d) {
      nest.Append(problem.output.sizes[d], {problem.input.strides[d], problem.output.strides[d]});
    }
    nest = SortedByStride(nest, kOutput);
    const uint32_t parts = PartsForBytes(Iterations(nest) * sizeof(T), threads);
    parts_ = CutNest(nest, LoopToCut(nest, parts), parts);
  }

  Status Run(const KernelArguments& arguments) const override {
    const ScaleBias s = scale_bias_;
    if constexpr (!std::is_integral_v<T>) {
      Map(arguments, [s](T x) { return ApplyScaleBias(x, s); });
    } else if (IsIntegral(s.scale) && IsIntegral(s.bias)) {
      const uint64_t scale = Modulo64(s.scale);
      const uint64_t bias = Modulo64(s.bias);
      Map(arguments, [scale, bias](T x) { return ApplyScaleBiasExact(x, scale, bias); });
    } else {
      Map(arguments, [s](T x) { return ApplyScaleBiasRounded(x, s); });
    }
    return {};
  }

 private:
  template <typename F>
  void Map(const KernelArguments& arguments, F f) const {
    const auto* input = reinterpret_cast<const T*>(arguments.inputs[0].data);
    auto* output = reinterpret_cast<T*>(arguments.outputs[0].data);
    ParallelFor(arguments.executor, static_cast<uint32_t>(parts_.size()),
                [&](uint32_t p) { MapPart(parts_[p], input, output, f); });
  }

  // Input and output may be the same memory: an element is written only after it was read.
  template <typename F>
  static void MapPart(const NestPart<2>& part, const T* input, T* output, F f) {
    const auto inner = part.inner;
    ForEach(part.outer, part.start, [&](const LoopNest<2>::Offsets& offsets) {
      const T* from = input + offsets[kInput];
      T* to = output + offsets[kOutput];
      if (inner.strides[kInput] == 1 && inner.strides[kOutput] == 1) {
        for (uint64_t i = 0; i < inner.size; ++i) to[i] = f(from[i]);
      } else {
        for (uint64_t i = 0; i < inner.size; ++i) {
          to[i * inner.strides[kOutput]] = f(from[i * inner.strides[kInput]]);
        }
      }
    });
  }

  ScaleBias scale_bias_;
  std::vector<NestPart<2>> parts_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateIdentityCopy(const IdentityProblem& problem, const LowerContext& context,
                                                 std::string* why_not) {
  if (problem.scale_bias) {
    *why_not = "there is a ScaleBias to apply";
    return nullptr;
  }
  return std::make_unique<IdentityCopy>(problem, context.threads);
}

std::unique_ptr<const Kernel> CreateIdentityTyped(const IdentityProblem& problem, const LowerContext& context,
                                                  std::string* why_not) {
  if (!problem.scale_bias) {
    *why_not = "there is no ScaleBias to apply";
    return nullptr;
  }
  return DispatchByType(problem.output.type, [&]<typename T>() -> std::unique_ptr<const Kernel> {
    return std::make_unique<IdentityTyped<T>>(problem, context.threads);
  });
}

}  // namespace anydml
