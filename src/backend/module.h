// How a backend's module (kernel/module.h) is loaded.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"

namespace anydml {

// The backends of kind `kind` from `file` beside this library or, as installed, in the folder anydml beside it, and
// nowhere else, or from the file that the environment variable `variable` names by an absolute path; when there are none, why.
std::vector<Backend*> LoadBackends(const char* kind, const char* variable, const char* file,
                                   std::string* why_none);

}  // namespace anydml
