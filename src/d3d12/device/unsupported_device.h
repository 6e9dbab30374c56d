// The methods of ID3D12Device9 that a compute-only device without shaders does not have. They return
// E_NOTIMPL with a message; void ones only post it.
#pragma once

#include "com/private_data.h"

namespace anydml::d3d12 {

class UnsupportedDevice : public NamedObject<ID3D12Device9, ID3D12Object, ID3D12Device, ID3D12Device1,
                                             ID3D12Device2, ID3D12Device3, ID3D12Device4, ID3D12Device5,
                                             ID3D12Device6, ID3D12Device7, ID3D12Device8> {
 public:
  // ID3D12Device
  HRESULT STDMETHODCALLTYPE CreateGraphicsPipelineState(const D3D12_GRAPHICS_PIPELINE_STATE_DESC*, REFIID,
                                                        void** out) override {
    return NotImplemented("CreateGraphicsPipelineState", out);
  }
  HRESULT STDMETHODCALLTYPE CreateComputePipelineState(const D3D12_COMPUTE_PIPELINE_STATE_DESC*, REFIID,
                                                       void** out) override {
    return NotImplemented("CreateComputePipelineState", out);
  }
  HRESULT STDMETHODCALLTYPE CreateRootSignature(UINT, const void*, SIZE_T, REFIID, void** out) override {
    return NotImplemented("CreateRootSignature", out);
  }
  void STDMETHODCALLTYPE CreateRenderTargetView(ID3D12Resource*, const D3D12_RENDER_TARGET_VIEW_DESC*,
                                                D3D12_CPU_DESCRIPTOR_HANDLE) override {
    Unsupported("CreateRenderTargetView");
  }
  void STDMETHODCALLTYPE CreateDepthStencilView(ID3D12Resource*, const D3D12_DEPTH_STENCIL_VIEW_DESC*,
                                                D3D12_CPU_DESCRIPTOR_HANDLE) override {
    Unsupported("CreateDepthStencilView");
  }
  HRESULT STDMETHODCALLTYPE CreateReservedResource(const D3D12_RESOURCE_DESC*, D3D12_RESOURCE_STATES,
                                                   const D3D12_CLEAR_VALUE*, REFIID, void** out) override {
    return NotImplemented("CreateReservedResource", out);
  }
  HRESULT STDMETHODCALLTYPE CreateSharedHandle(ID3D12DeviceChild*, const SECURITY_ATTRIBUTES*, DWORD, LPCWSTR,
                                               HANDLE*) override {
    return NotImplemented("CreateSharedHandle");
  }
  HRESULT STDMETHODCALLTYPE OpenSharedHandle(HANDLE, REFIID, void** out) override {
    return NotImplemented("OpenSharedHandle", out);
  }
  HRESULT STDMETHODCALLTYPE OpenSharedHandleByName(LPCWSTR, DWORD, HANDLE*) override {
    return NotImplemented("OpenSharedHandleByName");
  }
  HRESULT STDMETHODCALLTYPE CreateCommandSignature(const D3D12_COMMAND_SIGNATURE_DESC*, ID3D12RootSignature*,
                                                   REFIID, void** out) override {
    return NotImplemented("CreateCommandSignature", out);
  }
  // ID3D12Device1
  HRESULT STDMETHODCALLTYPE CreatePipelineLibrary(const void*, SIZE_T, REFIID, void** out) override {
    return NotImplemented("CreatePipelineLibrary", out);
  }
  // ID3D12Device2
  HRESULT STDMETHODCALLTYPE CreatePipelineState(const D3D12_PIPELINE_STATE_STREAM_DESC*, REFIID,
                                                void** out) override {
    return NotImplemented("CreatePipelineState", out);
  }
  // ID3D12Device3
  HRESULT STDMETHODCALLTYPE OpenExistingHeapFromAddress(const void*, REFIID, void** out) override {
    return NotImplemented("OpenExistingHeapFromAddress", out);
  }
  HRESULT STDMETHODCALLTYPE OpenExistingHeapFromFileMapping(HANDLE, REFIID, void** out) override {
    return NotImplemented("OpenExistingHeapFromFileMapping", out);
  }
  // ID3D12Device4
  HRESULT STDMETHODCALLTYPE CreateProtectedResourceSession(const D3D12_PROTECTED_RESOURCE_SESSION_DESC*,
                                                           REFIID, void** out) override {
    return NotImplemented("CreateProtectedResourceSession", out);
  }
  HRESULT STDMETHODCALLTYPE CreateReservedResource1(const D3D12_RESOURCE_DESC*, D3D12_RESOURCE_STATES,
                                                    const D3D12_CLEAR_VALUE*, ID3D12ProtectedResourceSession*,
                                                    REFIID, void** out) override {
    return NotImplemented("CreateReservedResource1", out);
  }
  // ID3D12Device5
  HRESULT STDMETHODCALLTYPE CreateLifetimeTracker(ID3D12LifetimeOwner*, REFIID, void** out) override {
    return NotImplemented("CreateLifetimeTracker", out);
  }
  HRESULT STDMETHODCALLTYPE EnumerateMetaCommandParameters(REFGUID, D3D12_META_COMMAND_PARAMETER_STAGE, UINT*,
                                                           UINT*,
                                                           D3D12_META_COMMAND_PARAMETER_DESC*) override {
    return NotImplemented("EnumerateMetaCommandParameters");
  }
  HRESULT STDMETHODCALLTYPE CreateMetaCommand(REFGUID, UINT, const void*, SIZE_T, REFIID,
                                              void** out) override {
    return NotImplemented("CreateMetaCommand", out);
  }
  HRESULT STDMETHODCALLTYPE CreateStateObject(const D3D12_STATE_OBJECT_DESC*, REFIID, void** out) override {
    return NotImplemented("CreateStateObject", out);
  }
  // ID3D12Device7
  HRESULT STDMETHODCALLTYPE AddToStateObject(const D3D12_STATE_OBJECT_DESC*, ID3D12StateObject*, REFIID,
                                             void** out) override {
    return NotImplemented("AddToStateObject", out);
  }
  HRESULT STDMETHODCALLTYPE CreateProtectedResourceSession1(const D3D12_PROTECTED_RESOURCE_SESSION_DESC1*,
                                                            REFIID, void** out) override {
    return NotImplemented("CreateProtectedResourceSession1", out);
  }
  // ID3D12Device8
  void STDMETHODCALLTYPE CreateSamplerFeedbackUnorderedAccessView(ID3D12Resource*, ID3D12Resource*,
                                                                  D3D12_CPU_DESCRIPTOR_HANDLE) override {
    Unsupported("CreateSamplerFeedbackUnorderedAccessView");
  }
  // ID3D12Device9
  HRESULT STDMETHODCALLTYPE CreateShaderCacheSession(const D3D12_SHADER_CACHE_SESSION_DESC*, REFIID,
                                                     void** out) override {
    return NotImplemented("CreateShaderCacheSession", out);
  }
  HRESULT STDMETHODCALLTYPE ShaderCacheControl(D3D12_SHADER_CACHE_KIND_FLAGS,
                                               D3D12_SHADER_CACHE_CONTROL_FLAGS) override {
    return NotImplemented("ShaderCacheControl");
  }

 protected:
  virtual void Unsupported(const char* method) = 0;

  HRESULT NotImplemented(const char* method, void** out = nullptr) {
    if (out != nullptr) *out = nullptr;
    Unsupported(method);
    return E_NOTIMPL;
  }
};

}  // namespace anydml::d3d12
