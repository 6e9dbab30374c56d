#include "dml/program.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace anydml::dml {
namespace {

// Buffer offsets are multiples of 256 (DML_PERSISTENT_BUFFER_ALIGNMENT), and
// keeping that inside the buffer gives kernels the alignment they have elsewhere.
constexpr uint64_t kAlignment = 256;

constexpr uint64_t AlignUp(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

TensorSlot MakeSlot(std::string name, const TensorDesc* tensor) {
  TensorSlot slot;
  slot.name = std::move(name);
  slot.present = tensor != nullptr;
  if (tensor == nullptr) return slot;
  slot.owned = tensor->owned_by_dml;
  slot.bytes = tensor->total_bytes;
  slot.alignment = tensor->alignment;
  slot.element_bytes = (BitSize(tensor->type) + 7) / 8;
  return slot;
}

// In binding order: arrays expanded, absent optional tensors kept.
std::vector<TensorSlot> MakeSlots(const OperatorDesc& desc, FieldKind kind) {
  std::vector<TensorSlot> slots;
  for (size_t i = 0; i < desc.schema->fields.size(); ++i) {
    const FieldSchema& field = desc.schema->fields[i];
    if (field.kind != kind) continue;
    const FieldValue& value = desc.fields[i];
    if (field.type == FieldType::kTensor) {
      slots.push_back(MakeSlot(field.name, std::get_if<TensorDesc>(&value)));
    } else if (const auto* tensors = std::get_if<std::vector<TensorDesc>>(&value)) {
      for (size_t j = 0; j < tensors->size(); ++j) {
        slots.push_back(MakeSlot(StrCat(field.name, "[", j, "]"), &(*tensors)[j]));
      }
    }
  }
  return slots;
}

}  // namespace

bool MayRunInPlace(const Program& program, uint32_t input, uint32_t output) {
  const auto& pairs = program.lowered.in_place;
  return std::find(pairs.begin(), pairs.end(), std::pair(input, output)) != pairs.end();
}

Status CompileProgram(const OperatorDesc& desc, const Operator& implementation, const LowerOptions& options,
                      bool volatile_descriptors, std::shared_ptr<Program>* out) {
  auto program = std::make_shared<Program>();
  ANYDML_RETURN_IF_ERROR(implementation.lower(desc, options, &program->lowered));
  program->name = desc.schema->name;
  program->volatile_descriptors = volatile_descriptors;
  program->inputs = MakeSlots(desc, FieldKind::kInput);
  program->outputs = MakeSlots(desc, FieldKind::kOutput);
  for (TensorSlot& input : program->inputs) {
    if (!input.owned) continue;
    const uint64_t left = UINT64_MAX - program->persistent_bytes;
    if (input.bytes > left / kAlignment * kAlignment) {
      return InvalidArgument(program->name, ": ", input.name, ".TotalTensorSizeInBytes is ", input.bytes,
                             ", which the persistent resource has no room for; all tensors with ",
                             "DML_TENSOR_FLAG_OWNED_BY_DML must fit into 2^64 - 256 bytes together");
    }
    input.persistent_offset = program->persistent_bytes;
    program->persistent_bytes += AlignUp(input.bytes);
  }
  program->temporary_bytes = AlignUp(program->lowered.kernel->temporary_bytes());
  *out = std::move(program);
  return {};
}

}  // namespace anydml::dml
