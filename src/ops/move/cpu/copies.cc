#include <algorithm>
#include <vector>

#include "ops/common/nest_copy.h"
#include "ops/common/nest_parts.h"
#include "ops/common/stream_copy.h"
#include "ops/move/problem.h"

namespace anydml {
namespace {

class MoveCpu final : public Kernel {
 public:
  MoveCpu(const MoveProblem& problem, uint32_t threads) : fill_(problem.fill) {
    const uint32_t width = BitSize(problem.type) / 8;
    for (const std::vector<MoveCopy>& copies : problem.stages) {
      Stage& stage = stages_.emplace_back();
      uint64_t bytes = 0;
      for (const MoveCopy& copy : copies) bytes += ElementsOf(copy.map) * width;
      for (const MoveCopy& copy : copies) {
        for (const FlatMap& map : Flatten(copy.map)) {
          stage.steps.emplace_back(copy, map, width, bytes >= kStreamBytes);
        }
      }
      stage.parts = PartsForStage(bytes, stage.steps.size(), threads);
    }
  }

  Status Run(const KernelArguments& arguments) const override {
    for (const Stage& stage : stages_) {
      ParallelFor(arguments.executor, stage.parts, [&](uint32_t p) {
        for (const Step& step : stage.steps) {
          step.copy.Run(SourceOf(step, arguments), arguments.outputs[step.output].data + step.to, p,
                        stage.parts);
        }
      });
    }
    return {};
  }

 private:
  struct Step {
    Step(const MoveCopy& move, const FlatMap& map, uint32_t width, bool streams)
        : source(move.source),
          input(move.from),
          output(move.to),
          from(map.from * width),
          to(map.to * width),
          copy(map.nest, width, streams) {}

    MoveCopy::Source source;
    uint32_t input, output;
    int64_t from, to;  // in bytes
    NestCopy copy;
  };
  struct Stage {
    std::vector<Step> steps;
    uint32_t parts = 1;
  };

  static uint64_t ElementsOf(const AffineMap& map) {
    uint64_t count = 1;
    for (uint32_t d = 0; d < map.rank; ++d) count *= map.loops[d].size;
    return count;
  }

  // Copies that go through the same memory, as those of SPLIT and JOIN do, take turns while it is in a cache.
  static uint32_t PartsForStage(uint64_t bytes, size_t steps, uint32_t threads) {
    const uint32_t parts = PartsForBytes(bytes, threads);
    constexpr uint64_t kTurn = uint64_t{512} << 10;
    return steps == 1 ? parts
                      : std::max(parts, static_cast<uint32_t>(std::min<uint64_t>(bytes / kTurn, 1 << 16)));
  }

  const std::byte* SourceOf(const Step& step, const KernelArguments& arguments) const {
    switch (step.source) {
      case MoveCopy::kInput:
        return arguments.inputs[step.input].data + step.from;
      case MoveCopy::kOutput:
        return arguments.outputs[step.input].data + step.from;
      default:
        return reinterpret_cast<const std::byte*>(&fill_);
    }
  }

  uint64_t fill_;
  std::vector<Stage> stages_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateMoveCpu(const MoveProblem& problem, const LowerContext& context,
                                            std::string*) {
  return std::make_unique<MoveCpu>(problem, context.threads);
}

}  // namespace anydml
