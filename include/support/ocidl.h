// DirectX-Headers includes this by its bare name, which is found only where wsl/stubs is on the path.
#ifndef ANYDML_SUPPORT_OCIDL_H_WRAPPER_
#define ANYDML_SUPPORT_OCIDL_H_WRAPPER_
#pragma GCC system_header
#if __has_include_next(<ocidl.h>)
#include_next <ocidl.h>
#else
#include <wsl/stubs/ocidl.h>
#endif
#endif  // ANYDML_SUPPORT_OCIDL_H_WRAPPER_
