#include "backend/module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>

#include "kernel/module.h"

namespace anydml {
namespace {

// Ends with a slash; empty if it is unknown.
std::string FindFolderOfThisLibrary() {
  Dl_info info{};
  static const char here = 0;
  if (dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return {};
  char resolved[PATH_MAX];
  if (std::strchr(info.dli_fname, '/') == nullptr || realpath(info.dli_fname, resolved) == nullptr) return {};
  const std::string path = resolved;
  return path.substr(0, path.rfind('/') + 1);
}

// At load, because a relative path is valid only until the working directory changes.
const std::string& folder_of_this_library = *new std::string(FindFolderOfThisLibrary());

// Returns an absolute path: given one, dlopen searches nowhere else.
Status FindModuleFile(const char* variable, const char* file, std::string* path) {
  // secure_getenv: not in programs that run with more privileges than their user has.
  if (const char* given = secure_getenv(variable); given != nullptr && *given != 0) {
    *path = given;
    if (*given == '/') return {};
    return InvalidArgument("the environment variable ", variable, " is \"", given,
                           "\" but must be an absolute path");
  }
  if (file == nullptr) return Status(Code::kNotFound, StrCat(variable, " names no module"));
  if (folder_of_this_library.empty()) {
    return Status(Code::kNotFound, StrCat("the folder of this library, where ", file,
                                          " is looked for, is not known; ", variable, " may name the file"));
  }
  *path = folder_of_this_library + file;
  // Other libraries share the folder of an installed library; modules that only we load have a folder of
  // their own in it.
  const std::string installed = folder_of_this_library + "anydml/" + file;
  if (access(path->c_str(), F_OK) != 0 && access(installed.c_str(), F_OK) == 0) *path = installed;
  return {};
}

// The library stays open: its backends live as long as the process.
Status Open(const std::string& path, void** handle, const Module** module) {
  *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (*handle == nullptr) {
    const char* error = dlerror();
    return Status(Code::kNotFound, error != nullptr ? error : path);
  }
  *module = static_cast<const Module*>(dlsym(*handle, "AnyDmlModule"));
  if (*module != nullptr && std::strcmp((*module)->version, ANYDML_VERSION) == 0) return {};
  return Status(Code::kUnsupported, StrCat(path, " is not of this version of AnyDML (", ANYDML_VERSION, ")"));
}

}  // namespace

std::vector<Backend*> LoadBackends(const char* variable, const char* file, std::string* why_none) {
  std::string path;
  void* handle = nullptr;
  const Module* module = nullptr;
  Status status = FindModuleFile(variable, file, &path);
  if (status.ok()) status = Open(path, &handle, &module);
  if (!status.ok()) {
    *why_none = status.message();
    return {};
  }
  AddModule(module);
  return module->find_backends(why_none);
}

}  // namespace anydml
