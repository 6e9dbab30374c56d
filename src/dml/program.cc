#include "dml/program.h"

#include <algorithm>
#include <utility>

#include <DirectML.h>

#include "kernel/scratch_layout.h"
#include "ops/work.h"

namespace anydml::dml {
namespace {

// Bindings of the buffer are aligned to 256 (DML_PERSISTENT_BUFFER_ALIGNMENT). The same alignment inside it
// gives kernels the usual alignment.
constexpr uint64_t kAlignment = 256;

// Adds `bytes` to `*total`.
Status Append(const std::string& name, uint64_t bytes, uint64_t* total) {
  const uint64_t sum = SaturatingAdd(*total, SaturatingAlignUp(bytes, kAlignment));
  if (sum == ~uint64_t{0}) {
    return InvalidArgument(name, ": the memory that the operator needs has more than 2^64 bytes");
  }
  *total = sum;
  return {};
}

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

std::vector<TensorSlot> MakeSlots(const OperatorDesc& desc, FieldKind kind) {
  std::vector<TensorSlot> slots;
  for (NamedTensor& named : NamedTensors(desc, kind)) {
    slots.push_back(MakeSlot(std::move(named.name), named.tensor));
  }
  return slots;
}

}  // namespace

bool MayRunInPlace(const Program& program, uint32_t input, uint32_t output) {
  const auto& ends = program.facts.input_ends;
  const auto& begins = program.facts.output_begins;
  if (input < ends.size() && output < begins.size() && ends[input] <= begins[output]) return true;
  const auto& pairs = program.lowered.in_place;
  return std::find(pairs.begin(), pairs.end(), std::pair(input, output)) != pairs.end();
}

Status MakeProgram(std::string program_name, std::vector<TensorSlot> inputs, std::vector<TensorSlot> outputs,
                   LoweredOperator lowered, std::shared_ptr<Program>* out) {
  auto program = std::make_shared<Program>();
  program->name = std::move(program_name);
  program->work_bytes = WorkOf(lowered, nullptr);
  program->lowered = std::move(lowered);
  program->inputs = std::move(inputs);
  program->outputs = std::move(outputs);
  const Kernel& kernel = *program->lowered.kernel;
  const std::string& name = program->name;
  ANYDML_RETURN_IF_ERROR(Append(name, kernel.temporary_bytes(), &program->temporary_bytes));
  ANYDML_RETURN_IF_ERROR(
      Append(name, kernel.initialization_temporary_bytes(), &program->initialization_temporary_bytes));
  program->kernel_persistent_bytes = kernel.persistent_bytes();
  ANYDML_RETURN_IF_ERROR(Append(name, program->kernel_persistent_bytes, &program->persistent_bytes));
  for (uint32_t i = 0; i < program->inputs.size(); ++i) {
    TensorSlot& input = program->inputs[i];
    if (!input.owned) continue;
    input.packed = kernel.packs_input(i);
    if (input.packed) continue;
    const uint64_t left = UINT64_MAX - program->persistent_bytes;
    if (input.bytes > left / kAlignment * kAlignment) {
      return InvalidArgument(name, ": ", input.name, ".TotalTensorSizeInBytes is ", input.bytes,
                             ", which the persistent resource has no room for; all tensors with ",
                             "DML_TENSOR_FLAG_OWNED_BY_DML must fit into 2^64 - 256 bytes together");
    }
    input.persistent_offset = program->persistent_bytes;
    ANYDML_RETURN_IF_ERROR(Append(name, input.bytes, &program->persistent_bytes));
  }
  *out = std::move(program);
  return {};
}

Status MakeProgram(const OperatorDesc& desc, LoweredOperator lowered, std::shared_ptr<Program>* out) {
  return MakeProgram(desc.schema->name, MakeSlots(desc, FieldKind::kInput),
                     MakeSlots(desc, FieldKind::kOutput), std::move(lowered), out);
}

Status CompileProgram(const OperatorDesc& desc, const Operator& implementation, const LowerContext& context,
                      std::shared_ptr<Program>* out) {
  LoweredOperator lowered;
  ANYDML_RETURN_IF_ERROR(LowerOperator(implementation, desc, context, &lowered));
  ANYDML_RETURN_IF_ERROR(MakeProgram(desc, std::move(lowered), out));
  (*out)->work_bytes = WorkOf((*out)->lowered, &desc);
  (*out)->volatile_descriptors = (context.execution_flags & DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE) != 0;
  return {};
}

Status CompileGraphProgram(GraphDescription description, const LowerContext& context,
                           std::string_view without, std::shared_ptr<Program>* out,
                           std::vector<std::string>* warnings) {
  Graph graph;
  ANYDML_RETURN_IF_ERROR(BuildGraph(std::move(description), &graph));
  *warnings = std::move(graph.warnings);
  std::vector<TensorSlot> inputs, outputs;
  for (const GraphInput& input : graph.inputs) {
    inputs.push_back({.name = StrCat("graph input ", inputs.size()),
                      .present = input.connected,
                      .owned = input.owned,
                      .bytes = input.bytes,
                      .alignment = input.alignment,
                      .element_bytes = input.element_bytes,
                      .ignored = !input.connected});
  }
  for (const GraphOutput& output : graph.outputs) {
    outputs.push_back({.name = StrCat("graph output ", outputs.size()),
                       .present = output.connected,
                       .bytes = output.bytes,
                       .alignment = output.alignment,
                       .element_bytes = output.element_bytes,
                       .ignored = !output.connected});
  }
  LoweredOperator lowered;
  GraphFacts facts;
  ANYDML_RETURN_IF_ERROR(LowerGraph(std::move(graph), context, without, &lowered, &facts));
  ANYDML_RETURN_IF_ERROR(
      MakeProgram("the graph", std::move(inputs), std::move(outputs), std::move(lowered), out));
  (*out)->facts = std::move(facts);
  (*out)->volatile_descriptors = (context.execution_flags & DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE) != 0;
  return {};
}

}  // namespace anydml::dml
