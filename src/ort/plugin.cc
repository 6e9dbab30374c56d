// The two functions that onnxruntime looks up.
#include "ort/factory.h"

namespace anydml::ort {
namespace {

OrtStatus* CreateFactory(const OrtApiBase& base, OrtEpFactory** factories, size_t max_factories,
                         size_t* count) {
  *count = 0;
  const Api api(base.get_api(kApiVersion));
  if (!api.exists()) {
    // Statuses are as old as the interface.
    const Api old = Api::Old(base.get_api(1));
    return Guarded(old, [&] {
      return Status(Code::kUnsupported,
                    StrCat("onnxruntime 1.23 or later is needed; this is ", base.get_version_string()));
    });
  }
  return Guarded(api, [&]() -> Status {
    if (max_factories == 0) return InvalidArgument("there is no room for a factory");
    factories[0] = new Factory(api);
    *count = 1;
    return {};
  });
}

}  // namespace
}  // namespace anydml::ort

extern "C" __attribute__((visibility("default"))) anydml::ort::OrtStatus* CreateEpFactories(
    const char*, const anydml::ort::OrtApiBase* base, const anydml::ort::OrtLogger*,
    anydml::ort::OrtEpFactory** factories, size_t max_factories, size_t* count) {
  return anydml::ort::CreateFactory(*base, factories, max_factories, count);
}

extern "C" __attribute__((visibility("default"))) anydml::ort::OrtStatus* ReleaseEpFactory(
    anydml::ort::OrtEpFactory* factory) {
  delete static_cast<anydml::ort::Factory*>(factory);
  return nullptr;
}
