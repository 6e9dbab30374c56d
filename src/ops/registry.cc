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

// By DML_OPERATOR_TYPE; null where there is none.
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

namespace {

// The first type of a tensor that the device's kernels do not take; kUnknown when there is none.
DataType FindForeignType(const OperatorDesc& desc, const DeviceTraits& device) {
  if (device.data_types == kAllDataTypes) return DataType::kUnknown;
  for (const auto& tensors : {desc.inputs(), desc.outputs()}) {
    for (const TensorDesc* tensor : tensors) {
      if (tensor == nullptr || (device.data_types >> static_cast<uint32_t>(tensor->type) & 1) != 0) continue;
      return tensor->type;
    }
  }
  return DataType::kUnknown;
}

Status Lower(const Operator& op, const OperatorDesc& desc, const LowerContext& context,
             LoweredOperator* out) {
  const DataType foreign = FindForeignType(desc, *context.device);
  if (foreign == DataType::kUnknown) return op.lower(desc, context, out);
  const std::string why = StrCat("the device has no ", Name(foreign));
  if (!MayRunOnHost(context)) return Status(Code::kUnsupported, why);
  LoweredOperator on_host;
  ANYDML_RETURN_IF_ERROR(op.lower(desc, HostContextOf(context), &on_host));
  out->in_place = std::move(on_host.in_place);
  RunOnHost(std::move(on_host), why, context, out);
  return {};
}

}  // namespace

Status LowerOperator(const Operator& op, const OperatorDesc& desc, const LowerContext& context,
                     LoweredOperator* out) {
  const Status status = Lower(op, desc, context, out);
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
