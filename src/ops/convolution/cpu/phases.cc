// Runs the phases of a backward convolution one after the other, each with its own kernel and output memory,
// and then combines them.
#include "ops/convolution/phases.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "kernel/composite.h"
#include "ops/convolution/cpu/phase_memory.h"
#include "ops/implementation_list.h"

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
    shape.input_channels = 1;  // the phase sees no input: the cheapest convolution that gives bias and
                               // activation
    for (ConvolutionWindow& window : shape.windows) window.taps = 1;
  }
  return true;
}

class ConvolutionPhases final : public CompositeKernel {
 public:
  ConvolutionPhases(const ConvolutionProblem& problem, uint32_t threads)
      : width_(BitSize(problem.type) / 8),
        planes_(PhasePlanes::CreateJoined(problem, threads)),
        joined_(planes_.has_value()) {
    const ConvolutionShape& shape = problem.shape;
    if (joined_ && problem.bias) {
      bias_stride_ = *problem.bias;
      phases_ = shape.Taps();
      bias_ = AddScratch("bias of all phases", shape.outer[1] * shape.output_channels * phases_ * width_);
    }
    if (!joined_) {
      planes_ = PhasePlanes::Create(problem, threads);
      filter_ = TurnedFilter::Create(problem, threads);
    }
    if (planes_) output_ = AddScratch("outputs of each phase", planes_->copy.bytes());
    if (filter_) turned_ = AddScratch("the filter", filter_->copy.bytes());
  }

  bool joined() const { return joined_; }
  const std::optional<PhasePlanes>& planes() const { return planes_; }
  const std::optional<TurnedFilter>& filter() const { return filter_; }

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
    std::array<Buffer, 3> inputs = {arguments.inputs[0], arguments.inputs[1]};
    if (arguments.inputs.size() > 2) inputs[2] = arguments.inputs[2];
    Buffer output = arguments.outputs[0];
    if (filter_) {
      inputs[1] = turned_.In(arguments.temporary);
      filter_->copy.Run(arguments.inputs[1].data + filter_->offset * width_, inputs[1].data,
                        arguments.executor);
    }
    if (bias_.bytes != 0) {
      inputs[2] = bias_.In(arguments.temporary);
      RepeatBias(arguments.inputs[2].data, inputs[2].data);
    }
    if (planes_) output = output_.In(arguments.temporary);
    KernelArguments own = arguments;
    own.inputs = std::span(inputs).first(arguments.inputs.size());
    own.outputs = {&output, 1};
    for (const uint32_t part : parts_) ANYDML_RETURN_IF_ERROR(RunPart(part, own));
    if (planes_) {
      planes_->copy.Run(output.data, arguments.outputs[0].data + planes_->offset * width_,
                        arguments.executor);
    }
    return {};
  }

 private:
  // Repeats each channel's number for all of its phases.
  void RepeatBias(const std::byte* from, std::byte* to) const {
    for (std::byte* const end = to + bias_.bytes; to < end; from += bias_stride_ * width_) {
      for (uint64_t i = 0; i < phases_; ++i, to += width_) std::memcpy(to, from, width_);
    }
  }

  uint64_t width_;  // of an element
  std::optional<PhasePlanes> planes_;
  bool joined_;  // all phases are one part
  std::optional<TurnedFilter> filter_;
  uint64_t bias_stride_ = 0, phases_ = 0;
  ScratchLayout::Piece bias_, output_, turned_;
  std::vector<uint32_t> parts_;
};

Status ChoosePhase(const ConvolutionProblem& part, const LowerContext& context, ConvolutionPhases* kernel) {
  LoweredOperator lowered;
  ANYDML_RETURN_IF_ERROR(ChooseKernel(part, context.ForPart(), &lowered));
  kernel->Add(std::move(lowered));
  return {};
}

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
  auto kernel = std::make_unique<ConvolutionPhases>(problem, context.threads);
  if (kernel->joined()) {
    const Status status = ChoosePhase(JoinPhases(problem, *kernel->planes()), context, kernel.get());
    if (status.ok()) return kernel;
    *why_not = status.message();
    return nullptr;
  }
  ConvolutionProblem whole = problem;
  if (kernel->filter()) whole.shape.filter = kernel->filter()->tensor;
  for (uint32_t number = 0; number < all; ++number) {
    const std::array<uint32_t, kMaxSpatial> phases = {number / counts[2] / counts[1],
                                                      number / counts[2] % counts[1], number % counts[2]};
    ConvolutionProblem part;
    if (!MakePart(whole, phases, &part)) {
      *why_not = "its taps reach too far";
      return nullptr;
    }
    if (kernel->planes()) part.shape.output = kernel->planes()->Phase(number);
    const Status status = ChoosePhase(part, context, kernel.get());
    if (!status.ok()) {
      *why_not = status.message();
      return nullptr;
    }
  }
  return kernel;
}

}  // namespace anydml
