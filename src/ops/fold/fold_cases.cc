#include "ops/element/element_cases.h"
#include "support/cases.h"

namespace anydml::testing {
namespace {

using Numbers = std::vector<uint32_t>;

constexpr OperatorType kOperators[] = {OperatorType::kFold, OperatorType::kUnfold};
constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kFloat64, DataType::kInt8,
                               DataType::kUInt8,   DataType::kInt16,   DataType::kUInt16,  DataType::kInt32,
                               DataType::kUInt32,  DataType::kInt64,   DataType::kUInt64};

Case MakeFold(OperatorType type, CaseMaker& make) {
  ByteSource& source = make.source();
  const bool unfold = type == OperatorType::kUnfold;
  const uint32_t rank = source.OneIn(3) ? source.Between(1, 6) : source.Between(1, 3);
  Numbers image = {source.Between(1, 2), source.Between(1, 3)};
  Numbers sizes, strides, dilations, start, end;
  Numbers columns = {image[0], image[1], 1};
  for (uint32_t i = 0; i < rank; ++i) {
    const uint32_t most = rank > 3 ? 3 : source.OneIn(10) ? 70 : 9;
    image.push_back(source.Between(1, most));
    sizes.push_back(source.Between(1, rank > 3 ? 2 : 4));
    strides.push_back(source.Between(1, 3));
    dilations.push_back(source.OneIn(3) ? source.Between(1, 3) : 1);
    start.push_back(source.OneIn(2) ? source.Between(0, 2) : 0);
    end.push_back(source.OneIn(2) ? source.Between(0, 2) : 0);
    const uint32_t extent = (sizes[i] - 1) * dilations[i] + 1;
    if (extent > image[2 + i] + start[i] + end[i]) end[i] = extent - image[2 + i] - start[i];
    columns[1] *= sizes[i];
    columns[2] *= (image[2 + i] + start[i] + end[i] - extent) / strides[i] + 1;
  }
  const uint32_t factor = make.FactorFor(uint64_t{columns[0]} * columns[1] * columns[2]);
  image[1] *= factor;
  columns[1] *= factor;
  while (columns.size() < 8 && source.OneIn(6)) columns.insert(columns.begin(), 1);
  const DataType element = source.Any(kTypes);
  const TensorDesc input = make.Input(element, unfold ? image : columns);
  Case problem;
  problem.desc =
      MakeDesc(FindOperator(type)->name, {{"InputTensor", input},
                                          {"OutputTensor", make.Output(element, unfold ? columns : image)},
                                          {"DimensionCount", rank},
                                          {"WindowSizes", sizes},
                                          {"Strides", strides},
                                          {"Dilations", dilations},
                                          {"StartPadding", start},
                                          {"EndPadding", end}});
  problem.inputs = {ElementContent(input, make)};
  return problem;
}

}  // namespace

CaseFamily family::fold::Cases() { return {"fold", kOperators, MakeFold}; }

}  // namespace anydml::testing
