#include "ops/attention/problem.h"

namespace anydml::family::attention {
namespace {

// With few queries, the products of the separate steps read keys and values once, in place.
std::string BetterInSteps(const AttentionProblem& problem, const LowerContext&) {
  constexpr uint64_t kFew = 4;
  return problem.group * problem.queries > kFew ? "" : "there are few queries for a head of keys";
}

constexpr Implementation<AttentionProblem> kEntries[] = {
    {"cpu.few", CreateAttentionFewCpu, nullptr, {}, AttentionBound},
    {"cpu.blocks", CreateAttentionBlocksCpu, BetterInSteps, {}, AttentionBound},
    {"cpu.steps", CreateAttentionStepsCpu, nullptr, {}, AttentionBound},
    {.name = "cpu.reference", .create = CreateAttentionReference, .abilities = kIsReference},
};

}  // namespace

void RegisterCpu(Column* column) { column->Add<AttentionProblem>(kEntries); }

}  // namespace anydml::family::attention
