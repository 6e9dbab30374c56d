// GUIDs are always defined here, weakly (anydml_support/win_types.h), so there is
// nothing to switch on. Programs include this on Windows to get the definitions.
#ifndef ANYDML_SUPPORT_INITGUID_H_
#define ANYDML_SUPPORT_INITGUID_H_

#include <anydml_support/win_types.h>

#endif  // ANYDML_SUPPORT_INITGUID_H_
