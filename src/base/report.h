// Where error messages go besides the Direct3D device's info queue: the thread's last error, and stderr on
// request.
#pragma once

#include <string>

namespace anydml {

// Whether the environment variable ANYDML_DEBUG was 1 when the library was loaded.
bool DebugRequested() noexcept;

// Keeps `message` (at most its first 4095 bytes) as this thread's last error, which anydml.h returns, and
// prints it if `to_stderr` or DebugRequested() is true.
void ReportError(const std::string& message, bool to_stderr = false) noexcept;

const char* LastErrorMessage() noexcept;
void ClearLastErrorMessage() noexcept;

}  // namespace anydml
