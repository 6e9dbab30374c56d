// DirectX-Headers includes this by its bare name, which is found only where wsl/stubs is on the path.
#ifndef ANYDML_SUPPORT_OAIDL_H_WRAPPER_
#define ANYDML_SUPPORT_OAIDL_H_WRAPPER_
#pragma GCC system_header
#if __has_include_next(<oaidl.h>)
#include_next <oaidl.h>
#else
#include <wsl/stubs/oaidl.h>
#endif
#endif  // ANYDML_SUPPORT_OAIDL_H_WRAPPER_
