#include "dml/feature_support.h"

#include <algorithm>
#include <cstdlib>

namespace anydml::dml {
namespace {

constexpr char kMethod[] = "IDMLDevice::CheckFeatureSupport: ";

uint32_t SupportedTypes(FeatureLevel level) {
  uint32_t types = 0;
  for (const OperatorSchema& schema : AllOperators()) {
    if (schema.level > level || schema.support.empty()) continue;
    for (const TensorSupport& tensor : SupportAt(schema, level).tensors) types |= tensor.types;
  }
  return types & ~1u;  // UNKNOWN is never a tensor's type
}

Status CheckSizes(const char* feature, UINT query_size, size_t query_expected, const void* query,
                  UINT support_size, size_t support_expected, const void* support) {
  if (query_size != query_expected) {
    return InvalidArgument(kMethod, "featureQueryDataSize is ", query_size, " but ", feature, " takes ",
                           query_expected);
  }
  if (support_size != support_expected) {
    return InvalidArgument(kMethod, "featureSupportDataSize is ", support_size, " but ", feature, " gives ",
                           support_expected);
  }
  if (query == nullptr) return InvalidArgument(kMethod, "featureQueryData is null");
  if (support == nullptr) return InvalidArgument(kMethod, "featureSupportData is null");
  return {};
}

Status CheckTypeSupport(FeatureLevel level, UINT query_size, const void* query, UINT support_size,
                        void* support) {
  using Query = DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT;
  using Support = DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT;
  ANYDML_RETURN_IF_ERROR(CheckSizes("DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT", query_size, sizeof(Query), query,
                                    support_size, sizeof(Support), support));
  // ONNX Runtime queries every number, UNKNOWN included, and shifts the answer, so the result must be S_OK
  // with 0 or 1. Read as a number, since the value may be no enumerator.
  const auto type = *static_cast<const uint32_t*>(query);
  static_cast<Support*>(support)->IsSupported = IsTypeSupported(type, level) ? 1 : 0;
  return {};
}

Status CheckLevels(FeatureLevel level, UINT query_size, const void* query, UINT support_size, void* support) {
  using Query = DML_FEATURE_QUERY_FEATURE_LEVELS;
  using Support = DML_FEATURE_DATA_FEATURE_LEVELS;
  ANYDML_RETURN_IF_ERROR(CheckSizes("DML_FEATURE_FEATURE_LEVELS", query_size, sizeof(Query), query,
                                    support_size, sizeof(Support), support));
  const auto& requested = *static_cast<const Query*>(query);
  if (requested.RequestedFeatureLevelCount == 0) {
    return InvalidArgument(kMethod, "RequestedFeatureLevelCount is 0 but must be at least 1");
  }
  if (requested.RequestedFeatureLevels == nullptr) {
    return InvalidArgument(kMethod, "RequestedFeatureLevels is null");
  }
  const auto* levels = reinterpret_cast<const uint32_t*>(requested.RequestedFeatureLevels);
  FeatureLevel best = 0;
  for (UINT i = 0; i < requested.RequestedFeatureLevelCount; ++i) {
    if (levels[i] <= level && IsFeatureLevel(levels[i])) best = std::max(best, levels[i]);
  }
  if (best == 0) {
    return Status(Code::kUnsupported, StrCat(kMethod, "none of the requested feature levels is supported; ",
                                             "this device has ", FeatureLevelName(level)));
  }
  static_cast<Support*>(support)->MaxSupportedFeatureLevel = static_cast<DML_FEATURE_LEVEL>(best);
  return {};
}

}  // namespace

bool IsFeatureLevel(FeatureLevel level) {
  static const EnumSchema* const levels = FindEnum("DML_FEATURE_LEVEL");
  return levels != nullptr && std::any_of(levels->members.begin(), levels->members.end(),
                                          [=](const EnumMember& member) { return member.value == level; });
}

Status HeldFeatureLevel(FeatureLevel* level) {
  *level = kLatestFeatureLevel;
  const char* text = std::getenv("ANYDML_FEATURE_LEVEL");
  if (text == nullptr || *text == '\0') return {};
  *level = ParseFeatureLevel(text);
  if (*level != 0) return {};
  return InvalidArgument("DMLCreateDevice1: the environment variable ANYDML_FEATURE_LEVEL is \"", text,
                         "\" but must be a feature level such as 2.1, at most ",
                         FeatureLevelName(kLatestFeatureLevel));
}

bool IsTypeSupported(uint32_t type, FeatureLevel level) {
  return type < kDataTypeCount && ((SupportedTypes(level) >> type) & 1u) != 0;
}

Status CheckFeature(FeatureLevel level, uint32_t feature, UINT query_size, const void* query,
                    UINT support_size, void* support) {
  switch (feature) {
    case DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT:
      return CheckTypeSupport(level, query_size, query, support_size, support);
    case DML_FEATURE_FEATURE_LEVELS:
      return CheckLevels(level, query_size, query, support_size, support);
  }
  return Status(Code::kUnsupported, StrCat(kMethod, "feature ", feature, " is unknown"));
}

}  // namespace anydml::dml
