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

// Whether DirectML's documentation lets the output replace this input: inputs of the output's type and
// layout, except parameters.
bool MayReplace(const OperatorDesc& desc, uint32_t input) {
  switch (static_cast<OperatorType>(desc.schema->type)) {
    case OperatorType::kElementWisePow:
    case OperatorType::kActivationParameterizedRelu:
      return input == 0;
    case OperatorType::kAdamOptimizer:
      return input != 4;  // the step count
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

// The type of output field `field`, if inputs that must have the same type determine it.
DataType TypeOf(const OperatorDesc& desc, size_t field) {
  for (const Relation& relation : desc.schema->relations) {
    if (relation.kind != RelationKind::kSameDataType || relation.below != 0) continue;
    if (std::find(relation.fields.begin(), relation.fields.end(), field) == relation.fields.end()) continue;
    for (const uint8_t other : relation.fields) {
      const auto* tensor = std::get_if<TensorDesc>(&desc.fields[other]);
      if (tensor != nullptr && other != field && tensor->rank > 0) return tensor->type;
    }
  }
  // DEQUANTIZE's output has the scale's type.
  if (const int array = FindField(*desc.schema, "QuantizationTensors"); array >= 0) {
    const auto* tensors = std::get_if<std::vector<TensorDesc>>(&desc.fields[static_cast<size_t>(array)]);
    const bool quantizes = desc.schema->type == static_cast<uint32_t>(OperatorType::kQuantize);
    if (tensors != nullptr && tensors->size() > (quantizes ? 1u : 0u)) return tensors->at(quantizes).type;
  }
  const TensorSupport* support =
      FindTensorSupport(SupportAt(*desc.schema, kLatestFeatureLevel), static_cast<int>(field));
  // Truth values are UINT8 by default, which takes the least memory; other undetermined types are the first
  // allowed one.
  constexpr uint32_t kTruth = 1u << uint32_t(DataType::kUInt8) | 1u << uint32_t(DataType::kUInt32);
  if (support->types == kTruth) return DataType::kUInt8;
  return static_cast<DataType>(std::countr_zero(uint32_t{support->types}));
}

Status Infer(OperatorDesc* desc) {
  const auto& fields = desc->schema->fields;
  const auto first = std::find_if(fields.begin(), fields.end(),
                                  [](const FieldSchema& f) { return f.kind == FieldKind::kInput; });
  const char* first_name = first->name;
  // The operands that a condition selects from have its sizes, too.
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
