#include "client/adapters.h"

#include <algorithm>
#include <cctype>

namespace anydml::client {
namespace {

using Microsoft::WRL::ComPtr;

template <typename T>
T Property(IDXCoreAdapter* adapter, DXCoreAdapterProperty property) {
  T value{};
  if (!adapter->IsPropertySupported(property)) return value;
  if (FAILED(adapter->GetProperty(property, sizeof(value), &value))) return T{};
  return value;
}

std::string Description(IDXCoreAdapter* adapter) {
  size_t bytes = 0;
  if (FAILED(adapter->GetPropertySize(DXCoreAdapterProperty::DriverDescription, &bytes))) return {};
  std::string text(bytes, '\0');
  if (FAILED(adapter->GetProperty(DXCoreAdapterProperty::DriverDescription, bytes, text.data()))) return {};
  text.resize(text.find('\0') == std::string::npos ? bytes : text.find('\0'));
  return text;
}

uint64_t Luid(IDXCoreAdapter* adapter) {
  const auto luid = Property<LUID>(adapter, DXCoreAdapterProperty::InstanceLuid);
  return uint64_t{luid.LowPart} | static_cast<uint64_t>(luid.HighPart) << 32;
}

std::string Lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Status Failed(const char* what, HRESULT result) {
  if (const char* why = AnyDmlGetLastErrorMessage(); *why != 0) {
    return Status(static_cast<Code>(static_cast<uint32_t>(result)), why);
  }
  return Status(static_cast<Code>(static_cast<uint32_t>(result)),
                StrCat(what, " failed with HRESULT 0x", std::hex, static_cast<uint32_t>(result)));
}

}  // namespace

Status ListAdapters(std::vector<Adapter>* out) {
  ComPtr<IDXCoreAdapterFactory> factory;
  HRESULT result = DXCoreCreateAdapterFactory(IID_PPV_ARGS(&factory));
  if (FAILED(result)) return Failed("DXCoreCreateAdapterFactory", result);
  const GUID attributes[] = {DXCORE_ADAPTER_ATTRIBUTE_D3D12_CORE_COMPUTE};
  ComPtr<IDXCoreAdapterList> list;
  result = factory->CreateAdapterList(1, attributes, IID_PPV_ARGS(&list));
  if (FAILED(result)) return Failed("CreateAdapterList", result);
  out->clear();
  for (uint32_t i = 0; i < list->GetAdapterCount(); ++i) {
    Adapter entry;
    result = list->GetAdapter(i, IID_PPV_ARGS(&entry.adapter));
    if (FAILED(result)) return Failed("GetAdapter", result);
    IDXCoreAdapter* adapter = entry.adapter.Get();
    entry.description = Description(adapter);
    // The library's own functions: DXCore has no property for these.
    const uint64_t luid = Luid(adapter);
    entry.id = AnyDmlGetAdapterId(luid);
    result = AnyDmlGetAdapterTraits(luid, &entry.traits, sizeof(entry.traits));
    if (FAILED(result)) return Failed("AnyDmlGetAdapterTraits", result);
    entry.dedicated_bytes = Property<uint64_t>(adapter, DXCoreAdapterProperty::DedicatedAdapterMemory);
    entry.shared_bytes = Property<uint64_t>(adapter, DXCoreAdapterProperty::SharedSystemMemory);
    out->push_back(std::move(entry));
  }
  return {};
}

Status ChooseAdapter(const std::string& wanted, Adapter* out) {
  std::vector<Adapter> adapters;
  ANYDML_RETURN_IF_ERROR(ListAdapters(&adapters));
  if (adapters.empty()) return Status(Code::kUnsupported, "this machine has no adapter");
  const std::string lower = Lower(wanted);
  // A number or an id selects exactly one, "cuda" the first of its kind; only then are descriptions searched.
  auto chosen = std::find_if(adapters.begin(), adapters.end(), [&](const Adapter& adapter) {
    return lower == adapter.id || lower == std::to_string(&adapter - adapters.data()) ||
           adapter.id.starts_with(lower + ":");
  });
  if (chosen == adapters.end()) {
    chosen = std::find_if(adapters.begin(), adapters.end(), [&](const Adapter& adapter) {
      return Lower(adapter.description).find(lower) != std::string::npos;
    });
  }
  if (chosen != adapters.end()) {
    *out = std::move(*chosen);
    return {};
  }
  std::string list;
  for (const Adapter& adapter : adapters) {
    list += StrCat(list.empty() ? "" : ", ", adapter.id, " (", adapter.description, ")");
  }
  const std::string why = AnyDmlWhyNoGpu();
  return Status(Code::kUnsupported, StrCat("there is no adapter '", wanted, "'; there is ", list,
                                           why.empty() ? "" : "; no GPU: ", why));
}

}  // namespace anydml::client
