#include "d3d12/adapters/dxcore_adapter.h"

#include <cstring>

#include "base/report.h"
#include "com/guard.h"
#include "d3d12/adapters/adapter_kind.h"
#include "d3d12/adapters/adapter_lookup.h"
#include "d3d12/adapters/memory_usage.h"

namespace anydml::d3d12 {
namespace {

// Defined here, because the headers only declare them.
constexpr GUID kCoreCompute = {0x248e2800, 0xa793, 0x4724, {0xab, 0xaa, 0x23, 0xa6, 0xde, 0x1b, 0xe0, 0x90}};
constexpr GUID kGraphics = {0x0c9ece4d, 0x2f6e, 0x4f01, {0x8c, 0x96, 0xe8, 0x9e, 0x33, 0x1b, 0x47, 0xb1}};
constexpr GUID kGenericMl = {0xb71b0d41, 0x1088, 0x422f, {0xa2, 0x7c, 0x02, 0x50, 0xb7, 0xd3, 0xa9, 0x88}};
constexpr GUID kHardwareGpu = {0xb69eb219, 0x3ded, 0x4464, {0x97, 0x9f, 0xa0, 0x0b, 0xd4, 0x68, 0x70, 0x06}};
constexpr GUID kHardwareComputeAccelerator = {
    0xe0b195da, 0x58ef, 0x4a22, {0x90, 0xf1, 0x1f, 0x28, 0x16, 0x9c, 0xab, 0x8d}};
constexpr GUID kHardwareNpu = {0xd46140c4, 0xadd7, 0x451b, {0x9e, 0x56, 0x06, 0xfe, 0x8c, 0x3b, 0x58, 0xed}};

// A property's bytes; the largest property is small.
struct Value {
  std::byte bytes[40];
  size_t size = 0;

