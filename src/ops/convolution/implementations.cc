#include "ops/convolution/problem.h"

namespace anydml {
namespace {

// Of inputs and filters up to 1: see GEMM's.
Exactness Bound(const ConvolutionProblem& problem) {
  Exactness exactness;
  const auto k = static_cast<double>(problem.shape.Steps());
  exactness.absolute = 0x1p-24 * (k * k + 2);
  exactness.float32_ulps = 8 + problem.activation.ulps();
  exactness.float16_ulps = 1;
  return exactness;
}

constexpr Implementation<ConvolutionProblem> kImplementations[] = {
    {"cpu.depthwise", "cpu", ANYDML_ON_CPU(CreateConvolutionDepthwise), nullptr, {}, Bound},
    {"cpu.product", "cpu", ANYDML_ON_CPU(CreateConvolutionProduct), nullptr, {}, Bound},
    {"cuda.depthwise", "cuda", ANYDML_ON_CUDA(CreateConvolutionDepthwiseCuda), nullptr, {}, Bound},
    {"cuda.tiled", "cuda", ANYDML_ON_CUDA(CreateConvolutionTiledCuda), nullptr, {}, Bound},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateConvolutionReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

}  // namespace

std::span<const Implementation<ConvolutionProblem>> ConvolutionImplementations() { return kImplementations; }
std::span<const char* const> ConvolutionImplementationNames() { return kNames; }

}  // namespace anydml
