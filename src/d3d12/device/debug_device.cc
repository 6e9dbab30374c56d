#include "d3d12/device/debug_device.h"

#include "com/guard.h"
#include "d3d12/device/device.h"
#include "d3d12/implementation_of.h"

namespace anydml::d3d12 {

HRESULT DebugDevice::ReportLiveDeviceObjects(D3D12_RLDO_FLAGS) {
  return Guard([&] {
    const auto device = ImplementationOf<Device>(device_);
    device->Post(D3D12_MESSAGE_SEVERITY_INFO, D3D12_MESSAGE_ID_LIVE_OBJECT_SUMMARY,
                 "Live objects of this process: ", LiveObjectCount());
    return S_OK;
  });
}

}  // namespace anydml::d3d12
