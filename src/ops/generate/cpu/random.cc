#include "ops/generate/random.h"

#include <algorithm>

#include "ops/common/nest_parts.h"

namespace anydml {
namespace {

// Blocks that are made at a time, one per vector lane.
constexpr uint64_t kLanes = 16;
constexpr uint64_t kBatchWords = 4 * kLanes;

// The words of kLanes blocks from `state` on, in order.
void MakeBatch(const PhiloxState& state, uint32_t* words) {
  uint32_t c[4][kLanes];
  for (uint32_t i = 0; i < 4; ++i) std::fill_n(c[i], kLanes, state.counter[i]);
  if (state.counter[0] <= ~uint32_t{0} - kLanes) {
    for (uint32_t lane = 0; lane < kLanes; ++lane) c[0][lane] += lane;
  } else {  // with a carry
    for (uint64_t lane = 0; lane < kLanes; ++lane) {
      PhiloxState at = state;
      Advance(&at, lane);
      for (uint32_t i = 0; i < 4; ++i) c[i][lane] = at.counter[i];
    }
  }
  uint32_t key0 = state.key[0], key1 = state.key[1];
  for (uint32_t round = 0; round < kPhiloxRounds; ++round) {
    for (uint64_t lane = 0; lane < kLanes; ++lane) {
      PhiloxRound(&c[0][lane], &c[1][lane], &c[2][lane], &c[3][lane], key0, key1);
    }
    key0 += kPhiloxKeyStep0;
    key1 += kPhiloxKeyStep1;
  }
  for (uint64_t lane = 0; lane < kLanes; ++lane) {
    for (uint32_t i = 0; i < 4; ++i) words[4 * lane + i] = c[i][lane];
  }
}

class RandomCpu final : public Kernel {
 public:
  RandomCpu(const RandomProblem& problem, uint32_t threads)
      : problem_(problem), count_(ElementCount(problem.output)) {
    for (uint32_t d = 0; d < problem.output.rank; ++d) {
      nest_.Append(problem.output.sizes[d], {problem.output.strides[d]});
    }
    contiguous_ = nest_.rank == 0 || (nest_.rank == 1 && nest_.loops[0].strides[0] == 1);
    parts_ = PartsForBytes(count_ * sizeof(uint32_t), threads);
  }

  Status Run(const KernelArguments& arguments) const override {
    const PhiloxState state =
        LoadPhiloxState(reinterpret_cast<const uint32_t*>(arguments.inputs[0].data), problem_.state_stride);
    auto* const output = reinterpret_cast<uint32_t*>(arguments.outputs[0].data);
    const uint64_t batches = (count_ + kBatchWords - 1) / kBatchWords;
    ParallelFor(arguments.executor, parts_, [&](uint32_t part) {
      const uint64_t end = PartBegin(batches, part + 1, parts_);
      PhiloxState at = state;
      const uint64_t begin = PartBegin(batches, part, parts_);
      Advance(&at, begin * kLanes);
      for (uint64_t batch = begin; batch < end; ++batch, Advance(&at, kLanes)) {
        WriteBatch(at, batch * kBatchWords, output);
      }
    });
    if (problem_.has_output_state) {
      WriteState(state, reinterpret_cast<uint32_t*>(arguments.outputs[1].data));
    }
    return {};
  }

 private:
  void WriteBatch(const PhiloxState& state, uint64_t first, uint32_t* output) const {
    const uint64_t count = std::min(kBatchWords, count_ - first);
    if (contiguous_ && count == kBatchWords) {
      MakeBatch(state, output + first);
      return;
    }
    uint32_t words[kBatchWords];
    MakeBatch(state, words);
    for (uint64_t i = 0; i < count; ++i) output[OffsetsOf(nest_, first + i)[0]] = words[i];
  }

  void WriteState(PhiloxState state, uint32_t* words) const {
    Advance(&state, (count_ + 3) / 4);
    const uint64_t step = problem_.output_state_stride;
    for (uint64_t i = 0; i < 4; ++i) words[i * step] = state.counter[i];
    for (uint64_t i = 0; i < 2; ++i) words[(4 + i) * step] = state.key[i];
  }

  RandomProblem problem_;
  uint64_t count_;
  LoopNest<1> nest_;
  bool contiguous_;
  uint32_t parts_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateRandomCpu(const RandomProblem& problem, const LowerContext& context,
                                              std::string*) {
  return std::make_unique<RandomCpu>(problem, context.threads);
}

}  // namespace anydml
