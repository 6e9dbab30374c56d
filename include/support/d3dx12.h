// By its bare name.
#ifndef ANYDML_SUPPORT_D3DX12_H_WRAPPER_
#define ANYDML_SUPPORT_D3DX12_H_WRAPPER_
#include <anydml_support/direct3d.h>
#include <directx/d3dx12.h>
#endif  // ANYDML_SUPPORT_D3DX12_H_WRAPPER_
