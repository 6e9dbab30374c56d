// The rules for one tensor.
#include <algorithm>

#include "schema/validate_internal.h"

namespace anydml::internal {
namespace {

struct Subject {
  const Judge& judge;
  int field;
  const FieldName& name;
  const TensorDesc& tensor;

  const char* op() const { return judge.schema->name; }
  const FieldSchema& schema() const { return judge.schema->fields[static_cast<size_t>(field)]; }
  const TensorSupport* SupportAtLevel(FeatureLevel level) const {
    return FindTensorSupport(SupportAt(*judge.schema, level, judge.variant), field);
  }
};

std::string TypeNames(uint32_t types) {
  std::string names;
  for (uint32_t i = 0; i < kDataTypeCount; ++i) {
    if ((types >> i & 1u) == 0) continue;
    if (!names.empty()) names += ", ";
    names += Name(static_cast<DataType>(i));
  }
  return names;
}

uint32_t AllowedTypes(const Subject& subject, FeatureLevel level) {
  const TensorSupport* support = subject.SupportAtLevel(level);
  return support ? support->types & DataTypesAt(level) : 0u;
}

Status CheckDataType(const Subject& subject) {
  const auto value = static_cast<uint32_t>(subject.tensor.type);
  const FeatureLevel level = subject.judge.level;
  const uint32_t allowed = AllowedTypes(subject, level);
  if (value < kDataTypeCount && (allowed >> value & 1u) != 0) return {};
  const std::string given =
      value < kDataTypeCount ? Name(subject.tensor.type) : StrCat(value, " (no DML_TENSOR_DATA_TYPE)");
  const std::string hint = LevelHint(subject.judge, [&](FeatureLevel higher) {
    return value < kDataTypeCount && (AllowedTypes(subject, higher) >> value & 1u) != 0;
  });
  return InvalidArgument(subject.op(), ": ", subject.name, ".DataType is ", given,
                         ", allowed at feature level ", FeatureLevelName(level), ": ", TypeNames(allowed),
                         hint);
}

Status CheckFlags(const Subject& subject) {
  if (!subject.tensor.owned_by_dml) return {};
  if (subject.schema().kind != FieldKind::kInput) {
    return InvalidArgument(subject.op(), ": ", subject.name,
                           ".Flags has DML_TENSOR_FLAG_OWNED_BY_DML, which only inputs may have");
  }
  if (subject.judge.schema->owned_by_dml) return {};
  return InvalidArgument(
      subject.op(), ": ", subject.name,
      ".Flags has DML_TENSOR_FLAG_OWNED_BY_DML, which no tensor of this operator may have");
}

bool DimensionCountAllowed(const Subject& subject, FeatureLevel level) {
  const TensorSupport* support = subject.SupportAtLevel(level);
  const uint32_t rank = subject.tensor.rank;
  return support && rank >= support->min_dimensions && rank <= support->max_dimensions &&
         rank <= MaxDimensionsAt(level);
}

Status CheckDimensionCount(const Subject& subject) {
  const FeatureLevel level = subject.judge.level;
  if (DimensionCountAllowed(subject, level)) return {};
  const TensorSupport* support = subject.SupportAtLevel(level);
  const uint32_t low = support ? support->min_dimensions : 0;
  const uint32_t high = support ? std::min<uint32_t>(support->max_dimensions, MaxDimensionsAt(level)) : 0;
  const std::string range = low == high ? StrCat(low) : StrCat(low, " to ", high);
  const std::string hint =
      LevelHint(subject.judge, [&](FeatureLevel higher) { return DimensionCountAllowed(subject, higher); });
  return InvalidArgument(subject.op(), ": ", subject.name, ".DimensionCount is ", subject.tensor.rank,
                         ", allowed at feature level ", FeatureLevelName(level), ": ", range, hint);
}

Status CheckSizes(const Subject& subject) {
  const TensorDesc& tensor = subject.tensor;
  for (uint32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.sizes[i] != 0) continue;
    return InvalidArgument(subject.op(), ": ", subject.name, ".Sizes[", i,
                           "] is 0; sizes must be at least 1");
  }
  constexpr uint64_t kMaxElements = 0xFFFFFFFFu;
  if (ElementCount(tensor) <= kMaxElements) return {};
  return InvalidArgument(subject.op(), ": ", subject.name, ".Sizes is ", SizesToString(tensor),
                         "; the product must be at most ", kMaxElements, " elements");
}

Status CheckTotalSize(const Subject& subject) {
  const TensorDesc& tensor = subject.tensor;
  const uint64_t minimum = MinimumTotalBytes(tensor);
  if (tensor.total_bytes < minimum) {
    return InvalidArgument(subject.op(), ": ", subject.name, ".TotalTensorSizeInBytes is ",
                           tensor.total_bytes, " but ", Name(tensor.type), ' ', SizesToString(tensor),
                           " with these strides takes ", minimum);
  }
  if (tensor.total_bytes % 4 == 0) return {};
  return InvalidArgument(subject.op(), ": ", subject.name, ".TotalTensorSizeInBytes is ", tensor.total_bytes,
                         "; it must be a multiple of 4");
}

Status CheckAlignment(const Subject& subject) {
  const uint32_t alignment = subject.tensor.alignment;
  const uint32_t element_bytes = (BitSize(subject.tensor.type) + 7) / 8;
  const bool power_of_two = (alignment & (alignment - 1)) == 0;
  if (alignment == 0 || (power_of_two && alignment >= element_bytes)) return {};
  return InvalidArgument(subject.op(), ": ", subject.name, ".GuaranteedBaseOffsetAlignment is ", alignment,
                         "; it must be 0 or a power of two not smaller than the element (", element_bytes,
                         ")");
}

Status CheckOverlap(const Subject& subject, OverlapBudget* budget) {
  if (subject.schema().kind != FieldKind::kOutput) return {};
  const Overlap overlap = FindOverlap(subject.tensor, budget);
  if (overlap == Overlap::kNone) return {};
  TensorDesc strides = subject.tensor;
  strides.sizes = strides.strides;
  return InvalidArgument(subject.op(), ": ", subject.name, ".Strides is ", SizesToString(strides),
                         " with Sizes ", SizesToString(subject.tensor),
                         overlap == Overlap::kSome
                             ? "; no two elements of an output may share memory"
                             : "; whether elements of this output share memory would take too long to find "
                               "out; each stride should be at least what all smaller ones span");
}

}  // namespace

Status ValidateTensor(const Judge& judge, int field, const FieldName& name, const TensorDesc& tensor,
                      OverlapBudget* budget) {
  const Subject subject{judge, field, name, tensor};
  ANYDML_RETURN_IF_ERROR(CheckDataType(subject));
  ANYDML_RETURN_IF_ERROR(CheckFlags(subject));
  ANYDML_RETURN_IF_ERROR(CheckDimensionCount(subject));
  ANYDML_RETURN_IF_ERROR(CheckSizes(subject));
  ANYDML_RETURN_IF_ERROR(CheckTotalSize(subject));
  ANYDML_RETURN_IF_ERROR(CheckAlignment(subject));
  return CheckOverlap(subject, budget);
}

}  // namespace anydml::internal
