// Modules: shared libraries with a backend and its implementations of operators, opened at run
// time (backend/module.cc).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/part_recorder.h"

namespace anydml {

class Backend;         // backend/backend.h
struct OperatorTable;  // ops/operator_table.h

// What a module exports, under the name AnyDmlModule. Both sides come from one build: the types
// between them are C++.
struct Module {
  const char* version;  // of AnyDML; another one is refused, and nothing else of it is looked at
  // The backends, best first, which live as long as the process; when there are none, why.
  std::vector<Backend*> (*find_backends)(std::string* why_none);
  // Every family's list of implementations, with those that are in this module.
  const OperatorTable& (*operators)();
  // For what KernelArguments::stream is; null where time cannot be told now.
  std::unique_ptr<StreamClock> (*create_clock)(void* stream);
};

// Makes `module` that of the backends of this kind. Once per kind, before anything is lowered for it.
void SetModule(const char* backend, const Module* module);

// Null when there is none.
const Module* FindModule(std::string_view backend);

}  // namespace anydml
