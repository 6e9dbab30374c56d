#include "dml/layout.h"

#include <algorithm>

namespace anydml::dml {
namespace {

constexpr uint32_t TensorAlignment(uint32_t guaranteed) {
  return std::max<uint32_t>(guaranteed, DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT);
}

Slot TensorToSlot(SlotRole role, const Program& program, const TensorSlot& tensor, bool initializer) {
  SlotNeed need = SlotNeed::kRequired;
  if (tensor.ignored) {
    need = SlotNeed::kIgnored;
  } else if (!tensor.present) {
    need = SlotNeed::kAbsent;
  } else if (initializer && !tensor.owned) {
    need = SlotNeed::kNotOwned;
  } else if (!initializer && tensor.owned) {
    need = SlotNeed::kOwned;
  }
  return {role,
          need,
          StrCat(tensor.name, " of ", program.name),
          tensor.bytes,
          TensorAlignment(tensor.alignment),
          initializer,
          tensor.element_bytes};
}

std::string InitializerName(const std::vector<std::shared_ptr<Program>>& programs) {
  if (programs.empty()) return "the initializer of no operator";
  if (programs.size() == 1) return StrCat("the initializer of ", programs[0]->name);
  return StrCat("the initializer of ", programs.size(), " operators");
}

void AddTemporarySlot(uint64_t bytes, Layout* layout) {
  if (bytes == 0) return;
  layout->temporary_slot = static_cast<int>(layout->slots.size());
  layout->slots.push_back({SlotRole::kTemporary, SlotNeed::kRequired,
                           StrCat("the temporary resource of ", layout->name), bytes,
                           DML_TEMPORARY_BUFFER_ALIGNMENT, false});
}

}  // namespace

DML_BINDING_PROPERTIES Layout::properties() const {
  DML_BINDING_PROPERTIES properties = {};
  // Never 0: clients create heaps of exactly this size, and an empty one is illegal.
  properties.RequiredDescriptorCount = std::max<UINT>(1, static_cast<UINT>(slots.size()));
  if (temporary_slot >= 0) properties.TemporaryResourceSize = slots[temporary_slot].bytes;
  if (persistent_slot >= 0) properties.PersistentResourceSize = slots[persistent_slot].bytes;
  return properties;
}

std::shared_ptr<const Layout> MakeExecuteLayout(std::shared_ptr<Program> program) {
  auto layout = std::make_shared<Layout>();
  layout->name = program->name;
  for (const TensorSlot& input : program->inputs) {
    layout->slots.push_back(TensorToSlot(SlotRole::kInput, *program, input, false));
  }
  for (const TensorSlot& output : program->outputs) {
    layout->slots.push_back(TensorToSlot(SlotRole::kOutput, *program, output, false));
  }
  layout->input_slots = static_cast<uint32_t>(program->inputs.size());
  layout->output_slots = static_cast<uint32_t>(program->outputs.size());
  AddTemporarySlot(program->temporary_bytes, layout.get());
  if (program->persistent_bytes != 0) {
    layout->persistent_slot = static_cast<int>(layout->slots.size());
    layout->slots.push_back({SlotRole::kPersistent, SlotNeed::kRequired,
                             StrCat("the persistent resource of ", program->name), program->persistent_bytes,
                             DML_PERSISTENT_BUFFER_ALIGNMENT, false});
  }
  layout->programs.push_back(std::move(program));
  return layout;
}

std::shared_ptr<const Layout> MakeInitializeLayout(std::vector<std::shared_ptr<Program>> programs) {
  auto layout = std::make_shared<Layout>();
  layout->initializer = true;
  layout->name = InitializerName(programs);
  for (const auto& program : programs) {
    for (const TensorSlot& input : program->inputs) {
      layout->slots.push_back(TensorToSlot(SlotRole::kInput, *program, input, true));
    }
  }
  layout->input_slots = static_cast<uint32_t>(layout->slots.size());
  for (const auto& program : programs) {
    const SlotNeed need = program->persistent_bytes != 0 ? SlotNeed::kRequired : SlotNeed::kUnneeded;
    layout->slots.push_back({SlotRole::kOutput, need, StrCat("the persistent resource of ", program->name),
                             program->persistent_bytes, DML_PERSISTENT_BUFFER_ALIGNMENT, false});
  }
  layout->output_slots = static_cast<uint32_t>(programs.size());
  // Operators are initialised one after the other, so they share it.
  uint64_t temporary_bytes = 0;
  for (const auto& program : programs) {
    temporary_bytes = std::max(temporary_bytes, program->initialization_temporary_bytes);
  }
  AddTemporarySlot(temporary_bytes, layout.get());
  layout->programs = std::move(programs);
  return layout;
}

}  // namespace anydml::dml
