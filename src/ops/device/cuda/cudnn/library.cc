#include "ops/device/cuda/cudnn/library.h"

#include <dlfcn.h>

#include <map>
#include <type_traits>
#include <utility>

#include "base/status.h"

namespace anydml::cudnn {

Library::Library() {
  void* const library = dlopen(kLibraryName, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    why_not = StrCat("there is no ", kLibraryName);
    return;
  }
  const auto find = [&](auto* function, const char* name) {
    *function = reinterpret_cast<std::decay_t<decltype(*function)>>(dlsym(library, name));
    if (*function == nullptr && why_not.empty()) why_not = StrCat(kLibraryName, " has no ", name);
  };
  find(&cudnnGetVersion, "cudnnGetVersion");
  find(&cudnnGetErrorString, "cudnnGetErrorString");
  find(&cudnnCreate, "cudnnCreate");
  find(&cudnnSetStream, "cudnnSetStream");
  find(&cudnnBackendCreateDescriptor, "cudnnBackendCreateDescriptor");
  find(&cudnnBackendDestroyDescriptor, "cudnnBackendDestroyDescriptor");
  find(&cudnnBackendFinalize, "cudnnBackendFinalize");
  find(&cudnnBackendSetAttribute, "cudnnBackendSetAttribute");
  find(&cudnnBackendGetAttribute, "cudnnBackendGetAttribute");
  find(&cudnnBackendExecute, "cudnnBackendExecute");
  if (!why_not.empty()) return;
  const size_t number = cudnnGetVersion();
  version = StrCat(number / 10000, ".", number / 100 % 100, ".", number % 100);
  if (number < kLeastVersion)
    why_not = StrCat("cuDNN is of version ", version, "; it is for 9.0.0 and later");
}

const Library& TheLibrary() {
  static const Library* const library = new Library;  // never destroyed: devices may outlive static objects
  return *library;
}

std::string Sentence(const char* function, const char* of, int status) {
  const char* const words = TheLibrary().cudnnGetErrorString(status);
  const std::string error = words != nullptr ? words : StrCat("status ", status);
  return *of == '\0' ? StrCat(function, ": ", error) : StrCat(function, " (", of, "): ", error);
}

Handles* HandlesFor(int device, std::string* why_not) {
  static auto* const mutex = new std::mutex;
  static auto* const handles_of_devices = new std::map<int, Handles>;
  const std::lock_guard lock(*mutex);
  Handles& handles = (*handles_of_devices)[device];
  for (void** const handle : {&handles.maker, &handles.executor}) {
    if (*handle != nullptr) continue;
    const int status = TheLibrary().cudnnCreate(handle);
    if (status == kSuccess) continue;
    *handle = nullptr;  // the next call tries again
    *why_not = StrCat("cuDNN could not be started: ", Sentence("cudnnCreate", "", status));
    return nullptr;
  }
  return &handles;
}

Descriptor::Descriptor(Kind kind, const char* name) : name_(name) {
  Note("cudnnBackendCreateDescriptor", TheLibrary().cudnnBackendCreateDescriptor(kind, &descriptor_));
}

Descriptor::~Descriptor() {
  if (descriptor_ != nullptr) TheLibrary().cudnnBackendDestroyDescriptor(descriptor_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : name_(other.name_),
      descriptor_(std::exchange(other.descriptor_, nullptr)),
      error_(std::move(other.error_)) {}

void Descriptor::Note(const char* function, int status) {
  if (status != kSuccess) error_ = Sentence(function, name_, status);
}

void Descriptor::SetAll(Attribute attribute, Type type, int64_t count, const void* values) {
  if (!error_.empty()) return;
  Note("cudnnBackendSetAttribute",
       TheLibrary().cudnnBackendSetAttribute(descriptor_, attribute, type, count, values));
  if (!error_.empty()) error_ += StrCat(" (attribute ", static_cast<int>(attribute), ")");
}

void Descriptor::Finalize() {
  if (error_.empty()) Note("cudnnBackendFinalize", TheLibrary().cudnnBackendFinalize(descriptor_));
}

int64_t Descriptor::Get(Attribute attribute, Type type, int64_t room, void* values) {
  int64_t count = 0;
  if (error_.empty()) {
    Note("cudnnBackendGetAttribute",
         TheLibrary().cudnnBackendGetAttribute(descriptor_, attribute, type, room, &count, values));
  }
  return error_.empty() ? count : 0;
}

}  // namespace anydml::cudnn
