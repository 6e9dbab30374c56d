// NVIDIA GPUs as adapters.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"

namespace anydml::cuda {

// One per GPU that the kernels are built for, in CUDA's order; when there are none, why.
// `column`: their implementations.
std::vector<Backend*> FindCudaBackends(const Column& column, std::string* why_none);

}  // namespace anydml::cuda
