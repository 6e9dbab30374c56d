// DirectX-Headers includes this by its bare name, which is found only where wsl/stubs is on the path.
#ifndef ANYDML_SUPPORT_UNKNWNBASE_H_WRAPPER_
#define ANYDML_SUPPORT_UNKNWNBASE_H_WRAPPER_
#pragma GCC system_header
#include <anydml_support/base_types.h>
#if __has_include_next(<unknwnbase.h>)
#include_next <unknwnbase.h>
#else
#include <wsl/stubs/unknwnbase.h>
#endif
#endif  // ANYDML_SUPPORT_UNKNWNBASE_H_WRAPPER_
