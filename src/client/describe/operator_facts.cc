#include "client/describe/operator_facts.h"

#include <sstream>

#include <anydml.h>

#include "client/c_desc.h"

namespace anydml::client {
namespace {

Status LastFailure(int32_t result) {
  if (result >= 0) return {};
  return Status(static_cast<Code>(static_cast<uint32_t>(result)), AnyDmlGetLastErrorMessage());
}

// The output tensors in binding order; creates absent ones.
std::vector<TensorDesc*> Outputs(OperatorDesc* desc) {
  std::vector<TensorDesc*> tensors;
  for (size_t i = 0; i < desc->fields.size(); ++i) {
    const FieldSchema& field = desc->schema->fields[i];
    if (field.kind != FieldKind::kOutput) continue;
    if (auto* array = std::get_if<std::vector<TensorDesc>>(&desc->fields[i])) {
      for (TensorDesc& tensor : *array) tensors.push_back(&tensor);
    } else if (field.type == FieldType::kTensor) {
      if (std::holds_alternative<std::monostate>(desc->fields[i])) desc->fields[i] = TensorDesc();
      tensors.push_back(&std::get<TensorDesc>(desc->fields[i]));
    }
  }
  return tensors;
}

}  // namespace

std::vector<std::string> ImplementationsOf(const OperatorSchema& schema) {
  std::istringstream lines(AnyDmlGetImplementations(schema.type));
  std::vector<std::string> names;
  for (std::string name; std::getline(lines, name);) names.push_back(name);
  return names;
}

Status CheckOperator(const DML_OPERATOR_DESC& desc, FeatureLevel level) {
  return LastFailure(AnyDmlCheckOperator(&desc, level));
}

Status InferOutputs(OperatorDesc* desc) {
  const std::vector<TensorDesc*> outputs = Outputs(desc);
  std::vector<AnyDmlTensor> inferred(outputs.size());
  const CDesc c_desc(*desc);
  ANYDML_RETURN_IF_ERROR(LastFailure(
      AnyDmlInferOutputs(&c_desc.get(), static_cast<uint32_t>(inferred.size()), inferred.data())));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i]->rank > 0) continue;
    const auto type = static_cast<DataType>(inferred[i].DataType);
    *outputs[i] = PackedTensor(type, inferred[i].Sizes, inferred[i].DimensionCount);
  }
  return {};
}

}  // namespace anydml::client
