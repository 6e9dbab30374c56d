// From here on DEFINE_GUID defines instead of declaring. Weak, so that several
// translation units may do it, as on Windows.
#ifndef ANYDML_SUPPORT_INITGUID_H_
#define ANYDML_SUPPORT_INITGUID_H_

// First, because winadapter sets DEFINE_GUID.
#include <anydml_support/win_types.h>

#ifndef INITGUID
#define INITGUID
#undef DEFINE_GUID
#define DEFINE_GUID(name, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8) \
  EXTERN_C __attribute__((weak)) const GUID name = {                 \
      l, w1, w2, {b1, b2, b3, b4, b5, b6, b7, b8}}
#endif

#endif  // ANYDML_SUPPORT_INITGUID_H_
