// Direct3D 12 and DXCore of DirectX-Headers, made to behave as on Windows: one
// include, no required order, and __uuidof for every interface.
#ifndef ANYDML_SUPPORT_DIRECT3D_H_
#define ANYDML_SUPPORT_DIRECT3D_H_

#pragma GCC system_header

#include <anydml_support/win32.h>

// Programs pass &CD3DX12_RESOURCE_DESC::Buffer(size), which MSVC takes. clang would call it an error.
#ifdef __clang__
#pragma clang diagnostic ignored "-Waddress-of-temporary"
#endif

// Each is the real header where a program's own folders come first. Else it is
// the wrapper of that name, which leads here and adds nothing, and the real one
// is behind it on the path.
#include <directx/d3d12.h>
#ifndef __d3d12_h__
#include_next <directx/d3d12.h>
#endif
#include <directx/d3d12sdklayers.h>
#ifndef __d3d12sdklayers_h__
#include_next <directx/d3d12sdklayers.h>
#endif
#include <directx/dxcore.h>
#ifndef _DXCOREEXTMODULE_H_
#include_next <directx/dxcore.h>
#endif

#include <anydml_support/newer_names.h>

// dxguids.h covers the headers seen before it and can be included only once,
// so it comes after all of them.
#include <dxguids/dxguids.h>
#ifndef WINADAPTER_IID
#include_next <dxguids/dxguids.h>
#endif

#include <anydml_support/iid.h>

// d3dcommon.h declares ID3DBlob, but no release of dxguids.h lists it.
ANYDML_DEFINE_IID(ID3D10Blob, 0x8ba5fb08, 0x5195, 0x40e2, 0xac, 0x58, 0x0d, 0x98, 0x9c, 0x3a, 0x01, 0x02)
#define ANYDML_HAS_IID_ID3D10Blob ~,

#if D3D12_SDK_VERSION < 613
ANYDML_DEFINE_IID(IDXCoreAdapter1, 0xa0783366, 0xcfa3, 0x43be, 0x9d, 0x79, 0x55, 0xb2, 0xda, 0x97, 0xc6, 0x3c)
ANYDML_DEFINE_IID(IDXCoreAdapterFactory1, 0xd5682e19, 0x6d21, 0x401c, 0x82, 0x7a, 0x9a, 0x51, 0xa4, 0xea,
                  0x35, 0xd7)
#define ANYDML_HAS_IID_IDXCoreAdapter1 ~,
#define ANYDML_HAS_IID_IDXCoreAdapterFactory1 ~,
#endif

#endif  // ANYDML_SUPPORT_DIRECT3D_H_
