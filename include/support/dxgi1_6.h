// All versions of DXGI are one header here; see anydml_support/dxgi.h.
#ifndef ANYDML_SUPPORT_DXGI1_6_H_WRAPPER_
#define ANYDML_SUPPORT_DXGI1_6_H_WRAPPER_
#include <anydml_support/dxgi.h>
#endif  // ANYDML_SUPPORT_DXGI1_6_H_WRAPPER_
