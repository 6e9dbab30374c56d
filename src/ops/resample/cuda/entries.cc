#include "ops/resample/problem.h"

namespace anydml::family::resample {
namespace {

constexpr Implementation<ResampleProblem> kEntries[] = {
    {"cuda.copy_rows", CreateResampleCopyRowsCuda},
    {"cuda.copy", CreateResampleCopyCuda},
    {"cuda.bilinear", CreateResampleBilinearCuda},
    {"cuda.sums", CreateResampleSumsCuda},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<ResampleProblem>(kEntries); }

}  // namespace anydml::family::resample
