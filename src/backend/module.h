// How a backend's module (kernel/module.h) is loaded.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"

namespace anydml {

// The backends of kind `kind` from lib<file>.so, which is looked for beside this library and
// then where libraries are; when there are none, why.
std::vector<Backend*> LoadBackends(const char* kind, const char* file, std::string* why_none);

}  // namespace anydml
