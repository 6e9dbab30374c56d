#include "support/cases.h"

namespace anydml::testing {
namespace {

constexpr OperatorType kOperators[] = {OperatorType::kOneHot};
constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kInt64,  DataType::kInt32,
                               DataType::kInt16,   DataType::kInt8,    DataType::kUInt64, DataType::kUInt32,
                               DataType::kUInt16,  DataType::kUInt8,   DataType::kFloat64};
constexpr DataType kIndexTypes[] = {DataType::kInt64, DataType::kInt32, DataType::kUInt64, DataType::kUInt32};

Case MakeOneHot(OperatorType type, CaseMaker& make) {
  const std::vector<uint32_t> sizes = make.Sizes(kMaxDimensions);
  const auto last = static_cast<uint32_t>(sizes.size()) - 1;
  const uint32_t axis = make.source().Between(0, last);
  std::vector<uint32_t> index_sizes = sizes, value_sizes(sizes.size(), 1);
  index_sizes[axis] = 1;
  value_sizes[make.source().OneIn(2) ? last : make.source().Between(0, last)] = make.source().Between(2, 3);
  const DataType data_type = make.source().Any(kTypes);
  const TensorDesc indices = make.Input(make.source().Any(kIndexTypes), index_sizes);
  const TensorDesc values = make.Input(data_type, value_sizes);
  Case problem;
  problem.desc = MakeDesc(FindOperator(type)->name, {{"IndicesTensor", indices},
                                                     {"ValuesTensor", values},
                                                     {"OutputTensor", make.Output(data_type, sizes)},
                                                     {"Axis", axis}});
  problem.inputs = {make.Indices(indices, sizes[axis]), make.Content(values)};
  return problem;
}

}  // namespace

CaseFamily family::one_hot::Cases() { return {"one_hot", kOperators, MakeOneHot}; }

}  // namespace anydml::testing
