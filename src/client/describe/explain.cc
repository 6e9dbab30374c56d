#include "client/describe/explain.h"

#include <algorithm>
#include <string>

#include "client/c_desc.h"
#include "client/describe/operator_facts.h"

namespace anydml::client {
namespace {

Status CheckAtLatestLevel(const OperatorDesc& desc) {
  return CheckOperator(CDesc(desc).get(), kLatestFeatureLevel);
}

bool HasFloat64(const FieldValue& value) {
  const auto is_float64 = [](const TensorDesc& tensor) { return tensor.type == DataType::kFloat64; };
  if (const auto* tensor = std::get_if<TensorDesc>(&value)) return is_float64(*tensor);
  const auto* array = std::get_if<std::vector<TensorDesc>>(&value);
  return array != nullptr && std::any_of(array->begin(), array->end(), is_float64);
}

// Whether an input is FLOAT64 and may not be.
bool HasWrongFloat64(const OperatorDesc& desc, FeatureLevel level) {
  const auto& tensors = SupportAt(*desc.schema, level).tensors;
  return std::any_of(tensors.begin(), tensors.end(), [&](const TensorSupport& support) {
    const bool taken = (support.types >> static_cast<unsigned>(DataType::kFloat64) & 1) != 0;
    return !taken && desc.schema->fields[support.field].kind == FieldKind::kInput &&
           HasFloat64(desc.fields[support.field]);
  });
}

// The latest level adds the fewest dimensions. Failures caused by an earlier level are not of interest.
Status ExplainDimensions(const Status& status, const Description& description, const DescribeAt& describe) {
  const std::string added = description.AddedDimensions();
  if (added.empty()) return status;
  Description own(*description.desc().schema);
  Status failure = describe(kLatestFeatureLevel, &own);
  if (failure.ok() && CheckAtLatestLevel(description.desc()).message() == status.message()) {
    failure = CheckAtLatestLevel(own.desc());
  }
  if (!failure.ok() && own.AddedDimensions().empty()) return failure;
  return Status(status.code(), StrCat(status.message(), " (", added, ")"));
}

}  // namespace

Status Explain(const Status& status, const Description& description, FeatureLevel level,
               const DescribeAt& describe) {
  if (status.ok()) return status;
  Status explained = ExplainDimensions(status, description, describe);
  const bool says_so = explained.message().find("FLOAT64") != std::string::npos;
  if (!says_so || !HasWrongFloat64(description.desc(), level)) return explained;
  return Status(explained.code(), StrCat(explained.message(),
                                         "; FLOAT64 is what NumPy makes of numbers with a point: "
                                         "x.astype('float32') makes FLOAT32 of them"));
}

}  // namespace anydml::client
