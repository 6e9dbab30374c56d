// Debug output, clocks, strings and dynamic libraries under their Win32 names.
#ifndef ANYDML_SUPPORT_WIN_MISC_H_
#define ANYDML_SUPPORT_WIN_MISC_H_

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <string>

#include <anydml_support/win_error.h>

#ifndef CP_ACP
#define CP_ACP 0u
#endif
#ifndef CP_UTF8
#define CP_UTF8 65001u
#endif
#ifndef MB_ERR_INVALID_CHARS
#define MB_ERR_INVALID_CHARS 0x8u
#define WC_ERR_INVALID_CHARS 0x80u
#endif
#ifndef MEM_COMMIT
#define MEM_COMMIT 0x1000u
#define MEM_RESERVE 0x2000u
#define MEM_RELEASE 0x8000u
#define PAGE_READWRITE 0x4u
#endif
#ifndef LOAD_LIBRARY_SEARCH_DEFAULT_DIRS
#define LOAD_LIBRARY_SEARCH_SYSTEM32 0x800u
#define LOAD_LIBRARY_SEARCH_DEFAULT_DIRS 0x1000u
#endif

// -----------------------------------------------------------------------------
// UTF-8 and wchar_t (UTF-32 here; UTF-16 only on Windows)
// -----------------------------------------------------------------------------

namespace anydml_support {

inline std::string ToUtf8(const wchar_t* text, size_t length) {
  std::string out;
  for (size_t i = 0; i < length; ++i) {
    uint32_t c = static_cast<uint32_t>(text[i]);
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
    if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (c < 0x800) {
      out += static_cast<char>(0xc0 | c >> 6);
      out += static_cast<char>(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
      out += static_cast<char>(0xe0 | c >> 12);
      out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
      out += static_cast<char>(0x80 | (c & 0x3f));
    } else {
      out += static_cast<char>(0xf0 | c >> 18);
      out += static_cast<char>(0x80 | (c >> 12 & 0x3f));
      out += static_cast<char>(0x80 | (c >> 6 & 0x3f));
      out += static_cast<char>(0x80 | (c & 0x3f));
    }
  }
  return out;
}

inline std::string ToUtf8(const wchar_t* text) {
  size_t length = 0;
  while (text[length] != 0) ++length;
  return ToUtf8(text, length);
}

// Bytes that are no UTF-8 become U+FFFD.
inline std::wstring FromUtf8(const char* text, size_t length) {
  std::wstring out;
  for (size_t i = 0; i < length;) {
    const uint32_t lead = static_cast<unsigned char>(text[i++]);
    const int extra = lead < 0x80             ? 0
                      : (lead & 0xe0) == 0xc0 ? 1
                      : (lead & 0xf0) == 0xe0 ? 2
                      : (lead & 0xf8) == 0xf0 ? 3
                                              : -1;
    static const uint32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};
    uint32_t c = extra <= 0 ? lead : lead & (0x3fu >> extra);
    int seen = 0;
    for (; seen < extra && i < length; ++seen, ++i) {
      const uint32_t next = static_cast<unsigned char>(text[i]);
      if ((next & 0xc0) != 0x80) break;
      c = c << 6 | (next & 0x3f);
    }
    const bool valid =
        extra >= 0 && seen == extra && c >= kSmallest[extra] && c <= 0x10ffff && !(c >= 0xd800 && c < 0xe000);
    out += valid ? static_cast<wchar_t>(c) : static_cast<wchar_t>(0xfffd);
  }
  return out;
}

}  // namespace anydml_support

// Every code page is taken for UTF-8, the encoding of Linux. A length of -1
// means a terminated string and counts its terminator; a size of 0 asks for the
// size that is needed.
inline int MultiByteToWideChar(UINT /*code_page*/, DWORD /*flags*/, const char* text, int length,
                               wchar_t* out, int out_size) {
  using namespace anydml_support;
  if (text == nullptr || length == 0 || length < -1 || out_size < 0) {
    return FailWith(ERROR_INVALID_PARAMETER, 0);
  }
  const size_t bytes = length < 0 ? strlen(text) + 1 : size_t(length);
  const std::wstring wide = FromUtf8(text, bytes);
  if (out_size == 0) return static_cast<int>(wide.size());
  if (static_cast<size_t>(out_size) < wide.size()) {
    return FailWith(ERROR_INSUFFICIENT_BUFFER, 0);
  }
  memcpy(out, wide.data(), wide.size() * sizeof(wchar_t));
  return static_cast<int>(wide.size());
}

inline int WideCharToMultiByte(UINT /*code_page*/, DWORD /*flags*/, const wchar_t* text, int length,
                               char* out, int out_size, const char* /*default_char*/,
                               BOOL* used_default_char) {
  using namespace anydml_support;
  if (text == nullptr || length == 0 || length < -1 || out_size < 0) {
    return FailWith(ERROR_INVALID_PARAMETER, 0);
  }
  const std::string narrow = length < 0 ? ToUtf8(text) + '\0' : ToUtf8(text, size_t(length));
  if (used_default_char != nullptr) *used_default_char = FALSE;
  if (out_size == 0) return static_cast<int>(narrow.size());
  if (static_cast<size_t>(out_size) < narrow.size()) {
    return FailWith(ERROR_INSUFFICIENT_BUFFER, 0);
  }
  memcpy(out, narrow.data(), narrow.size());
  return static_cast<int>(narrow.size());
}

// -----------------------------------------------------------------------------
// Debug output
// -----------------------------------------------------------------------------

