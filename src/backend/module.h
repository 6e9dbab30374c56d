// What a backend's module exports, and how it is loaded.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"

namespace anydml {

// Under the name AnyDmlModule. Both sides come from one build: the types between them are C++.
struct BackendModule {
  const char* version;  // of AnyDML; another one is refused
  // The backends, best first, which live as long as the process; when there are none, why.
  std::vector<Backend*> (*find)(std::string* why_none);
};

// The backends of kind `kind` from `file` beside this library, and nowhere else, or from the file
// that the environment variable `variable` names by an absolute path; when there are none, why.
std::vector<Backend*> LoadBackends(const char* kind, const char* variable, const char* file,
                                   std::string* why_none);

}  // namespace anydml
