#include <algorithm>
#include <array>
#include <bit>
#include <variant>

#include "ops/common/checks.h"
#include "ops/element/check.h"
#include "ops/element/element.h"
#include "ops/element/operators.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

// Inputs whose elements the page lets the output replace: all of the output's type and layout, but for what
// is a parameter of the others.
bool MayReplace(const OperatorDesc& desc, uint32_t input) {
  switch (static_cast<OperatorType>(desc.schema->type)) {
    case OperatorType::kElementWisePow:
    case OperatorType::kActivationParameterizedRelu:
      return input == 0;
    case OperatorType::kAdamOptimizer:
      return input != 4;  // the step
    default:
      return true;
  }
}

std::vector<std::pair<uint32_t, uint32_t>> InPlace(const OperatorDesc& desc) {
  std::vector<std::pair<uint32_t, uint32_t>> pairs;
  if (!desc.schema->in_place) return pairs;
  const auto inputs = desc.inputs(), outputs = desc.outputs();
  for (uint32_t i = 0; i < inputs.size(); ++i) {
    for (uint32_t o = 0; o < outputs.size(); ++o) {
      if (inputs[i] == nullptr || outputs[o] == nullptr || !MayReplace(desc, i)) continue;
      if (SameLayout(*inputs[i], *outputs[o])) pairs.emplace_back(i, o);
    }
  }
  return pairs;
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  out->in_place = InPlace(desc);
  return ChooseKernel(BuildElementProblem(desc), context, out);
}

// The type of output field `field`, as far as inputs that must have the same one tell.
DataType TypeOf(const OperatorDesc& desc, size_t field) {
  for (const Relation& relation : desc.schema->relations) {
    if (relation.kind != RelationKind::kSameDataType || relation.below != 0) continue;
    if (std::find(relation.fields.begin(), relation.fields.end(), field) == relation.fields.end()) continue;
    for (const uint8_t other : relation.fields) {
      const auto* tensor = std::get_if<TensorDesc>(&desc.fields[other]);
      if (tensor != nullptr && other != field && tensor->rank > 0) return tensor->type;
    }
  }
  // DEQUANTIZE's is that of the scale.
  if (const int array = FindField(*desc.schema, "QuantizationTensors"); array >= 0) {
    const auto* tensors = std::get_if<std::vector<TensorDesc>>(&desc.fields[static_cast<size_t>(array)]);
    const bool quantizes = desc.schema->type == static_cast<uint32_t>(OperatorType::kQuantize);
    if (tensors != nullptr && tensors->size() > (quantizes ? 1u : 0u)) return tensors->at(quantizes).type;
  }
  const TensorSupport* support =
      FindTensorSupport(SupportAt(*desc.schema, kLatestFeatureLevel), static_cast<int>(field));
  // Truth values take the least memory as UINT8; other types that nothing determines are the first allowed.
  constexpr uint32_t kTruth = 1u << uint32_t(DataType::kUInt8) | 1u << uint32_t(DataType::kUInt32);
  if (support->types == kTruth) return DataType::kUInt8;
  return static_cast<DataType>(std::countr_zero(uint32_t{support->types}));
}

Status Infer(OperatorDesc* desc) {
  const auto& fields = desc->schema->fields;
  const auto first = std::find_if(fields.begin(), fields.end(),
                                  [](const FieldSchema& f) { return f.kind == FieldKind::kInput; });
  const char* first_name = first->name;
  // What is chosen by a condition has the sizes of the condition, too.
  const TensorDesc* input = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, first_name, &input));
  const TensorDesc like = *input;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].kind == FieldKind::kOutput) {
      FillTensor(desc, fields[i].name, TypeOf(*desc, i), like.sizes, like.rank);
    }
  }
  return {};
}

}  // namespace

std::span<const Operator> ElementOperators() {
  static const std::vector<Operator> operators = [] {
    std::vector<Operator> all;
    for (const OperatorType type : ElementOperatorTypes()) {
      all.push_back({static_cast<uint32_t>(type), CheckElementOperator, Lower, Infer, ElementProblem::kFamily,
                     kPlainTraits.With(LayoutOfAll).With(Strides::kDoNotMatter)});
    }
    return all;
  }();
  return operators;
}

namespace family::element {

void RegisterOperators(OperatorList* all) { all->Add(ElementOperators()); }

}  // namespace family::element

}  // namespace anydml
