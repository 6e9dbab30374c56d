#include "ops/common/checks.h"
#include "ops/generate/random.h"
#include "ops/implementation_list.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

constexpr uint32_t kStateWords = 6;

// The schema already requires OutputStateTensor to have InputStateTensor's sizes.
Status Check(const OperatorDesc& desc, FeatureLevel) {
  const TensorDesc& state = *desc.tensor("InputStateTensor");
  Dimensions sizes;
  sizes.fill(1);
  sizes[state.rank - 1] = kStateWords;
  return CheckSizes(desc, "InputStateTensor", sizes, "a counter of four words and a key of two");
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const auto random = RandomGeneratorDesc::From(desc);
  RandomProblem problem;
  problem.output = random.output;
  problem.state_stride = random.input_state.strides[random.input_state.rank - 1];
  problem.has_output_state = random.output_state != nullptr;
  if (problem.has_output_state) {
    problem.output_state_stride = random.output_state->strides[random.output_state->rank - 1];
  }
  return ChooseKernel(problem, context, out);
}

Status Infer(OperatorDesc* desc) {
  const TensorDesc* state = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputStateTensor", &state));
  const TensorDesc like = *state;
  FillTensor(desc, "OutputStateTensor", like.type, like.sizes, like.rank);
  return RequireOutput(*desc, "OutputTensor");
}

}  // namespace

const Operator& RandomGeneratorOperator() {
  static const Operator op = {static_cast<uint32_t>(OperatorType::kRandomGenerator),
                              Check,
                              Lower,
                              Infer,
                              RandomProblem::kFamily,
                              kPlainTraits};
  return op;
}

}  // namespace anydml
