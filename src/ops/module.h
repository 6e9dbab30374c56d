// Modules: shared libraries with a backend and its implementations of operators, opened at run
// time (backend/load_module.cc). Operators find their own functions in one by name.
#pragma once

#include <string>

#include "ops/kernel.h"

#define ANYDML_MODULE_EXPORT extern "C" __attribute__((visibility("default")))

namespace anydml {

// How a module exports an implementation's create function: what it returns is the caller's,
// or null with a reason.
template <typename Problem>
using ModuleCreate = const Kernel*(const Problem& problem, std::string* why_not);

// Makes the library behind dlopen's `handle` the module of `backend`. Once per backend,
// before anything is lowered for it.
void SetModule(const char* backend, void* handle);

// Null when there is no such module, or no such symbol in it.
void* FindInModule(const char* backend, const char* symbol);

}  // namespace anydml
