#include <vector>

#include "kernel/module.h"
#include "ops/column.h"
#include "ops/implementation_list.h"
#include "ops/operator.h"

namespace anydml {

// A line for each family of operators: operator_families.generated.h is made of the folders that
// CMakeLists.txt lists.
#define ANYDML_FAMILY(name)                  \
  namespace family::name {                   \
  void RegisterOperators(OperatorList* all); \
  }
#include "ops/operator_families.generated.h"
#undef ANYDML_FAMILY

namespace {

// By DML_OPERATOR_TYPE; null if there is none.
const std::vector<const Operator*>& ByType() {
  static const std::vector<const Operator*> by_type = [] {
    std::vector<const Operator*> table(AllOperators().size() + 1);
    for (const Operator* op : ImplementedOperators()) table.at(op->type) = op;
    return table;
  }();
  return by_type;
}

}  // namespace

std::vector<const char*> ImplementationNames(const Operator& op) {
  std::vector<const char*> names, references;
  for (const char* name : HostColumn().NamesOf(op.family)) {
    (std::string_view(name) == "cpu.reference" ? references : names).push_back(name);
  }
  for (const Module* module : Modules()) {
    const auto theirs = module->column().NamesOf(op.family);
    names.insert(names.end(), theirs.begin(), theirs.end());
  }
  names.insert(names.end(), references.begin(), references.end());
  return names;
}

Status LowerOrRunOnHost(const OperatorDesc& desc, const LowerContext& context, const LowerFunction& lower,
                        LoweredOperator* out) {
  uint32_t data_types = 0;
  for (const auto& tensors : {desc.inputs(), desc.outputs()}) {
    for (const TensorDesc* tensor : tensors) {
      if (tensor != nullptr) data_types |= 1u << static_cast<uint32_t>(tensor->type);
    }
  }
  const std::string why_not = WhyNotOnDevice(context, data_types);
  Status status = why_not.empty() ? lower(context, out) : Status(Code::kUnsupported, why_not);
  if (status.ok() || context.device->is_host) return status;
  if (!context.host_fallback) {
    return Status(status.code(), StrCat(status.message(),
                                        "; it may not run on the host instead "
                                        "(ANYDML_HOST_FALLBACK=0)"));
  }
  if (!MayRunOnHost(context)) return status;
  LoweredOperator on_host;
  ANYDML_RETURN_IF_ERROR(lower(HostContextOf(context), &on_host));
  out->in_place = std::move(on_host.in_place);
  RunOnHost(std::move(on_host), status.message(), context, out);
  return {};
}

Status LowerOperator(const Operator& op, const OperatorDesc& desc, const LowerContext& context,
                     LoweredOperator* out) {
  const auto lower = [&](const LowerContext& where, LoweredOperator* lowered) {
    return op.lower(desc, where, lowered);
  };
  const Status status = LowerOrRunOnHost(desc, context, lower, out);
  if (status.ok()) return {};
  return Status(status.code(), StrCat(desc.schema->name, ": ", status.message()));
}

std::span<const Operator* const> ImplementedOperators() {
  static const OperatorList operators = [] {
    OperatorList all;
#define ANYDML_FAMILY(name) family::name::RegisterOperators(&all);
#include "ops/operator_families.generated.h"
#undef ANYDML_FAMILY
    return all;
  }();
  return operators.operators();
}

const Operator* FindImplementation(uint32_t type) {
  const auto& by_type = ByType();
  return type < by_type.size() ? by_type[type] : nullptr;
}

}  // namespace anydml
