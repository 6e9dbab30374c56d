// NVIDIA GPUs as adapters.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"

namespace anydml::cuda {

// One backend per GPU that the kernels are compiled for, in CUDA's order; if there are none, the reason.
// `column`: their implementations.
std::vector<Backend*> FindCudaBackends(const Column& column, std::string* why_none);

}  // namespace anydml::cuda
