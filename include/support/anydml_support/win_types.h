// The Windows vocabulary that DirectX-Headers' winadapter leaves out: SAL
// annotations, HRESULTs, Win32 error codes and small macros.
#ifndef ANYDML_SUPPORT_WIN_TYPES_H_
#define ANYDML_SUPPORT_WIN_TYPES_H_

// Silences pedantic complaints about #include_next here and about the headers
// of DirectX-Headers, which programs cannot change.
#pragma GCC system_header

#include <anydml_support/base_types.h>

// include/support/wsl/winadapter.h leads here. The real one is behind it on the path, or before it where a
// program's own folders come first.
#if __has_include_next(<wsl/winadapter.h>)
#include_next <wsl/winadapter.h>
#else
#include <wsl/winadapter.h>
#endif

// What windows.h brings in by the way.
#include <float.h>

// DEFINE_GUID only declares, leaving the definitions to a static library
// (libDirectX-Guids) that programs would have to link. Weak definitions make
// every IID usable from the headers alone, and give way to that library's or to
// those of a translation unit that defines INITGUID.
#if defined(__cplusplus) && !defined(INITGUID)
#undef DEFINE_GUID
#define DEFINE_GUID(name, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8) \
  EXTERN_C __attribute__((weak)) const GUID name = {l, w1, w2, {b1, b2, b3, b4, b5, b6, b7, b8}}
// winadapter has declared this one already.
DEFINE_GUID(IID_IUnknown, 0x00000000, 0x0000, 0x0000, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x46);
#endif

// winadapter's __uuidof knows the interfaces that something was declared for. Those of a program's own may
// carry __declspec(uuid(...)) instead, where clang has -fms-extensions; its keyword of that name knows them.
#if defined(__cplusplus) && defined(__is_identifier)
#pragma push_macro("__uuidof")
#undef __uuidof
#if !__is_identifier(__uuidof)
extern "C++" {
template <typename T>
#if __wsl_stub_uuidof_use_constexpr
constexpr
#endif
    const GUID&
    __wsl_stub_uuidof() {
  return __uuidof(T);
}
}
#endif
#pragma pop_macro("__uuidof")
#endif

// As on Windows, interfaces carry their IID, and what STDMETHOD declares does not throw and may override a
// function that says noexcept. Only __declspec does that, and only clang has it, under -fms-extensions.
#if defined(__cplusplus) && !defined(CINTERFACE) && defined(__has_declspec_attribute)
#if __has_declspec_attribute(nothrow)
#undef DECLSPEC_UUID
#define DECLSPEC_UUID(iid) __declspec(uuid(iid))
#undef STDMETHOD
#undef STDMETHOD_
#define STDMETHOD(method) virtual __declspec(nothrow) HRESULT STDMETHODCALLTYPE method
#define STDMETHOD_(type, method) virtual __declspec(nothrow) type STDMETHODCALLTYPE method
#endif
#endif

// -----------------------------------------------------------------------------
// SAL annotations
// -----------------------------------------------------------------------------

#ifndef _Inexpressible_
#define _Inexpressible_(x)
#endif
#ifndef _In_reads_z_
#define _In_reads_z_(x)
#endif
#ifndef _In_reads_or_z_
#define _In_reads_or_z_(x)
#endif
#ifndef _Inout_updates_opt_
#define _Inout_updates_opt_(x)
#endif
#ifndef _Inout_updates_all_
#define _Inout_updates_all_(x)
#endif
#ifndef _Out_writes_to_
#define _Out_writes_to_(x, y)
#endif
#ifndef _Out_writes_bytes_to_
#define _Out_writes_bytes_to_(x, y)
#endif
#ifndef _Out_writes_bytes_to_opt_
#define _Out_writes_bytes_to_opt_(x, y)
#endif
#ifndef _Outptr_opt_
#define _Outptr_opt_
#endif
#ifndef _Outptr_result_bytebuffer_
#define _Outptr_result_bytebuffer_(x)
#endif
#ifndef _Ret_maybenull_
#define _Ret_maybenull_
#endif
#ifndef _Ret_notnull_
#define _Ret_notnull_
#endif
#ifndef _Must_inspect_result_
#define _Must_inspect_result_
#endif
#ifndef _Pre_satisfies_
#define _Pre_satisfies_(x)
#endif
#ifndef _Post_satisfies_
#define _Post_satisfies_(x)
#endif
#ifndef _When_
#define _When_(x, y)
#endif
#ifndef _Frees_ptr_opt_
#define _Frees_ptr_opt_
#endif
#ifndef _Printf_format_string_
#define _Printf_format_string_
#endif

// -----------------------------------------------------------------------------
// Types and macros
// -----------------------------------------------------------------------------

