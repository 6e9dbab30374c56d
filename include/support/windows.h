// The part of windows.h that Direct3D programs use.
#ifndef ANYDML_SUPPORT_WINDOWS_H_WRAPPER_
#define ANYDML_SUPPORT_WINDOWS_H_WRAPPER_
#include <anydml_support/win32.h>
#endif  // ANYDML_SUPPORT_WINDOWS_H_WRAPPER_
