#include <cmath>

#include "ops/attention/problem.h"

namespace anydml {
namespace {

// Of numbers up to 1 with biases up to 1: what the sums of both products may be off (contract: their length *
// 2^-24 times the sum of the magnitudes), where the error of a logit is one of its power. Values that are
// added to logits cost their last digits, unless they make powers vanish.
Exactness Bound(const AttentionProblem& problem) {
  const auto size = static_cast<double>(problem.key.columns);
  const auto keys = static_cast<double>(problem.keys);
  const double filter = problem.mask.value < -64 ? 0 : std::abs(double{problem.mask.value});
  const double logit = 4 * size * size * std::abs(double{problem.scale}) + 2 + filter;
  Exactness exactness;
  exactness.absolute = 0x1p-24 * (4 * logit + 4 * keys + 16);
  exactness.float32_ulps = 8;
  exactness.float16_ulps = 1;
  return exactness;
}

// The products of the steps read keys and values of few queries once, where they are.
std::string BetterInSteps(const AttentionProblem& problem, const LowerContext&) {
  constexpr uint64_t kFew = 4;
  return problem.group * problem.queries > kFew ? "" : "there are few queries for a head of keys";
}

// Where a device has enough blocks of 128 queries, and columns that fill them.
std::string BetterWithoutBlocks(const AttentionProblem& problem, const LowerContext& context) {
  constexpr uint64_t kBlock = 128, kFewColumns = 96, kFewKeys = 1024, kManyOfMultiprocessor = 8;
  if (problem.key.columns < kFewColumns || problem.value.columns < kFewColumns) return "heads of few columns";
  const uint64_t blocks = problem.batch * problem.heads * ((problem.queries + kBlock - 1) / kBlock);
  if (blocks < kManyOfMultiprocessor * context.device->multiprocessors)
    return "there are few blocks of queries";
  return problem.keys < kFewKeys ? "there are few keys" : "";
}

// Where weights are rounded to FLOAT16 before they are multiplied with values up to 1.
Exactness BoundOfHalfWeights(const AttentionProblem& problem) {
  Exactness exactness = Bound(problem);
  exactness.absolute += 0x1p-11;
  return exactness;
}

// Few queries are soon done, and what cuDNN needs to begin is most of the time.
std::string BetterWithoutCudnn(const AttentionProblem& problem, const LowerContext& context) {
  constexpr uint64_t kFewQueries = 256, kBlock = 128;
  if (problem.queries <= kFewQueries) return StrCat("there are no more than ", kFewQueries, " queries");
  const uint64_t blocks = problem.batch * problem.heads * ((problem.queries + kBlock - 1) / kBlock);
  return blocks >= context.device->multiprocessors ? "" : "there are few blocks of queries";
}

constexpr Implementation<AttentionProblem> kImplementations[] = {
    {"cpu.few", "cpu", ANYDML_ON_CPU(CreateAttentionFewCpu), nullptr, {}, Bound},
    {"cpu.blocks", "cpu", ANYDML_ON_CPU(CreateAttentionBlocksCpu), BetterInSteps, {}, Bound},
    {"cpu.steps", "cpu", ANYDML_ON_CPU(CreateAttentionStepsCpu), nullptr, {}, Bound},
    {"cuda.few", "cuda", ANYDML_ON_CUDA(CreateAttentionFewCuda), nullptr, {}, Bound},
    {"cuda.cudnn", "cuda", ANYDML_ON_CUDA(CreateAttentionCudnn), BetterWithoutCudnn, {}, BoundOfHalfWeights},
    {"cuda.tiles", "cuda", ANYDML_ON_CUDA(CreateAttentionTilesCuda), nullptr, {}, Bound},
    {"cuda.float_tiles", "cuda", ANYDML_ON_CUDA(CreateAttentionFloatTilesCuda), nullptr, {}, Bound},
    {"cuda.float_blocks",
     "cuda",
     ANYDML_ON_CUDA(CreateAttentionFloatBlocksCuda),
     BetterWithoutBlocks,
     {},
     Bound},
    {"cuda.steps", "cuda", ANYDML_ON_CUDA(CreateAttentionStepsCuda), nullptr, {}, Bound},
    {"cpu.reference", "cpu", ANYDML_ON_CPU(CreateAttentionReference)},
};
constexpr auto kNames = ImplementationNames(kImplementations);

}  // namespace

std::span<const Implementation<AttentionProblem>> AttentionImplementations() { return kImplementations; }
std::span<const char* const> AttentionImplementationNames() { return kNames; }

}  // namespace anydml
