// IDMLDeviceChild: a strong reference to the device, which therefore outlives
// all of its children.
#pragma once

#include "dml/device.h"
#include "dml/object.h"

namespace anydml::dml {

template <typename Main, typename... Others>
class DeviceChild : public DmlObject<Main, Others..., IDMLDeviceChild> {
 public:
  HRESULT STDMETHODCALLTYPE GetDevice(REFIID riid, void** ppv) override {
    if (ppv != nullptr) *ppv = nullptr;
    const HRESULT removed = this->state().CheckRemoved("IDMLDeviceChild::GetDevice");
    if (FAILED(removed)) return removed;
    if (ppv != nullptr) return device_->QueryInterface(riid, ppv);
    return Guard(
        [&] { return device_->Fail(Status(Code::kPointer, "IDMLDeviceChild::GetDevice: ppv is null")); });
  }

  Device* device() const { return device_.get(); }

 protected:
  explicit DeviceChild(Device* device)
      : DmlObject<Main, Others..., IDMLDeviceChild>(device->shared_state()), device_(device) {}

 private:
  const ComPtr<Device> device_;
};

}  // namespace anydml::dml
