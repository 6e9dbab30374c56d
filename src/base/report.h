// Where failure sentences go, apart from the Direct3D device's info queue: the
// thread's last error, and stderr when asked for.
#pragma once

#include <string>

namespace anydml {

// Whether the environment variable ANYDML_DEBUG was 1 when the library was loaded.
bool DebugRequested() noexcept;

// Keeps `message` (of one beyond 4095 bytes, its beginning) as this thread's last error, which anydml.h
// reads, and prints it when `to_stderr` or DebugRequested says so.
void ReportError(const std::string& message, bool to_stderr = false) noexcept;

const char* LastErrorMessage() noexcept;
void ClearLastErrorMessage() noexcept;

}  // namespace anydml
