// Stands before <directx/d3d12.h> of DirectX-Headers;
// anydml_support/direct3d.h gives the reasons.
#ifndef ANYDML_SUPPORT_DIRECTX_D3D12_H_WRAPPER_
#define ANYDML_SUPPORT_DIRECTX_D3D12_H_WRAPPER_
#include <anydml_support/direct3d.h>
#endif  // ANYDML_SUPPORT_DIRECTX_D3D12_H_WRAPPER_
