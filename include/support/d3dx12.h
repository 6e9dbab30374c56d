// Stands before <d3dx12.h> of DirectX-Headers, which includes d3d12.h from its
// own directory and would miss the wrapper.
#ifndef ANYDML_SUPPORT_D3DX12_H_WRAPPER_
#define ANYDML_SUPPORT_D3DX12_H_WRAPPER_
#pragma GCC system_header
#include <anydml_support/direct3d.h>
#include_next <directx/d3dx12.h>
#endif  // ANYDML_SUPPORT_D3DX12_H_WRAPPER_
