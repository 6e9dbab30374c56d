#include "ops/element/element_cases.h"
#include "support/cases.h"

namespace anydml::testing {
namespace {

constexpr OperatorType kOperators[] = {OperatorType::kDynamicQuantizeLinear};

Case MakeDynamicQuantize(OperatorType type, CaseMaker& make) {
  const std::vector<uint32_t> sizes = make.Sizes(kMaxDimensions), ones(sizes.size(), 1);
  const DataType result = make.source().OneIn(2) ? DataType::kInt8 : DataType::kUInt8;
  const TensorDesc input =
      make.Input(make.source().OneIn(2) ? DataType::kFloat16 : DataType::kFloat32, sizes);
  Case problem;
  problem.desc =
      MakeDesc(FindOperator(type)->name, {{"InputTensor", input},
                                          {"OutputTensor", make.Output(result, sizes)},
                                          {"OutputScaleTensor", make.Output(DataType::kFloat32, ones)},
                                          {"OutputZeroPointTensor", make.Output(result, ones)}});
  problem.inputs = {ElementContent(input, make)};
  return problem;
}

}  // namespace

CaseFamily family::dynamic_quantize::Cases() { return {"dynamic_quantize", kOperators, MakeDynamicQuantize}; }

}  // namespace anydml::testing
