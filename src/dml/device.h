// IDMLDevice1: a factory over one Direct3D device and one feature level.
#pragma once

#include "dml/debug_device.h"
#include "dml/object.h"
#include "ops/operator.h"

namespace anydml::dml {

class Device final : public DmlObject<IDMLDevice1, IDMLDevice> {
 public:
  Device(ID3D12Device* d3d, std::shared_ptr<DeviceState> state);

  HRESULT STDMETHODCALLTYPE CheckFeatureSupport(DML_FEATURE feature, UINT query_size, const void* query,
                                                UINT support_size, void* support) override;
  HRESULT STDMETHODCALLTYPE CreateOperator(const DML_OPERATOR_DESC* desc, REFIID riid, void** ppv) override;
  HRESULT STDMETHODCALLTYPE CompileOperator(IDMLOperator* op, DML_EXECUTION_FLAGS flags, REFIID riid,
                                            void** ppv) override;
  HRESULT STDMETHODCALLTYPE CreateOperatorInitializer(UINT count, IDMLCompiledOperator* const* operators,
                                                      REFIID riid, void** ppv) override;
  HRESULT STDMETHODCALLTYPE CreateCommandRecorder(REFIID riid, void** ppv) override;
  HRESULT STDMETHODCALLTYPE CreateBindingTable(const DML_BINDING_TABLE_DESC* desc, REFIID riid,
                                               void** ppv) override;
  HRESULT STDMETHODCALLTYPE Evict(UINT count, IDMLPageable* const* objects) override;
  HRESULT STDMETHODCALLTYPE MakeResident(UINT count, IDMLPageable* const* objects) override;
  HRESULT STDMETHODCALLTYPE GetDeviceRemovedReason() override;
  HRESULT STDMETHODCALLTYPE GetParentDevice(REFIID riid, void** ppv) override;
  HRESULT STDMETHODCALLTYPE CompileGraph(const DML_GRAPH_DESC* desc, DML_EXECUTION_FLAGS flags, REFIID riid,
                                         void** ppv) override;

  HRESULT Fail(const Status& status) const noexcept { return state().Fail(status); }
  UINT descriptor_increment() const { return descriptor_increment_; }

 protected:
  void* QueryOther(REFIID iid) override;

 private:
  template <typename Body>
  HRESULT Create(const char* method, bool ppv_required, void** ppv, Body&& body);
  LowerContext ContextFor(DML_EXECUTION_FLAGS flags) const;
  HRESULT ChangeResidency(const char* method, UINT count, IDMLPageable* const* objects, bool resident);

  const ComPtr<ID3D12Device> d3d_;
  const UINT descriptor_increment_;
  DebugDevice debug_device_;
};

}  // namespace anydml::dml
