#include "dml/entry_points.h"

#include <cstdlib>
#include <memory>
#include <string>

#include "base/report.h"
#include "com/guard.h"
#include "dml/device.h"
#include "dml/feature_support.h"

namespace anydml {
namespace {

constexpr char kMethod[] = "DMLCreateDevice1: ";

Status CheckMinimumLevel(FeatureLevel minimum, FeatureLevel held) {
  // A level of a later header is well-formed but too high.
  const bool later = minimum > kLatestFeatureLevel && minimum <= 0xFF00 && (minimum & 0xFF) == 0;
  if (!later && !dml::IsFeatureLevel(minimum)) {
    return InvalidArgument(kMethod, "minimumFeatureLevel is ", minimum, ", which is no feature level");
  }
  if (minimum <= held) return {};
  return Status(Code::kUnsupported, StrCat(kMethod, "minimumFeatureLevel is ", FeatureLevelName(minimum),
                                           " but this device has ", FeatureLevelName(held)));
}

Status CheckArguments(ID3D12Device* d3d12_device, uint32_t flags, FeatureLevel minimum, d3d12::Device** d3d,
                      FeatureLevel* level) {
  if (d3d12_device == nullptr) return InvalidArgument(kMethod, "d3d12Device is null");
  *d3d = d3d12::DeviceFrom(d3d12_device);
  if (*d3d == nullptr) {
    return InvalidArgument(kMethod, "d3d12Device is not a device of this library's Direct3D 12");
  }
  if ((flags & ~static_cast<uint32_t>(DML_CREATE_DEVICE_FLAG_DEBUG)) != 0) {
    return InvalidArgument(kMethod, "flags is ", flags,
                           " but only DML_CREATE_DEVICE_FLAG_DEBUG (1) is known");
  }
  ANYDML_RETURN_IF_ERROR(dml::HeldFeatureLevel(level));
  return CheckMinimumLevel(minimum, *level);
}

// Read at device creation, not when operators are compiled: by then another thread may be changing the
// environment.
std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

HRESULT CreateDmlDevice(ID3D12Device* d3d12_device, uint32_t flags, uint32_t minimum_feature_level,
                        REFIID riid, void** ppv) {
  if (ppv != nullptr) *ppv = nullptr;
  return Guard([&]() -> HRESULT {
    d3d12::Device* d3d = nullptr;
    FeatureLevel level = 0;
    const Status status = CheckArguments(d3d12_device, flags, minimum_feature_level, &d3d, &level);
    const bool debug = (flags & DML_CREATE_DEVICE_FLAG_DEBUG) != 0;
    if (!status.ok()) {
      ReportError(status.message(), debug && (d3d == nullptr || !d3d12::DebugLayerEnabled(d3d)));
      if (d3d != nullptr) {
        d3d12::PostMessage(d3d, D3D12_MESSAGE_SEVERITY_ERROR, D3D12_MESSAGE_ID_UNKNOWN, status.message());
      }
      return ToHresult(status.code());
    }
    if (FAILED(d3d12::RemovedReason(d3d))) {
      ReportError(StrCat(kMethod, "the Direct3D device ", d3d12::WhyRemoved(d3d)), debug);
      return DXGI_ERROR_DEVICE_REMOVED;
    }
    dml::DeviceSettings settings = {.implementation = Variable("ANYDML_IMPLEMENTATION"),
                                    .graph_without = Variable("ANYDML_GRAPH_WITHOUT"),
                                    .graph_guards = Variable("ANYDML_GRAPH_GUARDS") == "1",
                                    .host_fallback = Variable("ANYDML_HOST_FALLBACK") != "0"};
    auto state = std::make_shared<dml::DeviceState>(d3d, level, debug, std::move(settings));
    const HRESULT result = CreateComObject<dml::Device>(riid, ppv, d3d12::PublicDevice(d3d), state);
    if (result != E_NOINTERFACE) return result;
    return state->Fail(
        Status(Code::kNoInterface, StrCat(kMethod, "the device does not have the interface riid")));
  });
}

}  // namespace anydml
