#include "ops/gemm/problem.h"

namespace anydml {
namespace {

// A blocked sum of products of numbers up to 1 is off by far less than this (contract: k * 2^-24 times the
// sum of the magnitudes).
Exactness Bound(const GemmProblem& problem) {
  Exactness exactness;
  const auto k = static_cast<double>(problem.k);
  exactness.absolute = 0x1p-24 * k * k * (problem.alpha < 0 ? -problem.alpha : problem.alpha);
  exactness.float32_ulps = 8 + problem.activation.ulps();
  exactness.float16_ulps = 1;
  return exactness;
}

std::string BetterByTiles(const GemmProblem& problem, const LowerContext&) {
  constexpr uint64_t kSmall = uint64_t{1} << 17;
  return problem.Batches() * problem.m * problem.n * problem.k < kSmall ? "a small product" : "";
}

// Small products are done before a second kernel has started.
std::string BetterInOne(const GemmProblem& problem, const LowerContext&) {
  constexpr uint64_t kLarge = uint64_t{1} << 24, kSmall = uint64_t{1} << 20;
  const uint64_t work = problem.Batches() * problem.m * problem.n * problem.k;
  const auto& activation = problem.activation.instructions;
  const bool is_relu = activation.size() == 1 && activation[0].function == ElementFunction::kRelu;
  const bool small = activation.empty() ? work < kLarge : is_relu && work < kSmall;
  return small ? "a small product adds C by itself" : "";
}

// The library's tiles of 128 x 128 are too large for products of about 1024 x 1024 on an H200, where half of
// the multiprocessors would have none; for larger and smaller ones it has better kernels than we do.
std::string BetterByLibrary(const GemmProblem& problem, const LowerContext& context) {
  constexpr uint64_t kTile = 128, kManySteps = 512;
  const auto tiles = [](uint64_t size) { return (size + kTile - 1) / kTile; };
  const uint64_t multiprocessors = context.device->multiprocessors;
  const bool about_half = problem.m < multiprocessors * kTile && problem.n < multiprocessors * kTile &&
                          tiles(problem.m) * tiles(problem.n) <= multiprocessors / 2 &&
                          tiles(problem.m) * tiles(problem.n) > multiprocessors * 3 / 8;
  return about_half && problem.k >= kManySteps ? "" : "cuBLASLt's tiles fit as well";
}

constexpr Implementation<GemmProblem> kImplementations[] = {
    {"cpu.few", "cpu", ANYDML_ON_CPU(CreateGemmFew), nullptr, {}, Bound},
    {"cpu.packed", "cpu", ANYDML_ON_CPU(CreateGemmPacked), nullptr, {}, Bound},
    {"cuda.one_row", "cuda", ANYDML_ON_CUDA(CreateGemmOneRowCuda), BetterByTiles, {}, Bound},
    {"cuda.windows", "cuda", ANYDML_ON_CUDA(CreateGemmWindowsCuda), BetterByLibrary, {}, Bound},
    {"cuda.cublaslt", "cuda", ANYDML_ON_CUDA(CreateGemmCublas), BetterByTiles, {}, Bound},
    {"cuda.product_first", "cuda", ANYDML_ON_CUDA(CreateGemmInTwo), BetterInOne, {}, Bound},
    {"cuda.tiled", "cuda", ANYDML_ON_CUDA(CreateGemmTiledCuda), nullptr, {}, Bound},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateGemmReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

}  // namespace

std::span<const Implementation<GemmProblem>> GemmImplementations() { return kImplementations; }
std::span<const char* const> GemmImplementationNames() { return kNames; }

}  // namespace anydml
