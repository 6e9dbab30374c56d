#include "kernel/module.h"

#include <utility>

namespace anydml {
namespace {

// Written while the backends are looked for, only read afterwards.
std::vector<std::pair<std::string_view, const Module*>>& Modules() {
  static auto* const modules = new std::vector<std::pair<std::string_view, const Module*>>;
  return *modules;
}

}  // namespace

void SetModule(const char* backend, const Module* module) { Modules().emplace_back(backend, module); }

const Module* FindModule(std::string_view backend) {
  for (const auto& [name, module] : Modules()) {
    if (name == backend) return module;
  }
  return nullptr;
}

}  // namespace anydml
