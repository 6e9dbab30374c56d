// The part of windows.h that Direct3D programs use, on Linux.
#ifndef ANYDML_SUPPORT_WIN32_H_
#define ANYDML_SUPPORT_WIN32_H_

#include <anydml_support/win_types.h>

// Everything below declares functions with short global names. A program that
// brings its own versions of them defines ANYDML_NO_WIN32.
#if defined(__cplusplus) && !defined(ANYDML_NO_WIN32)
#include <anydml_support/win_error.h>
#include <anydml_support/win_events.h>
#include <anydml_support/win_misc.h>

// On Windows it comes with d3d12.h, through rpcndr.h.
typedef unsigned char byte;
#endif

#endif  // ANYDML_SUPPORT_WIN32_H_
