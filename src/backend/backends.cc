#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/cpu_info.h"
#include "backend/module.h"

namespace anydml {
namespace {

struct Found {
  std::vector<Backend*> backends;
  std::string why_no_gpu;
  Status variables;
};

// Moves the adapter that ANYDML_ADAPTER names to the front.
Status PutWantedFirst(std::vector<Backend*>* backends) {
  const char* wanted = std::getenv("ANYDML_ADAPTER");
  if (wanted == nullptr || *wanted == 0) return {};
  std::string ids;
  for (auto at = backends->begin(); at != backends->end(); ++at) {
    const std::string& id = (*at)->adapter().id;
    if (id == wanted) {
      std::rotate(backends->begin(), at, at + 1);
      return {};
    }
    ids += (ids.empty() ? "" : ", ") + id;
  }
  return InvalidArgument("the environment variable ANYDML_ADAPTER is \"", wanted, "\" but this machine has ",
                         ids);
}

Found FindBackends() {
  Found found;
  found.backends = LoadBackends("ANYDML_CUDA_MODULE", "libanydml_cuda.so", &found.why_no_gpu);
  found.backends.push_back(GetCpuBackend());
  // Loads a backend that was built elsewhere for this version; only if it is requested by name.
  std::string why_no_other;
  const std::vector<Backend*> others = LoadBackends("ANYDML_OTHER_MODULE", nullptr, &why_no_other);
  found.backends.insert(found.backends.end(), others.begin(), others.end());
  const char* const other = secure_getenv("ANYDML_OTHER_MODULE");
  if (others.empty() && other != nullptr && *other != 0) {
    found.variables = InvalidArgument("ANYDML_OTHER_MODULE brings no adapter: ", why_no_other);
    return found;
  }
  found.variables = PutWantedFirst(&found.backends);
  if (!found.variables.ok() && !found.why_no_gpu.empty()) {
    found.variables = InvalidArgument(found.variables.message(), "; no GPU: ", found.why_no_gpu);
  }
  uint32_t threads = 0;
  if (found.variables.ok()) found.variables = WantedThreads(&threads);
  return found;
}

const Found& AllBackends() {
  // Never destroyed: queue threads may still use a backend while static objects are torn down.
  static const auto* const found = new Found(FindBackends());
  return *found;
}

}  // namespace

std::span<Backend* const> Backends() { return AllBackends().backends; }

const Status& CheckBackendVariables() { return AllBackends().variables; }

const std::string& WhyNoGpu() { return AllBackends().why_no_gpu; }

}  // namespace anydml
