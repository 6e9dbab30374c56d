#include "ops/attention/problem.h"

namespace anydml::family::attention {
namespace {

// If there are enough blocks of 128 queries for the device, and enough columns to fill them.
std::string BetterWithoutBlocks(const AttentionProblem& problem, const LowerContext& context) {
  constexpr uint64_t kBlock = 128, kFewColumns = 96, kFewKeys = 1024, kManyOfMultiprocessor = 8;
  if (problem.key.columns < kFewColumns || problem.value.columns < kFewColumns) return "heads of few columns";
  const uint64_t blocks = problem.batch * problem.heads * ((problem.queries + kBlock - 1) / kBlock);
  if (blocks < kManyOfMultiprocessor * context.device->multiprocessors)
    return "there are few blocks of queries";
  return problem.keys < kFewKeys ? "there are few keys" : "";
}

// For weights that are rounded to FLOAT16 before they are multiplied by values up to 1.
Exactness BoundOfHalfWeights(const AttentionProblem& problem) {
  Exactness exactness = AttentionBound(problem);
  exactness.absolute += 0x1p-11;
  return exactness;
}

// A few queries take little time, most of which would be cuDNN's start-up.
std::string BetterWithoutCudnn(const AttentionProblem& problem, const LowerContext& context) {
  constexpr uint64_t kFewQueries = 256, kBlock = 128;
  if (problem.queries <= kFewQueries) return StrCat("there are no more than ", kFewQueries, " queries");
  const uint64_t blocks = problem.batch * problem.heads * ((problem.queries + kBlock - 1) / kBlock);
  return blocks >= context.device->multiprocessors ? "" : "there are few blocks of queries";
}

constexpr Implementation<AttentionProblem> kEntries[] = {
    {"cuda.few", CreateAttentionFewCuda, nullptr, {}, AttentionBound},
    {"cuda.cudnn", CreateAttentionCudnn, BetterWithoutCudnn, {}, BoundOfHalfWeights},
    {"cuda.tiles", CreateAttentionTilesCuda, nullptr, {}, AttentionBound},
    {"cuda.float_tiles", CreateAttentionFloatTilesCuda, nullptr, {}, AttentionBound},
    {"cuda.float_blocks", CreateAttentionFloatBlocksCuda, BetterWithoutBlocks, {}, AttentionBound},
    {.name = "cuda.steps",
     .create = CreateAttentionStepsCuda,
     .bound = AttentionBound,
     .abilities = kStoresWeights},
};

}  // namespace

void RegisterCuda(Column* column) { column->Add<AttentionProblem>(kEntries); }

}  // namespace anydml::family::attention
