// Where failure sentences go, apart from the Direct3D device's info queue: the
// thread's last error, and stderr when asked for.
#pragma once

#include <string>

namespace anydml {

// Keeps `message` as this thread's last error (anydml.h reads it) and, when
// `to_stderr` or the environment variable ANYDML_DEBUG=1 says so, prints it.
void ReportError(const std::string& message, bool to_stderr = false) noexcept;

const char* LastErrorMessage() noexcept;
void ClearLastErrorMessage() noexcept;

}  // namespace anydml