// Only types that winadapter never declares may be added here: a typedef cannot
// be tested for.
typedef BOOL* PBOOL;
typedef BOOL* LPBOOL;
typedef DWORD* PDWORD;
typedef DWORD* LPDWORD;
typedef BYTE* PBYTE;
typedef BYTE* LPBYTE;
typedef HANDLE* PHANDLE;
typedef UINT* PUINT;
typedef uint64_t DWORD64;
typedef uint64_t DWORDLONG;
typedef uintptr_t DWORD_PTR;
typedef HANDLE HGLOBAL;
typedef void* HMODULE;
typedef void* HINSTANCE;
typedef void* HMONITOR;
typedef int (*FARPROC)();
typedef SECURITY_ATTRIBUTES* LPSECURITY_ATTRIBUTES;

#ifndef ARRAYSIZE
#define ARRAYSIZE(a) (sizeof(a) / sizeof((a)[0]))
#endif
#ifndef CALLBACK
#define CALLBACK
#endif
#ifndef __fallthrough
#define __fallthrough __attribute__((fallthrough))
#endif
#ifndef FORCEINLINE
#define FORCEINLINE inline __attribute__((always_inline))
#endif
#ifndef DECLSPEC_ALIGN
#define DECLSPEC_ALIGN(x) __attribute__((aligned(x)))
#endif
#ifndef STDAPI_
#define STDAPI_(type) EXTERN_C type STDAPICALLTYPE
#endif
#ifndef STDMETHODIMP
#define STDMETHODIMP HRESULT STDMETHODCALLTYPE
#endif
#ifndef STDMETHODIMP_
#define STDMETHODIMP_(type) type STDMETHODCALLTYPE
#endif
#ifndef IFACEMETHODIMP
#define IFACEMETHODIMP STDMETHODIMP
#endif
#ifndef IFACEMETHODIMP_
#define IFACEMETHODIMP_(type) STDMETHODIMP_(type)
#endif
#ifndef TEXT
#define TEXT(x) x
#endif
#ifndef MAXDWORD
#define MAXDWORD 0xffffffffu
#endif

// winadapter's version is a bare expression, which -Wunused-value rejects.
#undef UNREFERENCED_PARAMETER
#define UNREFERENCED_PARAMETER(P) ((void)(P))

#ifndef ZeroMemory
#define ZeroMemory(destination, length) memset((destination), 0, (length))
#endif
#ifndef FillMemory
#define FillMemory(destination, length, fill) memset((destination), (fill), (length))
#endif
#ifndef CopyMemory
#define CopyMemory(destination, source, length) memcpy((destination), (source), (length))
#endif
#ifndef MoveMemory
#define MoveMemory(destination, source, length) memmove((destination), (source), (length))
#endif
#ifndef SecureZeroMemory
#define SecureZeroMemory(destination, length) explicit_bzero((destination), (length))
#endif

#ifdef __cplusplus
inline bool IsEqualGUID(REFGUID a, REFGUID b) { return memcmp(&a, &b, sizeof(GUID)) == 0; }
inline bool IsEqualIID(REFIID a, REFIID b) { return IsEqualGUID(a, b); }
#endif

// -----------------------------------------------------------------------------
// Win32 error codes and HRESULTs
// -----------------------------------------------------------------------------

#ifndef NO_ERROR
#define NO_ERROR 0u
#endif
#ifndef ERROR_SUCCESS
#define ERROR_SUCCESS 0u
#define ERROR_INVALID_FUNCTION 1u
#define ERROR_FILE_NOT_FOUND 2u
#define ERROR_PATH_NOT_FOUND 3u
#define ERROR_TOO_MANY_OPEN_FILES 4u
#define ERROR_ACCESS_DENIED 5u
#define ERROR_INVALID_HANDLE 6u
#define ERROR_NOT_ENOUGH_MEMORY 8u
#define ERROR_INVALID_DATA 13u
#define ERROR_OUTOFMEMORY 14u
#define ERROR_NOT_READY 21u
#define ERROR_GEN_FAILURE 31u
#define ERROR_NOT_SUPPORTED 50u
#define ERROR_INVALID_PARAMETER 87u
#define ERROR_INSUFFICIENT_BUFFER 122u
#define ERROR_MOD_NOT_FOUND 126u
#define ERROR_PROC_NOT_FOUND 127u
#define ERROR_ALREADY_EXISTS 183u
#define ERROR_MORE_DATA 234u
#define ERROR_TIMEOUT 1460u
#endif
// One by one: programs define those that they miss.
#ifndef ERROR_NO_UNICODE_TRANSLATION
#define ERROR_NO_UNICODE_TRANSLATION 1113u
#endif
#ifndef ERROR_NOT_FOUND
#define ERROR_NOT_FOUND 1168u
#endif
#ifndef ERROR_CANCELLED
#define ERROR_CANCELLED 1223u
#endif
#ifndef ERROR_INTERNAL_ERROR
#define ERROR_INTERNAL_ERROR 1359u
#endif
#ifndef ERROR_FILE_CORRUPT
#define ERROR_FILE_CORRUPT 1392u
#endif
#ifndef ERROR_GRAPHICS_INVALID_DISPLAY_ADAPTER
#define ERROR_GRAPHICS_INVALID_DISPLAY_ADAPTER ((HRESULT)0xC0262002L)
#endif

