// Stands before <dxgiformat.h> of DirectX-Headers.
#ifndef ANYDML_SUPPORT_DXGIFORMAT_H_WRAPPER_
#define ANYDML_SUPPORT_DXGIFORMAT_H_WRAPPER_
#pragma GCC system_header
#include <anydml_support/win_types.h>
#include_next <directx/dxgiformat.h>
#endif  // ANYDML_SUPPORT_DXGIFORMAT_H_WRAPPER_
