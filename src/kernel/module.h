// Modules: shared libraries with a backend and its implementations of operators, loaded at run time
// (backend/module.cc).
#pragma once

#include <span>
#include <string>
#include <vector>

namespace anydml {

class Backend;  // backend/backend.h
class Column;   // ops/column.h

// The export of a module, under the name AnyDmlModule. Both sides come from the same build: the types between
// them are C++.
struct Module {
  const char* version;  // of AnyDML; if it differs, the module is refused and nothing else is read
  // The backends, best first, which live as long as the process; if there are none, the reason.
  std::vector<Backend*> (*find_backends)(std::string* why_none);
  // The implementations; their names are known even if there is no device.
  const Column& (*column)();
};

// Called while the backends are being found, before anything is lowered.
void AddModule(const Module* module);
std::span<const Module* const> Modules();

}  // namespace anydml
