#include "backend/module.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>

#include "kernel/module.h"

namespace anydml {
namespace {

// With a slash at the end; empty when it is not known.
std::string FindFolderOfThisLibrary() {
  Dl_info info{};
  static const char here = 0;
  if (dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return {};
  char resolved[PATH_MAX];
  if (std::strchr(info.dli_fname, '/') == nullptr || realpath(info.dli_fname, resolved) == nullptr) return {};
  const std::string path = resolved;
  return path.substr(0, path.rfind('/') + 1);
}

// At load: a relative path means what it meant only until the working directory changes.
const std::string& folder_of_this_library = *new std::string(FindFolderOfThisLibrary());

// An absolute path: dlopen looks for nothing else then, in the working directory or elsewhere.
Status FindModuleFile(const char* variable, const char* file, std::string* path) {
  // Not in programs that run with more rights than their user has.
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
  // The folder of an installed library is everybody's; what only this one opens has a folder of its own in
  // it.
  const std::string installed = folder_of_this_library + "anydml/" + file;
  if (access(path->c_str(), F_OK) != 0 && access(installed.c_str(), F_OK) == 0) *path = installed;
  return {};
}

// Stays open: its backends live as long as the process.
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