#ifndef SEVERITY_SUCCESS
#define SEVERITY_SUCCESS 0
#define SEVERITY_ERROR 1
#endif
#ifndef FACILITY_NULL
#define FACILITY_NULL 0
#define FACILITY_ITF 4
#define FACILITY_WIN32 7
#endif
#ifndef HRESULT_CODE
#define HRESULT_CODE(hr) ((hr)&0xffff)
#define HRESULT_FACILITY(hr) (((hr) >> 16) & 0x1fff)
#define HRESULT_SEVERITY(hr) (((hr) >> 31) & 1)
#endif
#ifndef LOWORD
#define LOWORD(number) ((WORD)((uint64_t)(number)&0xffff))
#define HIWORD(number) ((WORD)((uint64_t)(number) >> 16 & 0xffff))
#endif
#ifndef MAKE_HRESULT
#define MAKE_HRESULT(severity, facility, code) \
  ((HRESULT)(((uint32_t)(severity) << 31) | ((uint32_t)(facility) << 16) | (uint32_t)(code)))
#endif

#if defined(__cplusplus) && !defined(HRESULT_FROM_WIN32)
// A function, because a macro would evaluate its argument twice. The macro
// below only marks the name as taken.
constexpr HRESULT HRESULT_FROM_WIN32(uint32_t error) {
  return static_cast<int32_t>(error) <= 0 ? static_cast<HRESULT>(error)
                                          : MAKE_HRESULT(SEVERITY_ERROR, FACILITY_WIN32, error & 0xffffu);
}
#define HRESULT_FROM_WIN32 HRESULT_FROM_WIN32
#endif

#ifndef E_BOUNDS
#define E_BOUNDS ((HRESULT)0x8000000BL)
#endif
#ifndef E_PENDING
#define E_PENDING ((HRESULT)0x8000000AL)
#endif
#ifndef E_NOT_SUFFICIENT_BUFFER
#define E_NOT_SUFFICIENT_BUFFER ((HRESULT)0x8007007AL)
#endif
#ifndef E_NOT_VALID_STATE
#define E_NOT_VALID_STATE ((HRESULT)0x8007139FL)
#endif
#ifndef E_NOT_SET
#define E_NOT_SET ((HRESULT)0x80070490L)
#endif
#ifndef REGDB_E_CLASSNOTREG
#define REGDB_E_CLASSNOTREG ((HRESULT)0x80040154L)
#endif
#ifndef CLASS_E_NOAGGREGATION
#define CLASS_E_NOAGGREGATION ((HRESULT)0x80040110L)
#endif

#ifndef DXGI_STATUS_OCCLUDED
#define DXGI_STATUS_OCCLUDED ((HRESULT)0x087A0001L)
#endif
#ifndef DXGI_ERROR_WAS_STILL_DRAWING
#define DXGI_ERROR_WAS_STILL_DRAWING ((HRESULT)0x887A000AL)
#endif
#ifndef DXGI_ERROR_NOT_CURRENTLY_AVAILABLE
#define DXGI_ERROR_NOT_CURRENTLY_AVAILABLE ((HRESULT)0x887A0022L)
#endif
#ifndef DXGI_ERROR_ACCESS_LOST
#define DXGI_ERROR_ACCESS_LOST ((HRESULT)0x887A0026L)
#endif
#ifndef DXGI_ERROR_WAIT_TIMEOUT
#define DXGI_ERROR_WAIT_TIMEOUT ((HRESULT)0x887A0027L)
#endif
#ifndef DXGI_ERROR_ACCESS_DENIED
#define DXGI_ERROR_ACCESS_DENIED ((HRESULT)0x887A002BL)
#endif
#ifndef DXGI_ERROR_NAME_ALREADY_EXISTS
#define DXGI_ERROR_NAME_ALREADY_EXISTS ((HRESULT)0x887A002CL)
#endif
#ifndef DXGI_ERROR_SDK_COMPONENT_MISSING
#define DXGI_ERROR_SDK_COMPONENT_MISSING ((HRESULT)0x887A002DL)
#endif
#ifndef DXGI_ERROR_NOT_CURRENT
#define DXGI_ERROR_NOT_CURRENT ((HRESULT)0x887A002EL)
#endif
#ifndef DXGI_ERROR_ALREADY_EXISTS
#define DXGI_ERROR_ALREADY_EXISTS ((HRESULT)0x887A0036L)
#endif
#ifndef D3D12_ERROR_ADAPTER_NOT_FOUND
#define D3D12_ERROR_ADAPTER_NOT_FOUND ((HRESULT)0x887E0001L)
#endif
#ifndef D3D12_ERROR_DRIVER_VERSION_MISMATCH
#define D3D12_ERROR_DRIVER_VERSION_MISMATCH ((HRESULT)0x887E0002L)
#endif

#endif  // ANYDML_SUPPORT_WIN_TYPES_H_
