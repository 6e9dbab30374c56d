// The DXGI debug interface; libdxgi.so offers none, so asking for it fails.
#ifndef ANYDML_SUPPORT_DXGIDEBUG_H_
#define ANYDML_SUPPORT_DXGIDEBUG_H_

#include <anydml_support/dxgi.h>

typedef GUID DXGI_DEBUG_ID;

enum DXGI_DEBUG_RLO_FLAGS {
  DXGI_DEBUG_RLO_SUMMARY = 0x1,
  DXGI_DEBUG_RLO_DETAIL = 0x2,
  DXGI_DEBUG_RLO_IGNORE_INTERNAL = 0x4,
  DXGI_DEBUG_RLO_ALL = 0x7,
};

interface DECLSPEC_UUID("119e7452-de9e-40fe-8806-88f90c12b441") DECLSPEC_NOVTABLE IDXGIDebug : IUnknown {
  STDMETHOD(ReportLiveObjects)(GUID apiid, DXGI_DEBUG_RLO_FLAGS flags) PURE;
};

ANYDML_DEFINE_IID(IDXGIDebug, 0x119e7452, 0xde9e, 0x40fe, 0x88, 0x06, 0x88, 0xf9, 0x0c, 0x12, 0xb4, 0x41)
#define ANYDML_HAS_IID_IDXGIDebug ~,

#endif  // ANYDML_SUPPORT_DXGIDEBUG_H_
