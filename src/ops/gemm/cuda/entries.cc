#include "ops/gemm/problem.h"
#include "ops/gemm/softmax.h"

namespace anydml::family::gemm {
namespace {

std::string BetterByTiles(const GemmProblem& problem, const LowerContext&) {
  constexpr uint64_t kSmall = uint64_t{1} << 17;
  return problem.Batches() * problem.m * problem.n * problem.k < kSmall ? "a small product" : "";
}

// Small products are done before a second kernel would start.
std::string BetterInOne(const GemmProblem& problem, const LowerContext&) {
  constexpr uint64_t kLarge = uint64_t{1} << 24, kSmall = uint64_t{1} << 20;
  const uint64_t work = problem.Batches() * problem.m * problem.n * problem.k;
  const auto& activation = problem.activation.instructions;
  const bool is_relu = activation.size() == 1 && activation[0].function == ElementFunction::kRelu;
  const bool small = activation.empty() ? work < kLarge : is_relu && work < kSmall;
  return small ? "a small product adds C by itself" : "";
}

// The library's tiles of 128 x 128 are too large for products of about 1024 x 1024 on an H200: half of the
// multiprocessors would have none. For larger and smaller ones its kernels are better than ours.
std::string BetterByLibrary(const GemmProblem& problem, const LowerContext& context) {
  constexpr uint64_t kTile = 128, kManySteps = 512;
  const auto tiles = [](uint64_t size) { return (size + kTile - 1) / kTile; };
  const uint64_t multiprocessors = context.device->multiprocessors;
  const bool about_half = problem.m < multiprocessors * kTile && problem.n < multiprocessors * kTile &&
                          tiles(problem.m) * tiles(problem.n) <= multiprocessors / 2 &&
                          tiles(problem.m) * tiles(problem.n) > multiprocessors * 3 / 8;
  return about_half && problem.k >= kManySteps ? "" : "cuBLASLt's tiles fit as well";
}

constexpr Implementation<GemmProblem> kGemm[] = {
    {"cuda.one_row", CreateGemmOneRowCuda, BetterByTiles, {}, GemmBound},
    {"cuda.windows", CreateGemmWindowsCuda, BetterByLibrary, {}, GemmBound},
    {"cuda.cublaslt", CreateGemmCublas, BetterByTiles, {}, GemmBound},
    {.name = "cuda.product_first",
     .create = CreateGemmInTwo,
     .better_not = BetterInOne,
     .bound = GemmBound,
     .abilities = kActivatesLater},
    {.name = "cuda.tiled",
     .create = CreateGemmTiledCuda,
     .bound = GemmBound,
     .abilities = kWithoutTensorCores},
};

constexpr Implementation<GemmSoftmaxProblem> kGemmSoftmax[] = {
    {"cuda.then_softmax", CreateGemmThenSoftmax},
};

}  // namespace

void RegisterCuda(Column* column) {
  column->Add<GemmProblem>(kGemm);
  column->Add<GemmSoftmaxProblem>(kGemmSoftmax);
}

}  // namespace anydml::family::gemm
