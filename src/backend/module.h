// Loads a backend's module (kernel/module.h).
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"

namespace anydml {

// The backends of `file`, which is in this library's folder or, when installed, in the folder anydml there,
// and is searched nowhere else; or of the file whose absolute path the environment variable `variable` gives.
// If there are none, the reason. `file` may be null: then only the variable names a module.
std::vector<Backend*> LoadBackends(const char* variable, const char* file, std::string* why_none);

}  // namespace anydml
