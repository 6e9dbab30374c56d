#include "d3d12/device/device_registry.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "d3d12/device/device.h"

namespace anydml::d3d12 {
namespace {

struct Registry {
  std::mutex mutex;
  std::vector<Device*> devices;  // without references; each device removes itself when it is destroyed
};

Registry& GetRegistry() {
  static auto* const registry = new Registry;  // never destroyed: static objects may hold devices
  return *registry;
}

ComPtr<Device> FindOrCreate(Backend& backend, bool debug) {
  Registry& registry = GetRegistry();
  std::lock_guard lock(registry.mutex);
  for (Device* device : registry.devices) {
    if (&device->backend() == &backend && device->debug() == debug && !device->removed() &&
        device->TryAddRef()) {
      return ComPtr<Device>::Adopt(device);
    }
  }
  registry.devices.reserve(registry.devices.size() + 1);
  auto device = ComPtr<Device>::Adopt(new Device(backend, debug));
  registry.devices.push_back(device.get());
  return device;
}

}  // namespace

HRESULT OpenDevice(Backend& backend, bool debug, REFIID iid, void** out) {
  const ComPtr<Device> device = FindOrCreate(backend, debug);  // released after the lock
  return device->QueryInterface(iid, out);
}

void ForgetDevice(Device* device) {
  Registry& registry = GetRegistry();
  std::lock_guard lock(registry.mutex);
  auto& devices = registry.devices;
  devices.erase(std::remove(devices.begin(), devices.end(), device), devices.end());
}

}  // namespace anydml::d3d12
