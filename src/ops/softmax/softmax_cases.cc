#include "ops/element/element_cases.h"
#include "ops/reduce/reduce_cases.h"
#include "support/cases.h"

namespace anydml::testing {
namespace {

constexpr OperatorType kOperators[] = {
    OperatorType::kActivationSoftmax,    OperatorType::kActivationSoftmax1,
    OperatorType::kActivationLogSoftmax, OperatorType::kActivationLogSoftmax1,
    OperatorType::kActivationHardmax,    OperatorType::kActivationHardmax1,
};

Case MakeSoftmax(OperatorType type, CaseMaker& make) {
  const OperatorSchema& schema = *FindOperator(type);
  const bool has_axes = schema.fields.size() > 2;
  ByteSource& source = make.source();
  std::vector<uint32_t> sizes = make.Sizes(kMaxDimensions);
  if (!has_axes) {
    for (size_t d = 0; d + 2 < sizes.size(); ++d) sizes[d] = 1;
  }
  const DataType element = source.OneIn(2) ? DataType::kFloat16 : DataType::kFloat32;
  const TensorDesc input = make.Input(element, sizes), output = make.Output(element, sizes);
  Case problem;
  if (has_axes) {
    const std::vector<uint32_t> axes = DrawAxes(sizes, source);
    problem.desc = MakeDesc(schema.name, {{"InputTensor", input},
                                          {"OutputTensor", output},
                                          {"AxisCount", static_cast<uint32_t>(axes.size())},
                                          {"Axes", axes}});
  } else {
    problem.desc = MakeDesc(schema.name, {{"InputTensor", input}, {"OutputTensor", output}});
  }
  problem.inputs = {source.OneIn(2) ? NumbersToSum(input, make) : ElementContent(input, make)};
  return problem;
}

}  // namespace

CaseFamily family::softmax::Cases() { return {"softmax", kOperators, MakeSoftmax}; }

}  // namespace anydml::testing
