// GetLastError and SetLastError.
#ifndef ANYDML_SUPPORT_WIN_ERROR_H_
#define ANYDML_SUPPORT_WIN_ERROR_H_

#include <errno.h>

#include <anydml_support/win_types.h>

namespace anydml_support {

// A function-local thread_local, since C++14 has no inline variables.
inline DWORD& LastError() {
  static thread_local DWORD error = ERROR_SUCCESS;
  return error;
}

inline DWORD ErrorFromErrno(int error) {
  switch (error) {
    case 0:
      return ERROR_SUCCESS;
    case EBADF:
      return ERROR_INVALID_HANDLE;
    case ENOMEM:
      return ERROR_NOT_ENOUGH_MEMORY;
    case EMFILE:
    case ENFILE:
      return ERROR_TOO_MANY_OPEN_FILES;
    case EINVAL:
      return ERROR_INVALID_PARAMETER;
    case ENOENT:
      return ERROR_FILE_NOT_FOUND;
    case EACCES:
    case EPERM:
      return ERROR_ACCESS_DENIED;
    default:
      return ERROR_GEN_FAILURE;
  }
}

// Records `error` and returns `result`: the last line of a failing function.
template <typename T>
inline T FailWith(DWORD error, T result) {
  LastError() = error;
  return result;
}

}  // namespace anydml_support

inline DWORD GetLastError() { return anydml_support::LastError(); }
inline void SetLastError(DWORD error) { anydml_support::LastError() = error; }

#endif  // ANYDML_SUPPORT_WIN_ERROR_H_
