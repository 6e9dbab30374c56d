// No exception crosses the COM border: every method that can allocate runs its
// body in a Guard.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include <d3d12.h>

#include "base/report.h"
#include "base/status.h"

namespace anydml {

inline HRESULT ToHresult(Code code) { return static_cast<HRESULT>(code); }

inline HRESULT Fail(HRESULT code, const std::string& message) {
  ReportError(message);
  return code;
}

template <typename Body>
HRESULT Guard(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    ReportError("out of memory");
    return E_OUTOFMEMORY;
  } catch (const std::length_error&) {  // thrown by a container that would exceed its maximum size
    ReportError("out of memory");
    return E_OUTOFMEMORY;
  } catch (const std::exception& error) {
    ReportError(error.what());
    return E_FAIL;
  } catch (...) {
    return E_FAIL;
  }
}

}  // namespace anydml
