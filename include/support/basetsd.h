// DirectX-Headers includes this by its bare name, which is found only where wsl/stubs is on the path.
#ifndef ANYDML_SUPPORT_BASETSD_H_WRAPPER_
#define ANYDML_SUPPORT_BASETSD_H_WRAPPER_
#include <anydml_support/base_types.h>
#endif  // ANYDML_SUPPORT_BASETSD_H_WRAPPER_
