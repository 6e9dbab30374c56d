// Shared by reading and validation; not for other folders.
#pragma once

#include <ostream>
#include <string>

#include "base/status.h"
#include "schema/operator_desc.h"

namespace anydml::internal {

// The name of a field in messages: "InputTensor", or "InputTensors[2]" in an array.
struct FieldName {
  const char* name;
  int index = -1;
};
std::ostream& operator<<(std::ostream& stream, const FieldName& field);

// The schema, level and variant by which a description is judged.
struct Judge {
  const OperatorSchema* schema;
  FeatureLevel level;
  uint32_t variant = 0;  // value of the schema's variant field
};

// "; DML_FEATURE_LEVEL_5_0 allows it" for the first level above the judge's own that `allows` accepts, or an
// empty string.
template <typename Allows>
std::string LevelHint(const Judge& judge, const Allows& allows) {
  for (const EnumMember& member : FindEnum("DML_FEATURE_LEVEL")->members) {
    if (member.value > judge.level && allows(member.value)) return StrCat("; ", member.name, " allows it");
  }
  return "";
}

Status CheckAvailability(const OperatorSchema& schema, FeatureLevel level);

// Whether `activation` may be fused into `host`.
Status CheckFusion(const Judge& host, const FieldName& field, const OperatorSchema& activation);

// Fields that must be null in a fused activation: its tensors are the host's, and ScaleBias (which
// ELEMENT_WISE_CLIP has) would scale the host's result.
inline bool NullInFusion(const FieldSchema& field) {
  return field.kind != FieldKind::kAttribute || field.type == FieldType::kScaleBias;
}

// All tensors of an operator share one `budget`.
Status ValidateTensor(const Judge& judge, int field, const FieldName& name, const TensorDesc& tensor,
                      OverlapBudget* budget);

Status ValidateRelations(const Judge& judge, const OperatorDesc& desc);

}  // namespace anydml::internal
