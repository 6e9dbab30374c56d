#include "dml/device.h"

#include <utility>

#include "backend/backend.h"
#include "dml/binding_table.h"
#include "dml/command_recorder.h"
#include "dml/compiled_operator.h"
#include "dml/feature_support.h"
#include "dml/graph_desc.h"
#include "dml/operator.h"
#include "dml/operator_initializer.h"
#include "dml/raw_enum.h"
#include "kernel/host_kernel.h"

namespace anydml::dml {
namespace {

Status CheckExecutionFlags(const char* method, uint32_t flags) {
  constexpr uint32_t kKnown = DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION |
                              DML_EXECUTION_FLAG_DISABLE_META_COMMANDS |
                              DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE;
  if ((flags & ~kKnown) == 0) return {};
  return InvalidArgument(method, ": flags is ", flags, " but only the bits of ", kKnown, " are known");
}

}  // namespace

Device::Device(ID3D12Device* d3d, std::shared_ptr<DeviceState> state)
    : DmlObject(std::move(state)),
      d3d_(d3d),
      descriptor_increment_(d3d->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV)),
      debug_device_(this, &this->state()) {}

void* Device::QueryOther(REFIID iid) {
  if (state().debug() && iid == __uuidof(IDMLDebugDevice))
    return static_cast<IDMLDebugDevice*>(&debug_device_);
  return nullptr;
}

// The common frame of all methods that create an object. `body` checks the arguments and creates; it runs
// only if the device is not removed.
template <typename Body>
HRESULT Device::Create(const char* method, bool ppv_required, void** ppv, Body&& body) {
  if (ppv != nullptr) *ppv = nullptr;
  const HRESULT removed = state().CheckRemoved(method);
  if (FAILED(removed)) return removed;
  return Guard([&]() -> HRESULT {
    if (ppv_required && ppv == nullptr) {
      return Fail(Status(Code::kPointer, StrCat(method, ": ppv is null")));
    }
    const HRESULT result = body();
    if (result != E_NOINTERFACE) return result;
    return Fail(Status(Code::kNoInterface, StrCat(method, ": the object does not have the interface riid")));
  });
}

HRESULT Device::CheckFeatureSupport(DML_FEATURE feature, UINT query_size, const void* query,
                                    UINT support_size, void* support) {
  const HRESULT removed = state().CheckRemoved("IDMLDevice::CheckFeatureSupport");
  if (FAILED(removed)) return removed;
  return Guard([&] {
    return Fail(CheckFeature(state().level(), RawEnum(feature), query_size, query, support_size, support));
  });
}

HRESULT Device::CreateOperator(const DML_OPERATOR_DESC* desc, REFIID riid, void** ppv) {
  return Create("IDMLDevice::CreateOperator", false, ppv, [&]() -> HRESULT {
    OperatorDesc read;
    const anydml::Operator* implementation = nullptr;
    const Status status = CheckOperatorDesc(desc, state().level(), &read, &implementation);
    if (!status.ok()) return Fail(status);
    return CreateComObject<Operator>(riid, ppv, this, std::move(read), *implementation);
  });
}

LowerContext Device::ContextFor(DML_EXECUTION_FLAGS flags) const {
  const Backend& backend = d3d12::BackendOf(state().d3d());
  LowerContext context;
  context.level = state().level();
  context.threads = backend.threads();
  context.execution_flags = RawEnum(flags);
  context.device = &backend.traits();
  context.implementation = state().settings().implementation;
  if (context.device->is_host && context.implementation.starts_with(kHostPrefix))
    context.implementation.remove_prefix(kHostPrefix.size());
  context.graph_guards = state().settings().graph_guards;
  context.host_fallback = state().settings().host_fallback;
  return context;
}

HRESULT Device::CompileOperator(IDMLOperator* op, DML_EXECUTION_FLAGS flags, REFIID riid, void** ppv) {
  constexpr char kMethod[] = "IDMLDevice::CompileOperator";
  return Create(kMethod, false, ppv, [&]() -> HRESULT {
    const Status flag_status = CheckExecutionFlags(kMethod, RawEnum(flags));
    if (!flag_status.ok()) return Fail(flag_status);
    if (op == nullptr) return Fail(InvalidArgument(kMethod, ": op is null"));
    auto* source = ImplementationOf<Operator>(op);
    if (source == nullptr || source->device() != this) {
      return Fail(InvalidArgument(kMethod, ": op belongs to another device"));
    }
    std::shared_ptr<Program> program;
    const Status status =
        CompileProgram(source->desc(), source->implementation(), ContextFor(flags), &program);
    if (!status.ok()) return Fail(status);
    return CreateComObject<CompiledOperator>(riid, ppv, this, source, std::move(program));
  });
}

