#include "base/half.h"
#include "ops/common/coordinates.h"
#include "ops/element/reference_functions.h"
#include "ops/gemm/problem.h"

namespace anydml {
namespace {

class GemmReference final : public Kernel {
 public:
  explicit GemmReference(const GemmProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const GemmProblem& p = problem_;
    for (uint64_t b0 = 0; b0 < p.batch[0]; ++b0) {
      for (uint64_t b1 = 0; b1 < p.batch[1]; ++b1) {
        for (uint64_t row = 0; row < p.m; ++row) {
          for (uint64_t column = 0; column < p.n; ++column) RunElement(b0, b1, row, column, arguments);
        }
      }
    }
    return {};
  }

 private:
  double At(const Buffer& buffer, const GemmMatrix& matrix, uint64_t b0, uint64_t b1, uint64_t row,
            uint64_t column) const {
    const uint64_t at =
        b0 * matrix.batch[0] + b1 * matrix.batch[1] + row * matrix.row + column * matrix.column;
    return problem_.type == DataType::kFloat16 ? ToFloat(Load<Half>(buffer.data, at))
                                               : Load<float>(buffer.data, at);
  }

  void RunElement(uint64_t b0, uint64_t b1, uint64_t row, uint64_t column,
                  const KernelArguments& arguments) const {
    const GemmProblem& p = problem_;
    double sum = 0;
    for (uint64_t k = 0; k < p.k; ++k) {
      sum += At(arguments.inputs[0], p.a, b0, b1, row, k) * At(arguments.inputs[1], p.b, b0, b1, k, column);
    }
    sum *= p.alpha;
    if (p.c) sum += p.beta * At(arguments.inputs[2], *p.c, b0, b1, row, column);
    auto result = static_cast<float>(sum);
    for (const Instruction& i : p.activation.instructions) result = reference::Float(i, result, 0, 0);
    if (result != result) result = std::numeric_limits<float>::quiet_NaN();  // NOLINT: NaNs are alike
    const uint64_t at =
        b0 * p.output.batch[0] + b1 * p.output.batch[1] + row * p.output.row + column * p.output.column;
    if (p.output_type == DataType::kFloat16) {
      Store(arguments.outputs[0].data, at, ToHalf(result));
    } else {
      Store(arguments.outputs[0].data, at, result);
    }
  }

  GemmProblem problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateGemmReference(const GemmProblem& problem, const LowerContext&,
                                                  std::string*) {
  return std::make_unique<GemmReference>(problem);
}

}  // namespace anydml
