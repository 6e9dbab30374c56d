#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/module.h"

namespace anydml {
namespace {

struct Found {
  std::vector<Backend*> backends;
  std::string why_no_gpu;
};

Found FindBackends() {
  Found found;
  found.backends = LoadBackends("cuda", "ANYDML_CUDA_MODULE", "libanydml_cuda.so", &found.why_no_gpu);
  found.backends.push_back(GetCpuBackend());
  const char* wanted = std::getenv("ANYDML_ADAPTER");
  if (wanted == nullptr) return found;
  auto& backends = found.backends;
  const auto front = std::find_if(backends.begin(), backends.end(), [wanted](const Backend* backend) {
    return backend->adapter().id == std::string_view(wanted);
  });
  if (front != backends.end()) std::rotate(backends.begin(), front, front + 1);
  return found;
}

const Found& AllBackends() {
  // Never destroyed: queue threads may still use a backend while static objects are torn down.
  static const auto* const found = new Found(FindBackends());
  return *found;
}

}  // namespace

std::span<Backend* const> Backends() { return AllBackends().backends; }

const std::string& WhyNoGpu() { return AllBackends().why_no_gpu; }

}  // namespace anydml
