// By its bare name.
#ifndef ANYDML_SUPPORT_DXGIFORMAT_H_WRAPPER_
#define ANYDML_SUPPORT_DXGIFORMAT_H_WRAPPER_
#pragma GCC system_header
#include <anydml_support/win_types.h>
#include <directx/dxgiformat.h>
#endif  // ANYDML_SUPPORT_DXGIFORMAT_H_WRAPPER_
