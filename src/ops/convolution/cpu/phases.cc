// The phases of a backward convolution one after the other, each a kernel of its own.
#include "ops/convolution/phases.h"

#include <algorithm>
#include <utility>

#include "kernel/composite.h"
#include "ops/operator_table.h"

namespace anydml {
namespace {

constexpr uint64_t kMaxPhases = 64;

bool MakePart(const ConvolutionProblem& whole, std::array<uint32_t, kMaxSpatial> phases,
              ConvolutionProblem* part) {
  *part = whole;
  ConvolutionShape& shape = part->shape;
  shape.backward = false;
  for (uint32_t d = 0; d < kMaxSpatial; ++d) {
    Phase phase;
    if (!MakePhase(whole.shape.windows[d], phases[d], &phase)) return false;
    shape.windows[d] = phase.window;
    shape.input.offset += phase.first_input * shape.input.spatial[d];
    shape.filter.offset += phase.last_tap * shape.filter.spatial[d];
    shape.filter.spatial[d] *= uint64_t{0} - phase.tap_step;
    shape.output.offset += phases[d] * shape.output.spatial[d];
    shape.output.spatial[d] *= whole.shape.windows[d].stride;
  }
  if (std::ranges::any_of(shape.windows, [](const ConvolutionWindow& w) { return w.reached == 0; })) {
    shape.input_channels = 1;  // no input is seen: the least that gives bias and activation
    for (ConvolutionWindow& window : shape.windows) window.taps = 1;
  }
  return true;
}

class ConvolutionPhases final : public CompositeKernel {
 public:
  void Add(LoweredOperator part) { parts_.push_back(AddPart(part.implementation, std::move(part.kernel))); }

  bool packs_input(uint32_t input) const override {
    return std::all_of(parts_.begin(), parts_.end(),
                       [&](uint32_t part) { return PartPacksInput(part, input); });
  }
  Status Initialize(const KernelArguments& arguments) const override {
    for (const uint32_t part : parts_) ANYDML_RETURN_IF_ERROR(InitializePart(part, arguments));
    return {};
  }
  Status Run(const KernelArguments& arguments) const override {
    for (const uint32_t part : parts_) ANYDML_RETURN_IF_ERROR(RunPart(part, arguments));
    return {};
  }

 private:
  std::vector<uint32_t> parts_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionPhases(const ConvolutionProblem& problem,
                                                      const LowerContext& context, std::string* why_not) {
  if (!problem.shape.backward) {
    *why_not = "it is forward";
    return nullptr;
  }
  std::array<uint32_t, kMaxSpatial> counts;
  uint64_t all = 1;
  for (uint32_t d = 0; d < kMaxSpatial; ++d) {
    const ConvolutionWindow& window = problem.shape.windows[d];
    counts[d] = std::min(window.stride, window.output);
    if (counts[d] > kMaxPhases || (all *= counts[d]) > kMaxPhases) {
      *why_not = StrCat("its strides have more than ", kMaxPhases, " phases");
      return nullptr;
    }
  }
  auto kernel = std::make_unique<ConvolutionPhases>();
  for (uint32_t number = 0; number < all; ++number) {
    const std::array<uint32_t, kMaxSpatial> phases = {number / counts[2] / counts[1],
                                                      number / counts[2] % counts[1], number % counts[2]};
    ConvolutionProblem part;
    if (!MakePart(problem, phases, &part)) {
      *why_not = "its taps reach too far";
      return nullptr;
    }
    LoweredOperator lowered;
    const Status status =
        ChooseKernel(OperatorTableOf(context.backend).convolution, part, context.ForPart(), &lowered);
    if (!status.ok()) {
      *why_not = status.message();
      return nullptr;
    }
    kernel->Add(std::move(lowered));
  }
  return kernel;
}

}  // namespace anydml