inline void OutputDebugStringA(const char* text) {
  if (text != nullptr) fputs(text, stderr);
}
inline void OutputDebugStringW(const wchar_t* text) {
  if (text != nullptr) {
    OutputDebugStringA(anydml_support::ToUtf8(text).c_str());
  }
}
inline void OutputDebugString(const char* text) { OutputDebugStringA(text); }
inline void OutputDebugString(const wchar_t* text) { OutputDebugStringW(text); }
inline BOOL IsDebuggerPresent() { return FALSE; }

// -----------------------------------------------------------------------------
// Clocks, threads, processes
// -----------------------------------------------------------------------------

// Nanoseconds of CLOCK_MONOTONIC, which std::chrono::steady_clock uses too.
inline BOOL QueryPerformanceCounter(LARGE_INTEGER* counter) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  counter->QuadPart = int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
  return TRUE;
}
inline BOOL QueryPerformanceFrequency(LARGE_INTEGER* frequency) {
  frequency->QuadPart = 1000000000;
  return TRUE;
}
inline ULONGLONG GetTickCount64() {
  LARGE_INTEGER now;
  QueryPerformanceCounter(&now);
  return static_cast<ULONGLONG>(now.QuadPart) / 1000000;
}
inline void Sleep(DWORD milliseconds) {
  timespec left = {static_cast<time_t>(milliseconds / 1000),
                   static_cast<long>(milliseconds % 1000) * 1000000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}
inline DWORD GetCurrentProcessId() { return static_cast<DWORD>(getpid()); }
inline DWORD GetCurrentThreadId() { return static_cast<DWORD>(syscall(SYS_gettid)); }

// -----------------------------------------------------------------------------
// Memory
// -----------------------------------------------------------------------------

// winadapter's HeapAlloc macro ignores the heap that d3dx12.h passes.
inline HANDLE GetProcessHeap() { return nullptr; }

// Only what programs use it for: zeroed, page-aligned memory of the system's
// choosing. VirtualFree gets no size, hence not mmap.
inline void* VirtualAlloc(void* address, size_t size, DWORD type, DWORD protection) {
  using namespace anydml_support;
  if (address != nullptr || type != (MEM_COMMIT | MEM_RESERVE) || protection != PAGE_READWRITE || size == 0) {
    return FailWith(ERROR_INVALID_PARAMETER, static_cast<void*>(nullptr));
  }
  void* memory = nullptr;
  if (posix_memalign(&memory, 4096, size) != 0) {
    return FailWith(ERROR_NOT_ENOUGH_MEMORY, static_cast<void*>(nullptr));
  }
  return memset(memory, 0, size);
}
inline BOOL VirtualFree(void* address, size_t size, DWORD type) {
  if (size != 0 || type != MEM_RELEASE) {
    return anydml_support::FailWith(ERROR_INVALID_PARAMETER, FALSE);
  }
  free(address);
  return TRUE;
}

// -----------------------------------------------------------------------------
// Dynamic libraries
// -----------------------------------------------------------------------------

namespace anydml_support {

// "C:\\x\\DirectML.dll" -> "libdirectml.so".
inline std::string SharedObjectName(const char* dll) {
  std::string name = dll;
  const size_t slash = name.find_last_of("/\\");
  if (slash != std::string::npos) name.erase(0, slash + 1);
  for (char& c : name) {
    c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
  }
  const size_t dot = name.rfind(".dll");
  if (dot != std::string::npos && dot + 4 == name.size()) name.erase(dot);
  return "lib" + name + ".so";
}

inline HMODULE OpenLibrary(const char* name, int extra_flags) {
  if (name == nullptr) {
    return FailWith(ERROR_INVALID_PARAMETER, static_cast<HMODULE>(nullptr));
  }
  const int flags = RTLD_NOW | RTLD_LOCAL | extra_flags;
  HMODULE module = dlopen(name, flags);
  if (module == nullptr) {
    module = dlopen(SharedObjectName(name).c_str(), flags);
  }
  if (module == nullptr) LastError() = ERROR_MOD_NOT_FOUND;
  return module;
}

}  // namespace anydml_support

inline HMODULE LoadLibraryA(const char* name) { return anydml_support::OpenLibrary(name, 0); }
inline HMODULE LoadLibraryW(const wchar_t* name) {
  return LoadLibraryA(name == nullptr ? nullptr : anydml_support::ToUtf8(name).c_str());
}
inline HMODULE LoadLibrary(const char* name) { return LoadLibraryA(name); }
inline HMODULE LoadLibrary(const wchar_t* name) { return LoadLibraryW(name); }
inline HMODULE LoadLibraryExA(const char* name, HANDLE, DWORD /*flags*/) { return LoadLibraryA(name); }
inline HMODULE LoadLibraryExW(const wchar_t* name, HANDLE, DWORD /*flags*/) { return LoadLibraryW(name); }

// Does not own a reference, so the one that dlopen adds is dropped at once.
inline HMODULE GetModuleHandleA(const char* name) {
  if (name == nullptr) return dlopen(nullptr, RTLD_NOW);
  HMODULE module = anydml_support::OpenLibrary(name, RTLD_NOLOAD);
  if (module != nullptr) dlclose(module);
  return module;
}
inline HMODULE GetModuleHandleW(const wchar_t* name) {
  return GetModuleHandleA(name == nullptr ? nullptr : anydml_support::ToUtf8(name).c_str());
}
inline FARPROC GetProcAddress(HMODULE module, const char* name) {
  void* symbol = module == nullptr ? nullptr : dlsym(module, name);
  if (symbol == nullptr) SetLastError(ERROR_PROC_NOT_FOUND);
  return reinterpret_cast<FARPROC>(symbol);
}
inline BOOL FreeLibrary(HMODULE module) {
  if (module == nullptr || dlclose(module) != 0) {
    return anydml_support::FailWith(ERROR_INVALID_HANDLE, FALSE);
  }
  return TRUE;
}

#endif  // ANYDML_SUPPORT_WIN_MISC_H_
