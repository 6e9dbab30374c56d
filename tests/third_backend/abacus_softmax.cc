// The only family of this device: SOFTMAX of FLOAT32, in the obvious way.
#include <cmath>

#include "third_backend/abacus.h"
#include "ops/softmax/problem.h"

namespace anydml::abacus {
namespace {

class Softmax final : public Kernel {
 public:
  explicit Softmax(const SoftmaxProblem& problem) : nests_(NestsOf(problem)) {}

  Status Run(const KernelArguments& arguments) const override {
    const auto* const input = reinterpret_cast<const float*>(Behind(arguments.inputs[0].data));
    auto* const output = reinterpret_cast<float*>(Behind(arguments.outputs[0].data));
    ForEach(nests_.sets, {}, [&](const LoopNest<2>::Offsets& first) {
      const auto each = [&](const auto& body) {
        ForEach(nests_.elements, first,
                [&](const LoopNest<2>::Offsets& at) { body(input[at[0]], output[at[1]]); });
      };
      double most = -INFINITY, sum = 0;
      each([&](float x, float&) { most = x > most || std::isnan(x) ? double{x} : most; });
      each([&](float x, float&) { sum += std::exp(x - most); });
      each([&](float x, float& y) { y = static_cast<float>(std::exp(x - most) / sum); });
    });
    return {};
  }

 private:
  const SoftmaxNests nests_;
};

std::unique_ptr<const Kernel> Create(const SoftmaxProblem& problem, const LowerContext&,
                                     std::string* why_not) {
  if (problem.kind == SoftmaxKind::kSoftmax && problem.input.type == DataType::kFloat32) {
    return std::make_unique<Softmax>(problem);
  }
  *why_not = "not a softmax of FLOAT32";
  return nullptr;
}

constexpr Implementation<SoftmaxProblem> kSoftmax[] = {
    {.name = "abacus.softmax", .create = Create, .bound = SoftmaxBound},
};

}  // namespace

void RegisterSoftmax(Column* column) { column->Add<SoftmaxProblem>(kSoftmax); }

}  // namespace anydml::abacus
