// The common base of all IDML* objects: private data and names, refusal after device removal, the way from an
// interface to its implementation, GetDevice.
#pragma once

#include <memory>
#include <utility>

#include <DirectML.h>

#include "com/com_object.h"
#include "com/guard.h"
#include "com/private_data.h"
#include "dml/device_state.h"

namespace anydml::dml {

// IDMLObject::SetPrivateDataInterface takes a non-const IUnknown, unlike ID3D12Object's, hence a mixin over
// PrivateData.
template <typename Main, typename... Others>
class DmlObject : public ComObject<Main, Others..., IDMLObject> {
 public:
  HRESULT STDMETHODCALLTYPE GetPrivateData(REFGUID guid, UINT* size, void* data) override {
    return IfWorking("IDMLObject::GetPrivateData", [&] { return private_data_.Get(guid, size, data); });
  }
  HRESULT STDMETHODCALLTYPE SetPrivateData(REFGUID guid, UINT size, const void* data) override {
    return IfWorking("IDMLObject::SetPrivateData", [&] { return private_data_.Set(guid, size, data); });
  }
  HRESULT STDMETHODCALLTYPE SetPrivateDataInterface(REFGUID guid, IUnknown* object) override {
    return IfWorking("IDMLObject::SetPrivateDataInterface",
                     [&] { return private_data_.SetInterface(guid, object); });
  }
  HRESULT STDMETHODCALLTYPE SetName(PCWSTR name) override {
    return IfWorking("IDMLObject::SetName", [&] { return private_data_.SetName(name); });
  }

  DeviceState& state() const { return *state_; }
  const std::shared_ptr<DeviceState>& shared_state() const { return state_; }

 protected:
  explicit DmlObject(std::shared_ptr<DeviceState> state) : state_(std::move(state)) {}

 private:
  template <typename Body>
  HRESULT IfWorking(const char* method, Body&& body) {
    const HRESULT removed = state_->CheckRemoved(method);
    if (FAILED(removed)) return removed;
    const HRESULT result = body();
    if (result != E_INVALIDARG) return result;
    return Guard(
        [&] { return state_->Fail(InvalidArgument(method, ": size and data do not fit together")); });
  }

  const std::shared_ptr<DeviceState> state_;
  PrivateData private_data_;
};

// The implementation behind an interface; null if that is null or not ours. It is queried with an IID that
// only this library knows (T::kImplementationIid, which T::QueryOther answers). Adds no reference.
template <typename T>
T* ImplementationOf(IUnknown* object) {
  void* found = nullptr;
  if (object == nullptr || FAILED(object->QueryInterface(T::kImplementationIid, &found))) return nullptr;
  object->Release();
  return static_cast<T*>(found);
}

}  // namespace anydml::dml
