// The rules between tensors.
#include <algorithm>

#include "schema/validate_internal.h"

namespace anydml::internal {
namespace {

struct Member {
  FieldName name;
  const TensorDesc* tensor;  // null for a DML_TENSOR_DATA_TYPE attribute
  DataType type;
};

std::vector<Member> PresentMembers(const Relation& relation, const OperatorDesc& desc) {
  std::vector<Member> members;
  for (uint8_t field : relation.fields) {
    const char* name = desc.schema->fields[field].name;
    const FieldValue& value = desc.fields[field];
    if (const auto* tensor = std::get_if<TensorDesc>(&value)) {
      members.push_back({{name}, tensor, tensor->type});
    } else if (const auto* array = std::get_if<std::vector<TensorDesc>>(&value)) {
      for (const TensorDesc& element : *array) {
        const auto index = static_cast<int>(&element - array->data());
        members.push_back({{name, index}, &element, element.type});
      }
    } else if (const auto* type = std::get_if<uint32_t>(&value); type && *type != 0) {
      members.push_back({{name}, nullptr, static_cast<DataType>(*type)});
    }
  }
  return members;
}

bool SameSizes(const TensorDesc& a, const TensorDesc& b) {
  return a.rank == b.rank && std::equal(a.sizes.begin(), a.sizes.begin() + a.rank, b.sizes.begin());
}

bool Agree(RelationKind kind, const Member& a, const Member& b) {
  switch (kind) {
    case RelationKind::kSameDimensionCount:
      return a.tensor->rank == b.tensor->rank;
    case RelationKind::kSameDataType:
      return a.type == b.type;
    case RelationKind::kSameSizes:
      return SameSizes(*a.tensor, *b.tensor);
  }
  return false;
}

// "InputTensor.Sizes is {2,3}"
std::string Describe(RelationKind kind, const Member& member) {
  switch (kind) {
    case RelationKind::kSameDimensionCount:
      return StrCat(member.name, ".DimensionCount is ", member.tensor->rank);
    case RelationKind::kSameDataType:
      return StrCat(member.name, member.tensor ? ".DataType" : "", " is ", Name(member.type));
    case RelationKind::kSameSizes:
      return StrCat(member.name, ".Sizes is ", SizesToString(*member.tensor));
  }
  return "";
}

}  // namespace

Status ValidateRelations(const Judge& judge, const OperatorDesc& desc) {
  for (const Relation& relation : judge.schema->relations) {
    if (relation.below != 0 && judge.level >= relation.below) continue;
    if ((relation.except_variants >> judge.variant & 1u) != 0) continue;
    const std::vector<Member> members = PresentMembers(relation, desc);
    for (const Member& member : members) {
      if (Agree(relation.kind, members.front(), member)) continue;
      const std::string hint = LevelHint(
          judge, [&](FeatureLevel higher) { return relation.below != 0 && higher >= relation.below; });
      return InvalidArgument(judge.schema->name, ": ", Describe(relation.kind, member), " but ",
                             Describe(relation.kind, members.front()), "; they must be the same", hint);
    }
  }
  return {};
}

}  // namespace anydml::internal
