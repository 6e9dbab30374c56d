// ID3D12Debug and its versions: the switch of the debug layer.
#pragma once

#include "com/com_object.h"

namespace anydml::d3d12 {

// Process-wide; read when a device is created.
bool DebugLayerRequested();

class Debug final : public ComObject<ID3D12Debug6, ID3D12Debug, ID3D12Debug3, ID3D12Debug4, ID3D12Debug5> {
 public:
  void STDMETHODCALLTYPE EnableDebugLayer() override;
  void STDMETHODCALLTYPE DisableDebugLayer() override;
  // There are no shaders to instrument.
  void STDMETHODCALLTYPE SetEnableGPUBasedValidation(BOOL) override {}
  void STDMETHODCALLTYPE SetEnableSynchronizedCommandQueueValidation(BOOL) override {}
  void STDMETHODCALLTYPE SetGPUBasedValidationFlags(D3D12_GPU_BASED_VALIDATION_FLAGS) override {}
  void STDMETHODCALLTYPE SetEnableAutoName(BOOL) override {}
  void STDMETHODCALLTYPE SetForceLegacyBarrierValidation(BOOL) override {}

 protected:
  void* QueryOther(REFIID iid) override;

 private:
  // ID3D12Debug1 and ID3D12Debug2 derive from IUnknown, so they need inheritance chains of their own.
  class Debug1 final : public ID3D12Debug1 {
   public:
    explicit Debug1(Debug* outer) : outer_(outer) {}
    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** object) override {
      return outer_->QueryInterface(iid, object);
    }
    ULONG STDMETHODCALLTYPE AddRef() override { return outer_->AddRef(); }
    ULONG STDMETHODCALLTYPE Release() override { return outer_->Release(); }
    void STDMETHODCALLTYPE EnableDebugLayer() override { outer_->EnableDebugLayer(); }
    void STDMETHODCALLTYPE SetEnableGPUBasedValidation(BOOL) override {}
    void STDMETHODCALLTYPE SetEnableSynchronizedCommandQueueValidation(BOOL) override {}

   private:
    Debug* const outer_;
  };
  class Debug2 final : public ID3D12Debug2 {
   public:
    explicit Debug2(Debug* outer) : outer_(outer) {}
    HRESULT STDMETHODCALLTYPE QueryInterface(REFIID iid, void** object) override {
      return outer_->QueryInterface(iid, object);
    }
    ULONG STDMETHODCALLTYPE AddRef() override { return outer_->AddRef(); }
    ULONG STDMETHODCALLTYPE Release() override { return outer_->Release(); }
    void STDMETHODCALLTYPE SetGPUBasedValidationFlags(D3D12_GPU_BASED_VALIDATION_FLAGS) override {}

   private:
    Debug* const outer_;
  };

  Debug1 debug1_{this};
  Debug2 debug2_{this};
};

}  // namespace anydml::d3d12