  template <typename T>
  void Set(const T& value) {
    static_assert(sizeof(T) <= sizeof(bytes));
    std::memcpy(bytes, &value, sizeof(T));
    size = sizeof(T);
  }
};

// False for properties that the adapter does not have. DriverDescription is a string of any length and is
// handled separately.
bool Find(const Backend& backend, DXCoreAdapterProperty property, Value* value) {
  const AdapterInfo& info = backend.adapter();
  switch (property) {
    case DXCoreAdapterProperty::InstanceLuid:
      value->Set(LuidOf(backend));
      return true;
    case DXCoreAdapterProperty::DriverVersion:
      value->Set(uint64_t{1});  // four 16-bit parts, as Windows packs them: 0.0.0.1
      return true;
    case DXCoreAdapterProperty::HardwareID:
      value->Set(DXCoreHardwareID{info.vendor_id, info.device_id, 0, 0});
      return true;
    case DXCoreAdapterProperty::HardwareIDParts:
      value->Set(DXCoreHardwareIDParts{info.vendor_id, info.device_id, 0, 0, 0});
      return true;
    case DXCoreAdapterProperty::KmdModelVersion:
      value->Set(uint64_t{2700});  // WDDM 2.7, the first version with compute-only devices
      return true;
    case DXCoreAdapterProperty::ComputePreemptionGranularity:
    case DXCoreAdapterProperty::GraphicsPreemptionGranularity:
      value->Set(uint16_t{0});  // between submissions
      return true;
    case DXCoreAdapterProperty::DedicatedAdapterMemory:
      value->Set(uint64_t{info.dedicated_bytes});
      return true;
    case DXCoreAdapterProperty::DedicatedSystemMemory:
      value->Set(uint64_t{0});
      return true;
    case DXCoreAdapterProperty::SharedSystemMemory:
      value->Set(uint64_t{info.shared_bytes});
      return true;
    case DXCoreAdapterProperty::IsHardware:  // programs skip adapters that say no
      value->Set(KindOf(backend) != AdapterKind::kSoftware);
      return true;
    case DXCoreAdapterProperty::IsIntegrated:
      value->Set(info.unified_memory);
      return true;
    case DXCoreAdapterProperty::AcgCompatible:
    case DXCoreAdapterProperty::IsDetachable:
      value->Set(false);
      return true;
    default:
      return false;
  }
}

}  // namespace

bool SupportsAttribute(const Backend& backend, REFGUID attribute) {
  if (attribute == kCoreCompute || attribute == kGenericMl) return true;
  if (attribute == kGraphics) return ClaimsGraphics(backend);
  switch (KindOf(backend)) {
    case AdapterKind::kGpu:
      return attribute == kHardwareGpu;
    case AdapterKind::kComputeAccelerator:
      return attribute == kHardwareComputeAccelerator;
    case AdapterKind::kNpu:
      return attribute == kHardwareNpu;
    case AdapterKind::kSoftware:
      break;
  }
  return false;
}

bool DxCoreAdapter::IsAttributeSupported(REFGUID attribute) { return SupportsAttribute(backend_, attribute); }

bool DxCoreAdapter::IsPropertySupported(DXCoreAdapterProperty property) {
  Value value;
  return property == DXCoreAdapterProperty::DriverDescription || Find(backend_, property, &value);
}

HRESULT DxCoreAdapter::GetPropertySize(DXCoreAdapterProperty property, size_t* size) {
  if (size == nullptr) return Fail(E_POINTER, "IDXCoreAdapter::GetPropertySize: bufferSize is null");
  *size = 0;
  if (property == DXCoreAdapterProperty::DriverDescription) {
    *size = backend_.adapter().description.size() + 1;
    return S_OK;
  }
  Value value;
  if (!Find(backend_, property, &value)) return DXGI_ERROR_INVALID_CALL;
  *size = value.size;
  return S_OK;
}

HRESULT DxCoreAdapter::GetProperty(DXCoreAdapterProperty property, size_t size, void* data) {
  return Guard([&] {
    if (data == nullptr) return Fail(E_POINTER, "IDXCoreAdapter::GetProperty: propertyData is null");
    if (property == DXCoreAdapterProperty::DriverDescription) {
      const std::string& text = backend_.adapter().description;
      if (size < text.size() + 1)
        return Fail(E_INVALIDARG, "IDXCoreAdapter::GetProperty: the buffer is too small");
      std::memcpy(data, text.c_str(), text.size() + 1);
      return S_OK;
    }
    Value value;
    if (!Find(backend_, property, &value)) {
      return Fail(DXGI_ERROR_INVALID_CALL, StrCat("IDXCoreAdapter::GetProperty: property ",
                                                  static_cast<uint32_t>(property), " is not supported"));
    }
    if (size < value.size) {
      return Fail(E_INVALIDARG, StrCat("IDXCoreAdapter::GetProperty: bufferSize is ", size, "; property ",
                                       static_cast<uint32_t>(property), " has ", value.size, " bytes"));
    }
    std::memcpy(data, value.bytes, value.size);
    return S_OK;
  });
}

HRESULT DxCoreAdapter::GetPropertyWithInput(DXCoreAdapterProperty property, size_t, const void*,
                                            size_t output_size, void* output) {
  return GetProperty(property, output_size, output);
}

bool DxCoreAdapter::IsQueryStateSupported(DXCoreAdapterState state) {
  return state == DXCoreAdapterState::AdapterMemoryBudget ||
         state == DXCoreAdapterState::IsDriverUpdateInProgress;
}

HRESULT DxCoreAdapter::QueryState(DXCoreAdapterState state, size_t input_size, const void* input,
                                  size_t output_size, void* output) {
  if (output == nullptr) return Fail(E_POINTER, "IDXCoreAdapter::QueryState: outputBuffer is null");
  if (state == DXCoreAdapterState::IsDriverUpdateInProgress) {
    if (output_size < sizeof(bool)) return E_INVALIDARG;
    const bool no = false;
    std::memcpy(output, &no, sizeof(no));
    return S_OK;
  }
  if (state != DXCoreAdapterState::AdapterMemoryBudget) return DXGI_ERROR_INVALID_CALL;
  if (input == nullptr) return Fail(E_POINTER, "IDXCoreAdapter::QueryState: inputStateDetails is null");
  if (input_size < sizeof(DXCoreAdapterMemoryBudgetNodeSegmentGroup) ||
      output_size < sizeof(DXCoreAdapterMemoryBudget)) {
    return Fail(E_INVALIDARG, "IDXCoreAdapter::QueryState: a buffer is too small for AdapterMemoryBudget");
  }
  DXCoreAdapterMemoryBudgetNodeSegmentGroup group;
  std::memcpy(&group, input, sizeof(group));
  DXCoreAdapterMemoryBudget budget{};
  const AdapterInfo& info = backend_.adapter();
  // An adapter with its own memory has it as the local segment; without, all memory is local.
  const bool local = group.segmentGroup == DXCoreSegmentGroup::Local;
  if (local) {
    budget.budget = info.dedicated_bytes != 0 ? info.dedicated_bytes : info.shared_bytes;
    budget.currentUsage = MemoryInUse(backend_);
  } else if (info.dedicated_bytes != 0) {
    budget.budget = info.shared_bytes;
  }
  budget.availableForReservation = budget.budget / 2;
  std::memcpy(output, &budget, sizeof(budget));
  return S_OK;
}

}  // namespace anydml::d3d12
