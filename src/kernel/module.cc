#include "kernel/module.h"

namespace anydml {
namespace {

// Written while the backends are being found, only read afterwards.
std::vector<const Module*>& AllModules() {
  static auto* const modules = new std::vector<const Module*>;
  return *modules;
}

}  // namespace

void AddModule(const Module* module) { AllModules().push_back(module); }
std::span<const Module* const> Modules() { return AllModules(); }

}  // namespace anydml
