#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"

namespace anydml {
namespace {

std::vector<Backend*> FindBackends() {
  std::vector<Backend*> backends;
  backends.push_back(GetCpuBackend());
  const char* wanted = std::getenv("ANYDML_ADAPTER");
  if (wanted == nullptr) return backends;
  const auto found = std::find_if(backends.begin(), backends.end(), [wanted](const Backend* backend) {
    return backend->adapter().id == std::string_view(wanted);
  });
  if (found != backends.end()) std::rotate(backends.begin(), found, found + 1);
  return backends;
}

}  // namespace

std::span<Backend* const> Backends() {
  // Never destroyed: queue threads may still use a backend while static objects are torn down.
  static const auto* const backends = new std::vector<Backend*>(FindBackends());
  return *backends;
}

}  // namespace anydml
