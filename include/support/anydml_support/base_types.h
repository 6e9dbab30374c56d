// DirectX-Headers' <basetsd.h>, whose LARGE_INTEGER lacks the members without `u`. Stands before each of its
// headers that includes that one; where a program's own folders come first, LARGE_INTEGER stays as it is.
#ifndef ANYDML_SUPPORT_BASE_TYPES_H_
#define ANYDML_SUPPORT_BASE_TYPES_H_
#pragma GCC system_header

#ifndef RPC_NO_WINDOWS_H  // of <basetsd.h>, or a program's own
#define ANYDML_SUPPORT_LARGE_INTEGER_
#define _LARGE_INTEGER AnyDmlStubLargeIntegerUnion
#define LARGE_INTEGER AnyDmlStubLargeInteger
#define PLARGE_INTEGER AnyDmlStubLargeIntegerPointer
#endif

#if __has_include_next(<basetsd.h>)
#include_next <basetsd.h>
#else
#include <wsl/stubs/basetsd.h>
#endif

#ifdef ANYDML_SUPPORT_LARGE_INTEGER_
#undef ANYDML_SUPPORT_LARGE_INTEGER_
#undef _LARGE_INTEGER
#undef LARGE_INTEGER
#undef PLARGE_INTEGER
typedef union _LARGE_INTEGER {
  struct {
    DWORD LowPart;
    LONG HighPart;
  };
  struct {
    DWORD LowPart;
    LONG HighPart;
  } u;
  LONGLONG QuadPart;
} LARGE_INTEGER;
typedef LARGE_INTEGER* PLARGE_INTEGER;
#endif

#endif  // ANYDML_SUPPORT_BASE_TYPES_H_
