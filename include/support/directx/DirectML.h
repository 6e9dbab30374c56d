// Newer DirectX-Headers have their own DirectML.h under this name.
#ifndef ANYDML_SUPPORT_DIRECTX_UDIRECTUMUL_H_WRAPPER_
#define ANYDML_SUPPORT_DIRECTX_UDIRECTUMUL_H_WRAPPER_
#include <DirectML.h>
#endif  // ANYDML_SUPPORT_DIRECTX_UDIRECTUMUL_H_WRAPPER_
