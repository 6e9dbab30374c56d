// The base of every object that a device creates. A child keeps its device alive.
#pragma once

#include "com/private_data.h"
#include "d3d12/device/device.h"

namespace anydml::d3d12 {

template <typename Main, typename... Others>
class DeviceChild : public NamedObject<Main, ID3D12Object, ID3D12DeviceChild, Others...> {
 public:
  HRESULT STDMETHODCALLTYPE GetDevice(REFIID iid, void** out) override {
    return device_->QueryInterface(iid, out);
  }

  Device* device() const { return device_.get(); }

 protected:
  explicit DeviceChild(Device* device) : device_(device) {}

  // " 'weights'", or empty for an object without a name; for messages.
  std::string QuotedName() const noexcept {
    try {
      const std::string name = this->name();
      return name.empty() ? name : " '" + name + "'";
    } catch (...) {  // destructors call it, too
      return {};
    }
  }

 private:
  // In the base, so that it is released after all members of derived classes.
  const ComPtr<Device> device_;
};

}  // namespace anydml::d3d12
