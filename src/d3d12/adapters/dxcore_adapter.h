#pragma once

#include "backend/backend.h"
#include "com/com_object.h"

namespace anydml::d3d12 {

class DxCoreAdapter final : public ComObject<IDXCoreAdapter1, IDXCoreAdapter> {
 public:
  static constexpr GUID kImplementation = {
      0x5e1c1f0a, 0x3a0e, 0x4bd5, {0x9b, 0x1e, 0x6d, 0x2a, 0x0c, 0x57, 0x11, 0x10}};

  DxCoreAdapter(IUnknown* factory, Backend& backend) : factory_(factory), backend_(backend) {}

  bool STDMETHODCALLTYPE IsValid() override { return true; }
  bool STDMETHODCALLTYPE IsAttributeSupported(REFGUID attribute) override;
  bool STDMETHODCALLTYPE IsPropertySupported(DXCoreAdapterProperty property) override;
  HRESULT STDMETHODCALLTYPE GetProperty(DXCoreAdapterProperty property, size_t size, void* data) override;
  HRESULT STDMETHODCALLTYPE GetPropertySize(DXCoreAdapterProperty property, size_t* size) override;
  bool STDMETHODCALLTYPE IsQueryStateSupported(DXCoreAdapterState state) override;
  HRESULT STDMETHODCALLTYPE QueryState(DXCoreAdapterState state, size_t input_size, const void* input,
                                       size_t output_size, void* output) override;
  bool STDMETHODCALLTYPE IsSetStateSupported(DXCoreAdapterState) override { return false; }
  HRESULT STDMETHODCALLTYPE SetState(DXCoreAdapterState, size_t, const void*, size_t, const void*) override {
    return E_NOTIMPL;
  }
  HRESULT STDMETHODCALLTYPE GetFactory(REFIID iid, void** factory) override {
    return factory_->QueryInterface(iid, factory);
  }
  HRESULT STDMETHODCALLTYPE GetPropertyWithInput(DXCoreAdapterProperty property, size_t input_size,
                                                 const void* input, size_t output_size,
                                                 void* output) override;

  Backend& backend() const { return backend_; }

 protected:
  void* QueryOther(REFIID iid) override { return iid == kImplementation ? this : nullptr; }

 private:
  const ComPtr<IUnknown> factory_;
  Backend& backend_;
};

// Whether adapters of this backend have the attribute; adapter lists filter by it.
bool SupportsAttribute(const Backend& backend, REFGUID attribute);

}  // namespace anydml::d3d12
