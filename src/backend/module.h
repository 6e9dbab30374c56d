// How a backend's module (kernel/module.h) is loaded.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"

namespace anydml {

// The backends from `file` beside this library or, as installed, in the folder anydml beside it, and nowhere
// else, or from the file that the environment variable `variable` names by an absolute path; when there are
// none, why. `file` may be null: then only the variable names a module.
std::vector<Backend*> LoadBackends(const char* variable, const char* file, std::string* why_none);

}  // namespace anydml
