// The error macros of the Windows Implementation Library that DirectML samples
// use, with their documented meaning. No telemetry, no call stacks: a thrown
// wil::ResultException names the HRESULT, the expression and the line.
#ifndef ANYDML_SUPPORT_WIL_RESULT_H_
#define ANYDML_SUPPORT_WIL_RESULT_H_

#include <stdio.h>
#include <stdlib.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include <anydml_support/win32.h>

#ifdef ANYDML_NO_WIN32
#include <anydml_support/win_error.h>
#else
#include <wil/resource.h>  // programs expect unique_handle here
#endif

namespace wil {

class ResultException : public std::exception {
 public:
  explicit ResultException(HRESULT hr) : ResultException(hr, "", "", 0) {}
  ResultException(HRESULT hr, const char* expression, const char* file, int line) : hr_(hr) {
    char code[16];
    snprintf(code, sizeof(code), "0x%08X", static_cast<unsigned>(hr));
    message_ = std::string("HRESULT ") + code;
    if (*expression != '\0') message_ += std::string(" from ") + expression;
    if (line != 0) {
      message_ += std::string(" at ") + file + ":" + std::to_string(line);
    }
  }

  HRESULT GetErrorCode() const noexcept { return hr_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  HRESULT hr_;
  std::string message_;
};

// The HRESULT for the exception that is being handled.
inline HRESULT ResultFromCaughtException() noexcept {
  try {
    throw;
  } catch (const ResultException& e) {
    return e.GetErrorCode();
  } catch (const std::bad_alloc&) {
    return E_OUTOFMEMORY;
  } catch (const std::invalid_argument&) {
    return E_INVALIDARG;
  } catch (const std::out_of_range&) {
    return E_BOUNDS;
  } catch (...) {
    return E_FAIL;
  }
}

namespace details {

struct Site {
  const char* expression;
  const char* file;
  int line;
};

// A function that reports failure through GetLastError may have left 0 there.
inline HRESULT LastErrorAsFailure() {
  const DWORD error = anydml_support::LastError();
  return error == ERROR_SUCCESS ? E_FAIL : HRESULT_FROM_WIN32(error);
}

[[noreturn]] inline void Throw(HRESULT hr, Site site) {
  throw ResultException(hr, site.expression, site.file, site.line);
}

inline HRESULT Log(HRESULT hr, Site site) {
  fprintf(stderr, "%s\n", ResultException(hr, site.expression, site.file, site.line).what());
  return hr;
}

[[noreturn]] inline void FailFast(HRESULT hr, Site site) {
  Log(hr, site);
  abort();
}

inline HRESULT ThrowIfFailed(HRESULT hr, Site site) {
  if (FAILED(hr)) Throw(hr, site);
  return hr;
}

inline HRESULT LogIfFailed(HRESULT hr, Site site) { return FAILED(hr) ? Log(hr, site) : hr; }

inline HRESULT FailFastIfFailed(HRESULT hr, Site site) {
  if (FAILED(hr)) FailFast(hr, site);
  return hr;
}

template <typename T>
T&& ThrowIfNull(HRESULT hr, T&& pointer, Site site) {
  if (pointer == nullptr) Throw(hr, site);
  return static_cast<T&&>(pointer);
}

// The error code is read only if there is an error.
template <typename T>
T&& ThrowLastErrorIfNull(T&& pointer, Site site) {
  if (pointer == nullptr) Throw(LastErrorAsFailure(), site);
  return static_cast<T&&>(pointer);
}

inline bool ThrowHrIf(HRESULT hr, bool condition, Site site) {
  if (condition) Throw(hr, site);
  return condition;
}

inline bool ThrowLastErrorIf(bool condition, Site site) {
  if (condition) Throw(LastErrorAsFailure(), site);
  return condition;
}

inline bool FailFastIf(bool condition, Site site) {
  if (condition) FailFast(E_UNEXPECTED, site);
  return condition;
}

}  // namespace details
}  // namespace wil

#define WIL_SITE_(expression) \
  ::wil::details::Site { expression, __FILE__, __LINE__ }
#define WIL_LAST_ERROR_() ::wil::details::LastErrorAsFailure()

// -----------------------------------------------------------------------------
// THROW_...
// -----------------------------------------------------------------------------

#define THROW_HR(hr) ::wil::details::Throw((hr), WIL_SITE_(#hr))
#define THROW_HR_MSG(hr, ...) THROW_HR(hr)
#define THROW_WIN32(error) THROW_HR(HRESULT_FROM_WIN32(error))
#define THROW_LAST_ERROR() ::wil::details::Throw(WIL_LAST_ERROR_(), WIL_SITE_(""))
#define THROW_IF_FAILED(hr) ::wil::details::ThrowIfFailed((hr), WIL_SITE_(#hr))
#define THROW_IF_FAILED_MSG(hr, ...) THROW_IF_FAILED(hr)
#define THROW_IF_WIN32_ERROR(error) THROW_IF_FAILED(HRESULT_FROM_WIN32(error))
#define THROW_IF_WIN32_BOOL_FALSE(success) THROW_LAST_ERROR_IF(!(success))
#define THROW_IF_NULL_ALLOC(pointer) THROW_HR_IF_NULL(E_OUTOFMEMORY, pointer)
#define THROW_HR_IF(hr, condition) ::wil::details::ThrowHrIf((hr), !!(condition), WIL_SITE_(#condition))
#define THROW_HR_IF_MSG(hr, condition, ...) THROW_HR_IF(hr, condition)
#define THROW_HR_IF_NULL(hr, pointer) ::wil::details::ThrowIfNull((hr), (pointer), WIL_SITE_(#pointer))
#define THROW_HR_IF_NULL_MSG(hr, pointer, ...) THROW_HR_IF_NULL(hr, pointer)
#define THROW_LAST_ERROR_IF(condition) ::wil::details::ThrowLastErrorIf(!!(condition), WIL_SITE_(#condition))
#define THROW_LAST_ERROR_IF_NULL(pointer) ::wil::details::ThrowLastErrorIfNull((pointer), WIL_SITE_(#pointer))

// -----------------------------------------------------------------------------
// RETURN_...: statements, for functions that return an HRESULT
// -----------------------------------------------------------------------------

#define RETURN_HR(hr) return (hr)
#define RETURN_WIN32(error) return HRESULT_FROM_WIN32(error)
#define RETURN_LAST_ERROR() return WIL_LAST_ERROR_()
#define RETURN_IF_FAILED(hr)             \
  do {                                   \
    const HRESULT wil_hr_ = (hr);        \
    if (FAILED(wil_hr_)) return wil_hr_; \
  } while (false)
#define RETURN_IF_FAILED_MSG(hr, ...) RETURN_IF_FAILED(hr)
#define RETURN_IF_FAILED_EXPECTED(hr) RETURN_IF_FAILED(hr)
#define RETURN_IF_WIN32_BOOL_FALSE(success) RETURN_LAST_ERROR_IF(!(success))
#define RETURN_IF_NULL_ALLOC(pointer) RETURN_HR_IF_NULL(E_OUTOFMEMORY, pointer)
#define RETURN_HR_IF(hr, condition) \
  do {                              \
    if (condition) return (hr);     \
  } while (false)
#define RETURN_HR_IF_MSG(hr, condition, ...) RETURN_HR_IF(hr, condition)
#define RETURN_HR_IF_NULL(hr, pointer) RETURN_HR_IF(hr, (pointer) == nullptr)
#define RETURN_HR_IF_NULL_MSG(hr, pointer, ...) RETURN_HR_IF_NULL(hr, pointer)
#define RETURN_LAST_ERROR_IF(condition) RETURN_HR_IF(WIL_LAST_ERROR_(), condition)
#define RETURN_LAST_ERROR_IF_NULL(pointer) RETURN_HR_IF(WIL_LAST_ERROR_(), (pointer) == nullptr)

// -----------------------------------------------------------------------------
// LOG_... and FAIL_FAST_...
// -----------------------------------------------------------------------------

#define LOG_HR(hr) ::wil::details::Log((hr), WIL_SITE_(#hr))
#define LOG_IF_FAILED(hr) ::wil::details::LogIfFailed((hr), WIL_SITE_(#hr))
#define LOG_LAST_ERROR() ::wil::details::Log(WIL_LAST_ERROR_(), WIL_SITE_(""))

#define FAIL_FAST() ::wil::details::FailFast(E_UNEXPECTED, WIL_SITE_(""))
#define FAIL_FAST_HR(hr) ::wil::details::FailFast((hr), WIL_SITE_(#hr))
#define FAIL_FAST_IF(condition) ::wil::details::FailFastIf(!!(condition), WIL_SITE_(#condition))
#define FAIL_FAST_IF_NULL(pointer) FAIL_FAST_IF((pointer) == nullptr)
#define FAIL_FAST_IF_FAILED(hr) ::wil::details::FailFastIfFailed((hr), WIL_SITE_(#hr))

// -----------------------------------------------------------------------------
// At the end of a try block
// -----------------------------------------------------------------------------

#define RETURN_CAUGHT_EXCEPTION() return ::wil::ResultFromCaughtException()
#define LOG_CAUGHT_EXCEPTION() LOG_HR(::wil::ResultFromCaughtException())
#define CATCH_RETURN()         \
  catch (...) {                \
    RETURN_CAUGHT_EXCEPTION(); \
  }
#define CATCH_LOG()         \
  catch (...) {             \
    LOG_CAUGHT_EXCEPTION(); \
  }

#endif  // ANYDML_SUPPORT_WIL_RESULT_H_
