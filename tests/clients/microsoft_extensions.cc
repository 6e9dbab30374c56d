// Code for MSVC that clang accepts with -fms-extensions: classes with their IID in __declspec(uuid), and
// STDMETHOD as a promise not to throw.
#include <DirectML.h>
#include <wrl/client.h>
#include <wrl/implements.h>

class __declspec(uuid("9bd5c6b6-1c3d-4d57-b2a0-9f5a5f1d6a01")) IKernel : public IUnknown {
 public:
  virtual HRESULT STDMETHODCALLTYPE Compute(IUnknown* context) noexcept = 0;
  STDMETHOD(Prepare)() PURE;
};

interface DECLSPEC_UUID("9bd5c6b6-1c3d-4d57-b2a0-9f5a5f1d6a02") DECLSPEC_NOVTABLE IFactory : IUnknown {
  STDMETHOD(CreateKernel)(IKernel** kernel) const noexcept PURE;
};

class Kernel : public Microsoft::WRL::Base<IKernel> {
 public:
  // Overrides a function that does not throw.
  STDMETHOD(Compute)(IUnknown* context) override { return context == nullptr ? E_POINTER : S_OK; }
  STDMETHOD(Prepare)() override;
};

STDMETHODIMP Kernel::Prepare() noexcept { return S_OK; }

constexpr bool HasIid(const GUID& iid) { return iid.Data1 == 0x9bd5c6b6 && iid.Data4[7] == 0x01; }
static_assert(HasIid(__uuidof(IKernel)), "");
static_assert(HasIid(__uuidof(IKernel*)), "");
static_assert(__uuidof(IFactory).Data4[7] == 0x02, "");
// In addition, IIDs declared in the usual way.
static_assert(__uuidof(IDMLDevice1).Data1 == 0xa0884f9a, "");

HRESULT Query(IUnknown* object) {
  Microsoft::WRL::ComPtr<IUnknown> unknown(object);
  Microsoft::WRL::ComPtr<IKernel> kernel;
  const HRESULT hr = unknown.As(&kernel);
  return FAILED(hr) ? object->QueryInterface(IID_PPV_ARGS(&kernel)) : kernel->Compute(object);
}
