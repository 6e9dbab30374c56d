#include "ops/pooling/cpu/kernels.h"
#include "ops/pooling/cuda/kernels.h"
#include "ops/pooling/problem.h"

namespace anydml {
namespace {

// Roots and powers other than squares: in double precision, rounded at the end.
Exactness BoundOf(const PoolingProblem& problem) {
  const bool is_power = problem.function == PoolingFunction::kLp && problem.p > 2;
  return is_power ? Exactness{.float32_ulps = 2, .float16_ulps = 1} : Exactness{};
}

constexpr Implementation<PoolingProblem> kPooling[] = {
    {"cpu.max_channels", "cpu", ANYDML_ON_CPU(CreatePoolingMaxChannels)},
    {"cpu.max_rows", "cpu", ANYDML_ON_CPU(CreatePoolingMaxRows)},
    {"cpu.max_scan", "cpu", ANYDML_ON_CPU(CreatePoolingScan)},
    {"cpu.sum_channels", "cpu", ANYDML_ON_CPU(CreatePoolingSumChannels), nullptr, {}, BoundOf},
    {"cpu.sum_rows", "cpu", ANYDML_ON_CPU(CreatePoolingSumRows), nullptr, {}, BoundOf},
    {"cuda.tiles", "cuda", ANYDML_ON_CUDA(CreatePoolingCudaTiles)},
    {"cuda.channels", "cuda", ANYDML_ON_CUDA(CreatePoolingCudaChannels)},
    {"cuda.planes", "cuda", ANYDML_ON_CUDA(CreatePoolingCudaPlanes)},
    {"cuda.windows", "cuda", ANYDML_ON_CUDA(CreatePoolingCudaWindows), nullptr, {}, BoundOf},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreatePoolingReference), nullptr, {}, BoundOf},
};
constexpr auto kPoolingNames = ImplementationNames(kPooling);

constexpr Implementation<PoolingGradProblem> kGrad[] = {
    {"cpu.collect", "cpu", ANYDML_ON_CPU(CreatePoolingGradCpu)},
    {"cuda.collect", "cuda", ANYDML_ON_CUDA(CreatePoolingGradCuda)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreatePoolingGradReference)},
};
constexpr auto kGradNames = ImplementationNames(kGrad);

constexpr Implementation<MaxUnpoolingProblem> kUnpooling[] = {
    {"cpu.scatter", "cpu", ANYDML_ON_CPU(CreateMaxUnpoolingCpu)},
    {"cuda.scatter", "cuda", ANYDML_ON_CUDA(CreateMaxUnpoolingCuda)},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateMaxUnpoolingReference)},
};
constexpr auto kUnpoolingNames = ImplementationNames(kUnpooling);

}  // namespace

std::span<const Implementation<PoolingProblem>> PoolingImplementations() { return kPooling; }
std::span<const Implementation<PoolingGradProblem>> PoolingGradImplementations() { return kGrad; }
std::span<const Implementation<MaxUnpoolingProblem>> MaxUnpoolingImplementations() { return kUnpooling; }
std::span<const char* const> PoolingImplementationNames() { return kPoolingNames; }
std::span<const char* const> PoolingGradImplementationNames() { return kGradNames; }
std::span<const char* const> MaxUnpoolingImplementationNames() { return kUnpoolingNames; }

}  // namespace anydml
