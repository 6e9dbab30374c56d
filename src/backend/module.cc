#include "backend/module.h"

#include <dlfcn.h>

#include <cstring>

#include "kernel/module.h"

namespace anydml {
namespace {

std::string FolderOfThisLibrary() {
  Dl_info info{};
  static const char here = 0;
  if (dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string path = info.dli_fname;
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

// Stays open: its backends live as long as the process.
void* Open(const char* file, std::string* why_not) {
  const std::string folder = FolderOfThisLibrary();
  for (const std::string& path : {folder + file, std::string(file)}) {
    if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    const char* error = dlerror();
    *why_not = error != nullptr ? error : file;
  }
  return nullptr;
}

}  // namespace

std::vector<Backend*> LoadBackends(const char* kind, const char* file, std::string* why_none) {
  void* const handle = Open(file, why_none);
  if (handle == nullptr) return {};
  const auto* module = static_cast<const Module*>(dlsym(handle, "AnyDmlModule"));
  if (module == nullptr || std::strcmp(module->version, ANYDML_VERSION) != 0) {
    *why_none = StrCat(file, " is not of this version of AnyDML (", ANYDML_VERSION, ")");
    return {};
  }
  std::vector<Backend*> backends = module->find_backends(why_none);
  if (!backends.empty()) SetModule(kind, module);
  return backends;
}

}  // namespace anydml
