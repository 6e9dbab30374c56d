#include "dml/compiled_operator.h"

#include <utility>

namespace anydml::dml {

CompiledOperator::CompiledOperator(Device* device, Operator* source, std::shared_ptr<Program> program)
    : DeviceChild(device), source_(source), layout_(MakeExecuteLayout(std::move(program))) {}

DML_BINDING_PROPERTIES CompiledOperator::GetBindingProperties() { return layout_->properties(); }

void* CompiledOperator::QueryOther(REFIID iid) {
  if (iid == kImplementationIid) return this;
  if (iid == Dispatchable::kImplementationIid) return static_cast<Dispatchable*>(this);
  return nullptr;
}

}  // namespace anydml::dml
