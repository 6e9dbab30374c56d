// NVIDIA GPUs as adapters.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"

namespace anydml::cuda {

// One per GPU that the kernels are built for, in CUDA's order; when there are none, why.
std::vector<Backend*> FindCudaBackends(std::string* why_none);

}  // namespace anydml::cuda
