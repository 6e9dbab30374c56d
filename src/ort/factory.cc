#include "ort/factory.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <anydml.h>

namespace anydml::ort {
namespace {

constexpr char kAdapterKey[] = "adapter";
constexpr char kMemoryKey[] = "memory";
constexpr char kHostMemory[] = "host", kOwnMemory[] = "device";
constexpr char kFeatureLevelKey[] = "feature_level";
constexpr char kHalfPrecisionKey[] = "half_precision";
constexpr char kFallbackKey[] = "fallback";
// onnxruntime's own entry: no node of the model may run on its CPU provider.
constexpr std::string_view kNoCpu = "session.disable_cpu_ep_fallback";
constexpr std::string_view kOptionPrefix = "ep.anydml.";  // onnxruntime's prefix, from the provider's name
constexpr std::string_view kArenaPrefix = "arena.";       // for onnxruntime's own options

constexpr int32_t kDlpackCuda = 2;  // DLDeviceType

// A GPU has memory of its own. For tests without a GPU, so can the CPU.
bool HasMemory(const client::Adapter& adapter) {
  return adapter.traits.TakesHostMemory == 0 || std::getenv("ANYDML_ORT_DEVICE_MEMORY") != nullptr;
}

// The CPU, and NVIDIA's GPUs in onnxruntime's order.
struct Hardware {
  const OrtHardwareDevice* cpu = nullptr;
  std::vector<const OrtHardwareDevice*> gpus;

