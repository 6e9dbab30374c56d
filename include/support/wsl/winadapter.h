// Stands before <wsl/winadapter.h> of DirectX-Headers and adds what it lacks.
#ifndef ANYDML_SUPPORT_WSL_WINADAPTER_H_WRAPPER_
#define ANYDML_SUPPORT_WSL_WINADAPTER_H_WRAPPER_
#include <anydml_support/win32.h>
#endif  // ANYDML_SUPPORT_WSL_WINADAPTER_H_WRAPPER_
