// Modules: shared libraries with a backend and its implementations of operators, opened at run
// time (backend/module.cc).
#pragma once

#include <span>
#include <string>
#include <vector>

namespace anydml {

class Backend;  // backend/backend.h
class Column;   // ops/column.h

// What a module exports, under the name AnyDmlModule. Both sides come from one build: the types
// between them are C++.
struct Module {
  const char* version;  // of AnyDML; another one is refused, and nothing else of it is looked at
  // The backends, best first, which live as long as the process; when there are none, why.
  std::vector<Backend*> (*find_backends)(std::string* why_none);
  // The implementations, whose names are known also where there is no device.
  const Column& (*column)();
};

// Called while the backends are looked for, before anything is lowered.
void AddModule(const Module* module);
std::span<const Module* const> Modules();

}  // namespace anydml
