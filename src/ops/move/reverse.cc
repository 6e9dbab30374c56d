#include "ops/move/reverse.h"

#include <algorithm>
#include <cstring>

#include "ops/common/checks.h"
#include "ops/common/coordinates.h"
#include "ops/implementation_list.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

Status Check(const OperatorDesc& desc, FeatureLevel) {
  const auto typed = ReverseSubsequencesDesc::From(desc);
  ANYDML_RETURN_IF_ERROR(CheckAxis(desc));
  Dimensions sizes = typed.input.sizes;
  sizes[typed.axis] = 1;
  return CheckSizes(desc, "SequenceLengthsTensor", sizes, "there is one length for each sequence along Axis");
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const auto typed = ReverseSubsequencesDesc::From(desc);
  const ReverseProblem problem = {typed.input, typed.sequence_lengths, typed.output, typed.axis};
  return ChooseKernel(problem, context, out);
}

Status Infer(OperatorDesc* desc) {
  const TensorDesc* given = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &given));
  const TensorDesc input = *given;
  FillTensor(desc, "OutputTensor", input.type, input.sizes, input.rank);
  return {};
}

class ReverseReference final : public Kernel {
 public:
  explicit ReverseReference(const ReverseProblem& problem) : problem_(problem) {}

  Status Run(const KernelArguments& arguments) const override {
    const TensorDesc& input = problem_.input;
    const uint64_t width = BitSize(input.type) / 8;
    ForEachCoordinate(input.sizes, input.rank, [&](const Dimensions& at) {
      Dimensions first = at, from = at;
      first[problem_.axis] = 0;
      const uint64_t offset = ElementOffset(problem_.lengths, first);
      const std::byte* const lengths = arguments.inputs[1].data;
      uint64_t length = problem_.lengths.type == DataType::kUInt64 ? Load<uint64_t>(lengths, offset)
                                                                   : Load<uint32_t>(lengths, offset);
      length = std::min<uint64_t>(length, input.sizes[problem_.axis]);
      uint32_t& i = from[problem_.axis];
      if (i < length) i = static_cast<uint32_t>(length - 1 - i);
      std::memcpy(arguments.outputs[0].data + ElementOffset(problem_.output, at) * width,
                  arguments.inputs[0].data + ElementOffset(input, from) * width, width);
    });
    return {};
  }

 private:
  ReverseProblem problem_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateReverseReference(const ReverseProblem& problem, const LowerContext&,
                                                     std::string*) {
  return std::make_unique<ReverseReference>(problem);
}

const Operator& ReverseSubsequencesOperator() {
  static const Operator op = {static_cast<uint32_t>(OperatorType::kReverseSubsequences),
                              Check,
                              Lower,
                              Infer,
                              ReverseProblem::kFamily,
                              kPlainTraits};
  return op;
}

}  // namespace anydml