  // If onnxruntime has not found an existing GPU (in a container), its adapter is attached to the CPU.
  const OrtHardwareDevice* Of(const client::Adapter& adapter) const {
    const auto number = static_cast<size_t>(adapter.traits.DlpackDeviceId);
    return adapter.traits.DlpackDeviceType == kDlpackCuda && number < gpus.size() ? gpus[number] : cpu;
  }
};

}  // namespace

Factory::Factory(const Api& api) : api_(api) {
  get_name = [](const OrtEpFactory*) -> const char* { return kProviderName; };
  get_vendor = [](const OrtEpFactory*) -> const char* { return "AnyDML"; };
  get_vendor_id = [](const OrtEpFactory*) { return uint32_t{0}; };
  get_version = [](const OrtEpFactory*) -> const char* { return AnyDmlGetVersion(); };
  get_supported_devices = [](OrtEpFactory* self, const OrtHardwareDevice* const* hardware, size_t count,
                             OrtEpDevice** out, size_t max_out, size_t* out_count) -> OrtStatus* {
    auto* const factory = static_cast<Factory*>(self);
    *out_count = 0;
    return Guarded(factory->api_,
                   [&] { return factory->ListDevices(hardware, count, out, max_out, out_count); });
  };
  create_ep = [](OrtEpFactory* self, const OrtHardwareDevice* const*, const OrtKeyValuePairs* const* metadata,
                 size_t count, const OrtSessionOptions* session, const OrtLogger* logger,
                 OrtEp** out) -> OrtStatus* {
    auto* const factory = static_cast<Factory*>(self);
    *out = nullptr;
    return Guarded(factory->api_, [&]() -> Status {
      if (count == 0) return InvalidArgument("no device was chosen");
      ProviderOptions options;
      options.adapter = factory->api_.Call(kGetKeyValue, metadata[0], kAdapterKey);
      if (factory->api_.Call(kGetKeyValue, metadata[0], kMemoryKey) == std::string_view(kOwnMemory))
        options.memory_of = options.adapter;
      ANYDML_RETURN_IF_ERROR(factory->ReadOptions(session, &options));
      std::unique_ptr<Provider> provider;
      ANYDML_RETURN_IF_ERROR(Provider::Create(factory->api_, logger, options, &provider));
      *out = provider.release();
      return {};
    });
  };
  release_ep = [](OrtEpFactory*, OrtEp* provider) { delete static_cast<Provider*>(provider); };
  create_allocator = [](OrtEpFactory* self, const OrtMemoryInfo* info, const OrtKeyValuePairs*,
                        OrtAllocator** out) -> OrtStatus* {
    auto* const factory = static_cast<Factory*>(self);
    *out = nullptr;
    return Guarded(factory->api_, [&] { return factory->MakeAllocator(info, out); });
  };
  release_allocator = [](OrtEpFactory*, OrtAllocator* allocator) { DeleteAllocator(allocator); };
  // Called whether there is device memory or not.
  create_data_transfer = [](OrtEpFactory* self, OrtDataTransferImpl** out) -> OrtStatus* {
    auto* const factory = static_cast<Factory*>(self);
    *out = nullptr;
    return Guarded(factory->api_, [&]() -> Status {
      if (!factory->memories_.empty()) *out = NewDataTransfer(factory->api_, factory->memories_);
      return {};
    });
  };
  is_stream_aware = [](const OrtEpFactory*) { return false; };
}

Status Factory::ListDevices(const OrtHardwareDevice* const* hardware, size_t count, OrtEpDevice** out,
                            size_t max_out, size_t* out_count) {
  Hardware known;
  for (size_t i = 0; i < count; ++i) {
    const OrtHardwareDeviceType type = api_.Call(kHardwareDeviceType, hardware[i]);
    if (type == kOrtCpu && known.cpu == nullptr) known.cpu = hardware[i];
    if (type == kOrtGpu && api_.Call(kHardwareDeviceVendorId, hardware[i]) == kNvidia)
      known.gpus.push_back(hardware[i]);
  }
  std::vector<client::Adapter> adapters;
  ANYDML_RETURN_IF_ERROR(client::ListAdapters(&adapters));
  for (const bool own_memory : {false, true}) {
    for (const client::Adapter& adapter : adapters) {
      const OrtHardwareDevice* const device = known.Of(adapter);
      if (device == nullptr || *out_count == max_out || (own_memory && !HasMemory(adapter))) continue;
      ANYDML_RETURN_IF_ERROR(AddDevice(adapter, device, own_memory, &out[*out_count]));
      ++*out_count;
    }
  }
  return {};
}

Status Factory::AddDevice(const client::Adapter& adapter, const OrtHardwareDevice* hardware, bool own_memory,
                          OrtEpDevice** out) {
  OrtKeyValuePairs* metadata = nullptr;
  api_.Call(kCreateKeyValuePairs, &metadata);
  api_.Call(kAddKeyValuePair, metadata, kAdapterKey, adapter.id.c_str());
  api_.Call(kAddKeyValuePair, metadata, "description", adapter.description.c_str());
  api_.Call(kAddKeyValuePair, metadata, kMemoryKey, own_memory ? kOwnMemory : kHostMemory);
  Status status = api_.Try(kCreateEpDevice, this, hardware, metadata, nullptr, out);
  api_.Call(kReleaseKeyValuePairs, metadata);
  if (status.ok() && own_memory) {
    status = AddMemory(adapter, *out);
    if (!status.ok()) api_.Call(kReleaseEpDevice, *out);
  }
  return status;
}

Status Factory::AddMemory(const client::Adapter& adapter, OrtEpDevice* device) {
  auto memory = std::find_if(memories_.begin(), memories_.end(),
                             [&](const auto& known) { return known->adapter() == adapter.id; });
  if (memory == memories_.end()) {
    std::unique_ptr<DeviceMemory> created;
    ANYDML_RETURN_IF_ERROR(DeviceMemory::Create(api_, adapter.id, adapter.traits.DlpackDeviceId, &created));
    memory = memories_.insert(memories_.end(), std::move(created));
  }
  return api_.Try(kAddAllocatorInfo, device, (*memory)->info());
}

Status Factory::MakeAllocator(const OrtMemoryInfo* info, OrtAllocator** out) const {
  const OrtMemoryDevice* const device = api_.Call(kMemoryInfoGetMemoryDevice, info);
  for (const std::unique_ptr<DeviceMemory>& memory : memories_) {
    if (!memory->Is(device)) continue;
    *out = NewAllocator(memory.get());
    return {};
  }
  return InvalidArgument("an allocator for memory that is none of AnyDML's");
}

Status Factory::ReadOptions(const OrtSessionOptions* session, ProviderOptions* out) const {
  OrtKeyValuePairs* entries = nullptr;
  ANYDML_RETURN_IF_ERROR(api_.Try(kGetSessionOptionsConfigEntries, session, &entries));
  const char *const *keys = nullptr, *const *values = nullptr;
  size_t count = 0;
  api_.Call(kGetKeyValuePairs, entries, &keys, &values, &count);
  Status status;
  for (size_t i = 0; i < count && status.ok(); ++i) {
    std::string_view key = keys[i];
    if (key == kNoCpu && values[i] == std::string_view("1") && out->fallback.empty()) out->fallback = "0";
    if (!key.starts_with(kOptionPrefix)) continue;
    key.remove_prefix(kOptionPrefix.size());
    if (key == kAdapterKey) {
      out->adapter = values[i];
    } else if (key == kFeatureLevelKey) {
      out->feature_level = values[i];
    } else if (key == kHalfPrecisionKey) {
      out->half_precision = values[i];
    } else if (key == kFallbackKey) {
      out->fallback = values[i];
    } else if (!key.starts_with(kArenaPrefix)) {
      status = InvalidArgument("there is no option \"", key,
                               "\"; there are adapter, feature_level, half_precision and fallback");
    }
  }
  api_.Call(kReleaseKeyValuePairs, entries);
  return status;
}

}  // namespace anydml::ort