HRESULT Device::CreateOperatorInitializer(UINT count, IDMLCompiledOperator* const* operators, REFIID riid,
                                          void** ppv) {
  constexpr char kMethod[] = "IDMLDevice::CreateOperatorInitializer";
  return Create(kMethod, true, ppv, [&]() -> HRESULT {
    std::vector<std::shared_ptr<Program>> programs;
    const Status status = CollectPrograms(kMethod, this, count, operators, &programs);
    if (!status.ok()) return Fail(status);
    return CreateComObject<OperatorInitializer>(riid, ppv, this, std::move(programs));
  });
}

HRESULT Device::CreateCommandRecorder(REFIID riid, void** ppv) {
  return Create("IDMLDevice::CreateCommandRecorder", true, ppv,
                [&] { return CreateComObject<CommandRecorder>(riid, ppv, this); });
}

HRESULT Device::CreateBindingTable(const DML_BINDING_TABLE_DESC* desc, REFIID riid, void** ppv) {
  constexpr char kMethod[] = "IDMLDevice::CreateBindingTable";
  return Create(kMethod, true, ppv, [&]() -> HRESULT {
    TableTarget target;
    const Status status = CheckTableDesc(kMethod, this, desc, &target);
    if (!status.ok()) return Fail(status);
    return CreateComObject<BindingTable>(riid, ppv, this, std::move(target));
  });
}

HRESULT Device::ChangeResidency(const char* method, UINT count, IDMLPageable* const* objects, bool resident) {
  const HRESULT removed = state().CheckRemoved(method);
  if (FAILED(removed)) return removed;
  return Guard([&]() -> HRESULT {
    if (count != 0 && objects == nullptr) {
      return Fail(InvalidArgument(method, ": count is ", count, " but ppObjects is null"));
    }
    std::vector<Dispatchable*> pageables;
    for (UINT i = 0; i < count; ++i) {
      auto* pageable = ImplementationOf<Dispatchable>(objects[i]);
      if (pageable == nullptr || pageable->owner() != this) {
        return Fail(InvalidArgument(method, ": ppObjects[", i, "] ",
                                    objects[i] == nullptr ? "is null" : "belongs to another device"));
      }
      pageables.push_back(pageable);
    }
    for (UINT i = 0; i < count; ++i) {
      if (resident) {
        pageables[i]->MakeResident();
      } else if (!pageables[i]->Evict()) {
        for (UINT j = 0; j < i; ++j) pageables[j]->MakeResident();  // all or nothing
        return Fail(InvalidArgument(method, ": ppObjects[", i, "] is evicted already"));
      }
    }
    return S_OK;
  });
}

HRESULT Device::Evict(UINT count, IDMLPageable* const* objects) {
  return ChangeResidency("IDMLDevice::Evict", count, objects, false);
}

HRESULT Device::MakeResident(UINT count, IDMLPageable* const* objects) {
  return ChangeResidency("IDMLDevice::MakeResident", count, objects, true);
}

HRESULT Device::GetDeviceRemovedReason() { return state().RemovedReason(); }

HRESULT Device::GetParentDevice(REFIID riid, void** ppv) {
  return Create("IDMLDevice::GetParentDevice", true, ppv, [&] { return d3d_->QueryInterface(riid, ppv); });
}

HRESULT Device::CompileGraph(const DML_GRAPH_DESC* desc, DML_EXECUTION_FLAGS flags, REFIID riid, void** ppv) {
  constexpr char kMethod[] = "IDMLDevice1::CompileGraph";
  return Create(kMethod, false, ppv, [&]() -> HRESULT {
    const Status flag_status = CheckExecutionFlags(kMethod, RawEnum(flags));
    if (!flag_status.ok()) return Fail(flag_status);
    if (desc == nullptr) return Fail(InvalidArgument(kMethod, ": desc is null"));
    GraphDescription description;
    std::shared_ptr<Program> program;
    std::vector<std::string> warnings;
    Status status = ReadGraphDesc(this, *desc, &description);
    if (status.ok()) {
      status = CompileGraphProgram(std::move(description), ContextFor(flags),
                                   state().settings().graph_without, &program, &warnings);
    }
    if (!status.ok()) return Fail(Status(status.code(), StrCat(kMethod, ": ", status.message())));
    for (const std::string& warning : warnings) state().Warn(StrCat(kMethod, ": ", warning));
    return CreateComObject<CompiledOperator>(riid, ppv, this, nullptr, std::move(program));
  });
}

}  // namespace anydml::dml
