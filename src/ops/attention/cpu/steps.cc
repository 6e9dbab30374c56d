#include "ops/attention/steps.h"

#include <algorithm>

#include "ops/attention/cpu/row_loops.h"
#include "ops/common/nest_parts.h"

namespace anydml {
namespace {

class AttentionStepsCpu final : public AttentionSteps {
 public:
  AttentionStepsCpu(const AttentionProblem& problem, const LowerContext& context)
      : AttentionSteps(problem, /*for_libraries=*/false),
        loops_(problem.type, context.threads),
        threads_(context.threads) {}

 private:
  void Join(const AttentionJoin& join, const AttentionJoinMemory& memory,
            const KernelArguments& arguments) const override {
    loops_.Join(join, memory, arguments.executor);
  }

  void Weigh(float* logits, const AttentionWeightsMemory& memory,
             const KernelArguments& arguments) const override {
    const uint64_t rows = weights().Rows(), keys = weights().keys;
    const uint64_t bytes = rows * keys * sizeof(float);
    const auto parts = static_cast<uint32_t>(std::min<uint64_t>(rows, PartsForBytes(bytes, threads_)));
    ParallelFor(arguments.executor, parts, [&](uint32_t part) {
      const uint64_t end = PartBegin(rows, part + 1, parts);
      for (uint64_t row = PartBegin(rows, part, parts); row < end; ++row) {
        const uint64_t head = row / weights().queries;
        loops_.Weigh(weights(), memory, head / weights().heads, head % weights().heads,
                     row % weights().queries, 1, keys, logits + row * keys);
      }
    });
  }

  void LeaveOutUnseen(const float* weights, const AttentionWeightsMemory& memory,
                      const KernelArguments& arguments) const override {
    const AttentionProblem& p = problem();
    const AttentionView& values = value().view;
    const auto* const data = reinterpret_cast<const float*>(BufferOf(value(), arguments).data);
    for (uint64_t row = 0; row < this->weights().Rows(); ++row) {
      const uint64_t head = row / p.queries, q = row % p.queries, b = head / p.heads, h = head % p.heads;
      loops_.ReplaceNans(weights + row * p.keys, KeysOf(this->weights(), memory.lengths, b, q),
                         data + values.At(b, h / p.group, 0), values.row, p.value.columns,
                         p.output.At(b, h, q), p.output.column, arguments.outputs[0].data);
    }
  }

  AttentionRowLoops loops_;
  uint32_t threads_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateAttentionStepsCpu(const AttentionProblem& problem,
                                                      const LowerContext& context, std::string* why_not) {
  return CreateAttentionSteps<AttentionStepsCpu>(problem, context, why_not);
}

}  // namespace anydml
