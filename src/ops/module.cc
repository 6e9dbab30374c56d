#include "ops/module.h"

#include <dlfcn.h>

#include <cstring>
#include <utility>
#include <vector>

namespace anydml {
namespace {

// Written while the backends are looked for, only read afterwards.
std::vector<std::pair<const char*, void*>>& Modules() {
  static auto* const modules = new std::vector<std::pair<const char*, void*>>;
  return *modules;
}

}  // namespace

void SetModule(const char* backend, void* handle) { Modules().emplace_back(backend, handle); }

void* FindInModule(const char* backend, const char* symbol) {
  for (const auto& [name, handle] : Modules()) {
    if (std::strcmp(name, backend) == 0) return dlsym(handle, symbol);
  }
  return nullptr;
}

}  // namespace anydml
