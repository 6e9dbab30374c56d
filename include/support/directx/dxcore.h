// Stands before <directx/dxcore.h> of DirectX-Headers;
// anydml_support/direct3d.h gives the reasons.
#ifndef ANYDML_SUPPORT_DIRECTX_DXCORE_H_WRAPPER_
#define ANYDML_SUPPORT_DIRECTX_DXCORE_H_WRAPPER_
#include <anydml_support/direct3d.h>
#endif  // ANYDML_SUPPORT_DIRECTX_DXCORE_H_WRAPPER_
