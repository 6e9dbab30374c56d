#include "dml/operator_initializer.h"

#include <utility>

#include "dml/compiled_operator.h"

namespace anydml::dml {

Status CollectPrograms(const char* method, const Device* device, UINT count,
                       IDMLCompiledOperator* const* operators,
                       std::vector<std::shared_ptr<Program>>* programs) {
  if (count != 0 && operators == nullptr) {
    return InvalidArgument(method, ": operatorCount is ", count, " but operators is null");
  }
  for (UINT i = 0; i < count; ++i) {
    if (operators[i] == nullptr) return InvalidArgument(method, ": operators[", i, "] is null");
    const auto* compiled = ImplementationOf<CompiledOperator>(operators[i]);
    if (compiled == nullptr || compiled->device() != device) {
      return InvalidArgument(method, ": operators[", i, "] belongs to another device");
    }
    for (UINT j = 0; j < i; ++j) {
      if ((*programs)[j] == compiled->program()) {
        return InvalidArgument(method, ": operators[", j, "] and operators[", i, "] are the same ",
                               compiled->program()->name);
      }
    }
    if (compiled->program()->initialized.load(std::memory_order_acquire)) {
      return InvalidArgument(method, ": operators[", i, "] (", compiled->program()->name,
                             ") is initialised already; each compiled operator is initialised exactly once");
    }
    programs->push_back(compiled->program());
  }
  return {};
}

OperatorInitializer::OperatorInitializer(Device* device, std::vector<std::shared_ptr<Program>> programs)
    : DeviceChild(device), layout_(MakeInitializeLayout(std::move(programs))) {}

DML_BINDING_PROPERTIES OperatorInitializer::GetBindingProperties() { return layout_->properties(); }

HRESULT OperatorInitializer::Reset(UINT count, IDMLCompiledOperator* const* operators) {
  constexpr char kMethod[] = "IDMLOperatorInitializer::Reset";
  const HRESULT removed = state().CheckRemoved(kMethod);
  if (FAILED(removed)) return removed;
  return Guard([&]() -> HRESULT {
    std::vector<std::shared_ptr<Program>> programs;
    const Status status = CollectPrograms(kMethod, device(), count, operators, &programs);
    if (!status.ok()) return device()->Fail(status);
    layout_ = MakeInitializeLayout(std::move(programs));
    return S_OK;
  });
}

void* OperatorInitializer::QueryOther(REFIID iid) {
  return iid == Dispatchable::kImplementationIid ? static_cast<Dispatchable*>(this) : nullptr;
}

}  // namespace anydml::dml
