#include <algorithm>

#include "ops/moments/modest_cases.h"
#include "support/cases.h"

namespace anydml::testing {
namespace {

constexpr OperatorType kOperators[] = {
    OperatorType::kMeanVarianceNormalization, OperatorType::kMeanVarianceNormalization1,
    OperatorType::kMeanVarianceNormalization2, OperatorType::kLpNormalization};

// Any set, but often the last dimensions, which form rows.
std::vector<uint32_t> DrawAxes(uint32_t rank, CaseMaker& make) {
  std::vector<uint32_t> axes;
  const uint32_t first = make.source().OneIn(2) ? make.source().Between(0, rank) : rank;
  for (uint32_t d = 0; d < rank; ++d) {
    if (first < rank ? d >= first : make.source().OneIn(2)) axes.push_back(d);
  }
  if (make.source().OneIn(3)) std::reverse(axes.begin(), axes.end());
  return axes;
}

void SetField(OperatorDesc* desc, const char* name, FieldValue value) {
  desc->fields[static_cast<size_t>(FindField(*desc->schema, name))] = std::move(value);
}

Case MakeMvn(OperatorType type, CaseMaker& make) {
  ByteSource& source = make.source();
  const bool is_lp = type == OperatorType::kLpNormalization;
  const bool is_first = type == OperatorType::kMeanVarianceNormalization;
  const OperatorSchema& schema = *FindOperator(type);
  std::vector<uint32_t> sizes = make.Sizes(is_first ? 4 : kMaxDimensions);
  while (is_first && sizes.size() < 4) sizes.insert(sizes.begin(), 1);
  const auto rank = static_cast<uint32_t>(sizes.size());
  const DataType data_type = source.Any(kFloatTypes);
  const bool packed = source.OneIn(2), whole = source.OneIn(2);
  const TensorDesc input = packed ? Packed(data_type, sizes) : make.Input(data_type, sizes);

  Case problem;
  problem.desc = MakeDesc(
      schema.name, {{"InputTensor", input},
                    {"OutputTensor", packed ? Packed(data_type, sizes) : make.Output(data_type, sizes)},
                    {"Epsilon", ModestEpsilon(whole, make)}});
  OperatorDesc* const desc = &problem.desc;
  if (is_lp) {
    SetField(desc, "Axis", source.OneIn(2) ? rank - 1 : source.Between(0, rank - 1));
    SetField(desc, "P", source.Between(1, 2));
  } else {
    for (const char* name : {"ScaleTensor", "BiasTensor"}) {
      if (source.OneIn(3)) continue;
      const std::vector<uint32_t> some = SomeOnes(sizes, make);
      SetField(desc, name, packed ? Packed(data_type, some) : make.Input(data_type, some));
    }
    SetField(desc, "FusedActivation", ModestActivation(schema, make));
    if (is_first) {
      SetField(desc, "CrossChannel", source.Between(0, 1));
    } else {
      const std::vector<uint32_t> axes = DrawAxes(rank, make);
      SetField(desc, "AxisCount", static_cast<uint32_t>(axes.size()));
      SetField(desc, "Axes", axes);
    }
    if (type == OperatorType::kMeanVarianceNormalization2) {
      SetField(desc, "UseMean", source.OneIn(3) ? 0u : 1u);
      SetField(desc, "UseVariance", source.OneIn(3) ? 0u : 1u);
    } else {
      SetField(desc, "NormalizeVariance", source.OneIn(4) ? 0u : 1u);
    }
  }
  for (const TensorDesc* tensor : desc->inputs()) {
    problem.inputs.push_back(tensor == nullptr ? Bytes{} : ModestContent(*tensor, whole, make));
  }
  Spoil(input, &problem.inputs[0], make);
  return problem;
}

}  // namespace

CaseFamily family::mvn::Cases() { return {"mvn", kOperators, MakeMvn}; }

}  // namespace anydml::testing
