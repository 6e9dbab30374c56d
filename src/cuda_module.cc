// What libanydml_cuda.so exports.
#include "backend/cuda/cuda_backend.h"
#include "kernel/module.h"
#include "ops/cuda_column.h"

namespace {

std::vector<anydml::Backend*> FindBackends(std::string* why_none) {
  return anydml::cuda::FindCudaBackends(anydml::CudaColumn(), why_none);
}

}  // namespace

extern "C" __attribute__((visibility("default")))
const anydml::Module AnyDmlModule = {ANYDML_VERSION, FindBackends, anydml::CudaColumn};
