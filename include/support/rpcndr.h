// DirectX-Headers includes this by its bare name, which is found only where wsl/stubs is on the path.
#ifndef ANYDML_SUPPORT_RPCNDR_H_WRAPPER_
#define ANYDML_SUPPORT_RPCNDR_H_WRAPPER_
#pragma GCC system_header
#include <anydml_support/base_types.h>
#if __has_include_next(<rpcndr.h>)
#include_next <rpcndr.h>
#else
#include <wsl/stubs/rpcndr.h>
#endif
#endif  // ANYDML_SUPPORT_RPCNDR_H_WRAPPER_
