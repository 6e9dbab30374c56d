#include <utility>
#include <vector>

#include "ops/device/cuda/copies.cuh"
#include "ops/move/problem.h"

namespace anydml {
namespace {

PlacedCopy::Source SourceOf(MoveCopy::Source source) {
  switch (source) {
    case MoveCopy::kInput:
      return PlacedCopy::kInput;
    case MoveCopy::kOutput:
      return PlacedCopy::kOutput;
    default:
      return PlacedCopy::kFill;
  }
}

class MoveCuda final : public Kernel {
 public:
  explicit MoveCuda(const MoveProblem& problem) : fill_(problem.fill) {
    for (const std::vector<MoveCopy>& stage : problem.stages) {
      std::vector<PlacedCopy> copies;
      for (const MoveCopy& copy : stage) {
        for (const FlatMap& map : Flatten(copy.map)) {
          copies.push_back({SourceOf(copy.source), copy.from, copy.to, map.from, map.to, map.nest});
        }
      }
      stages_.emplace_back(std::move(copies), BitSize(problem.type) / 8);
    }
  }

  Status Run(const KernelArguments& arguments) const override {
    KernelChain chain(arguments.stream);
    for (const DeviceCopies& stage : stages_) LaunchCopies(stage, arguments, fill_, &chain);
    return {};
  }

 private:
  uint64_t fill_;
  std::vector<DeviceCopies> stages_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateMoveCuda(const MoveProblem& problem, const LowerContext&, std::string*) {
  return std::make_unique<MoveCuda>(problem);
}

}  // namespace anydml
