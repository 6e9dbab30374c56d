// GUID and DEFINE_GUID, which winadapter declares.
#ifndef ANYDML_SUPPORT_GUIDDEF_H_WRAPPER_
#define ANYDML_SUPPORT_GUIDDEF_H_WRAPPER_
#include <anydml_support/win_types.h>
#endif  // ANYDML_SUPPORT_GUIDDEF_H_WRAPPER_
