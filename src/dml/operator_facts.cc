// The functions of anydml.h about operators that need no device.
#include <DirectML.h>
#include <anydml.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/report.h"
#include "com/guard.h"
#include "backend/backend.h"
#include "ops/operator.h"
#include "schema/validate.h"

namespace {

using anydml::Status;

HRESULT Fail(const Status& status) {
  if (status.ok()) return S_OK;
  anydml::ReportError(status.message());
  return static_cast<HRESULT>(status.code());
}

Status Check(const DML_OPERATOR_DESC* desc, anydml::FeatureLevel level) {
  anydml::OperatorDesc read;
  ANYDML_RETURN_IF_ERROR(anydml::ReadOperatorDesc(desc, level, &read));
  ANYDML_RETURN_IF_ERROR(anydml::ValidateOperatorDesc(read, level));
  return anydml::FindImplementation(read.schema->type)->check(read, level);
}

// Operators infer tensors that are present but have no sizes.
void PutOutputs(anydml::OperatorDesc* desc) {
  for (size_t i = 0; i < desc->fields.size(); ++i) {
    const anydml::FieldSchema& field = desc->schema->fields[i];
    if (field.kind != anydml::FieldKind::kOutput || field.type != anydml::FieldType::kTensor) continue;
    if (std::holds_alternative<std::monostate>(desc->fields[i])) desc->fields[i] = anydml::TensorDesc();
  }
}

Status Infer(const DML_OPERATOR_DESC* desc, uint32_t count, AnyDmlTensor* outputs) {
  anydml::OperatorDesc read;
  ANYDML_RETURN_IF_ERROR(anydml::ReadOperatorDesc(desc, anydml::kLatestFeatureLevel, &read));
  PutOutputs(&read);
  ANYDML_RETURN_IF_ERROR(anydml::FindImplementation(read.schema->type)->infer(&read));
  const std::vector<const anydml::TensorDesc*> inferred = read.outputs();
  const bool lacks_outputs = count > 0 && outputs == nullptr;  // without outputs the pointer may be null
  if (inferred.size() != count || lacks_outputs) {
    return anydml::InvalidArgument("AnyDmlInferOutputs: ", read.schema->name, " has ", inferred.size(),
                                   " outputs but count is ", count, lacks_outputs ? ", outputs is null" : "");
  }
  for (uint32_t i = 0; i < count; ++i) {
    outputs[i] = {static_cast<uint32_t>(inferred[i]->type), inferred[i]->rank, {}};
    std::copy_n(inferred[i]->sizes.begin(), inferred[i]->rank, outputs[i].Sizes);
  }
  return {};
}

std::vector<std::string> ListImplementations() {
  anydml::Backends();  // loads the modules, whose implementations are listed, too
  std::vector<std::string> lists(anydml::AllOperators().size() + 1);
  for (const anydml::Operator* op : anydml::ImplementedOperators()) {
    for (const char* name : anydml::ImplementationNames(*op)) {
      lists[op->type] += anydml::StrCat(lists[op->type].empty() ? "" : "\n", name);
    }
  }
  return lists;
}

}  // namespace

extern "C" {

int32_t AnyDmlCheckOperator(const DML_OPERATOR_DESC* desc, uint32_t feature_level) {
  return anydml::Guard([&] { return Fail(Check(desc, feature_level)); });
}

int32_t AnyDmlInferOutputs(const DML_OPERATOR_DESC* desc, uint32_t count, AnyDmlTensor* outputs) {
  return anydml::Guard([&] { return Fail(Infer(desc, count, outputs)); });
}

const char* AnyDmlGetImplementations(uint32_t operator_type) {
  static const auto* const lists = new std::vector<std::string>(ListImplementations());
  return operator_type < lists->size() ? (*lists)[operator_type].c_str() : "";
}

}  // extern "C"
