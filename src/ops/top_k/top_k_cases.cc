#include "support/cases.h"

namespace anydml::testing {
namespace {

constexpr OperatorType kOperators[] = {OperatorType::kTopK, OperatorType::kTopK1};
constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kInt64,  DataType::kInt32,
                               DataType::kInt16,   DataType::kInt8,    DataType::kUInt64, DataType::kUInt32,
                               DataType::kUInt16,  DataType::kUInt8};

Case MakeTopK(OperatorType type, CaseMaker& make) {
  const DataType value_type = make.source().Any(kTypes);
  const std::vector<uint32_t> sizes = make.Sizes(kMaxDimensions);
  const uint32_t axis = make.source().Between(0, static_cast<uint32_t>(sizes.size()) - 1);
  std::vector<uint32_t> output_sizes = sizes;
  const uint32_t k = output_sizes[axis] = make.source().Between(1, sizes[axis]);
  const DataType index_type = make.source().OneIn(2) ? DataType::kUInt64 : DataType::kUInt32;
  const TensorDesc input = make.Input(value_type, sizes);
  Case problem;
  problem.desc =
      MakeDesc(FindOperator(type)->name, {{"InputTensor", input},
                                          {"OutputValueTensor", make.Output(value_type, output_sizes)},
                                          {"OutputIndexTensor", make.Output(index_type, output_sizes)},
                                          {"Axis", axis},
                                          {"K", k}});
  if (const int field = FindField(*problem.desc.schema, "AxisDirection"); field >= 0) {
    problem.desc.fields[static_cast<size_t>(field)] = make.source().Between(0, 1);
  }
  problem.inputs = {make.Content(input)};
  return problem;
}

}  // namespace

CaseFamily family::top_k::Cases() { return {"top_k", kOperators, MakeTopK}; }

}  // namespace anydml::testing
