// The same header under its other spelling.
#ifndef ANYDML_SUPPORT_UWINDOWS_H_WRAPPER_
#define ANYDML_SUPPORT_UWINDOWS_H_WRAPPER_
#include <windows.h>
#endif  // ANYDML_SUPPORT_UWINDOWS_H_WRAPPER_
