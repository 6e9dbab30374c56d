// Stands before <wsl/wrladapter.h> of DirectX-Headers, which includes <wsl/winadapter.h> from its own folder.
#ifndef ANYDML_SUPPORT_WSL_WRLADAPTER_H_WRAPPER_
#define ANYDML_SUPPORT_WSL_WRLADAPTER_H_WRAPPER_
#pragma GCC system_header
#include <wsl/winadapter.h>
#include_next <wsl/wrladapter.h>
#endif  // ANYDML_SUPPORT_WSL_WRLADAPTER_H_WRAPPER_
