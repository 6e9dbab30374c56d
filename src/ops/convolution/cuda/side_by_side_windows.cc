// Windows that do not overlap, as when a picture is cut into patches: each window's elements are copied
// together first and become the channels of a convolution with one tap.
#include "kernel/composite.h"
#include "ops/convolution/problem.h"
#include "ops/element/problem.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

std::string WhyNot(const ConvolutionShape& shape) {
  if (shape.backward || shape.outer[1] != 1 || shape.Taps() == 1) {
    return "it is for one group, forward, and more than one tap";
  }
  for (const ConvolutionWindow& w : shape.windows) {
    const bool apart = w.stride == w.taps && (w.dilation == 1 || w.taps == 1);
    const bool inside = w.start_padding == 0 && w.reached == w.output &&
                        (uint64_t{w.output} - 1) * w.stride + w.taps <= w.input;
    if (!apart || !inside) return "windows overlap, leave something out or reach beyond the input";
  }
  constexpr uint64_t kMost = uint64_t{1} << 31;
  if (shape.outer[0] * shape.Positions() > kMost / shape.Steps()) return "there are more than 2^31 elements";
  uint64_t next = 1;
  for (uint32_t d = kMaxSpatial; d-- > 0;) {
    if (shape.windows[d].taps > 1 && shape.filter.spatial[d] != next) return "the filter is not packed";
    next *= shape.windows[d].taps;
  }
  if (shape.input_channels > 1 && shape.filter.channel != next) return "the filter is not packed";
  return shape.input.offset != 0 || shape.filter.offset != 0
             ? "a tensor does not begin with its first element"
             : "";
}

// From the input to [image][position][channel and tap].
ElementProblem CopyOf(const ConvolutionProblem& problem) {
  const ConvolutionShape& s = problem.shape;
  ElementProblem copy;
  ElementOperand from = {problem.type, {}}, to = {problem.type, {}};
  const auto add = [&](uint64_t size, uint64_t stride) {
    from.strides[copy.rank] = stride;
    copy.sizes[copy.rank++] = size;
  };
  add(s.outer[0], s.input.outer[0]);
  for (uint32_t d = 0; d < kMaxSpatial; ++d)
    add(s.windows[d].output, s.input.spatial[d] * s.windows[d].stride);
  add(s.input_channels, s.input.channel);
  for (uint32_t d = 0; d < kMaxSpatial; ++d) add(s.windows[d].taps, s.input.spatial[d]);
  uint64_t stride = 1;
  for (uint32_t d = copy.rank; d-- > 0;) {
    to.strides[d] = stride;
    stride *= copy.sizes[d];
  }
  copy.inputs = {from};
  copy.outputs = {to};
  copy.program.Store(0, copy.program.Load(0, Class::kF32), Class::kF32);
  return copy;
}

// The convolution of the copy.
ConvolutionProblem OfPatches(const ConvolutionProblem& problem) {
  ConvolutionProblem patches = problem;
  ConvolutionShape& s = patches.shape;
  s.input_channels = problem.shape.Steps();
  s.input = {};
  s.input.channel = 1;
  uint64_t stride = s.input_channels;
  for (uint32_t d = kMaxSpatial; d-- > 0;) {
    const uint32_t positions = s.windows[d].output;
    s.windows[d] = {.input = positions, .output = positions, .reached = positions};
    s.input.spatial[d] = stride;
    stride *= positions;
  }
  s.input.outer[0] = stride;
  s.filter.channel = 1;
  s.filter.spatial = {};
  return patches;
}

class ConvolutionApart final : public CompositeKernel {
 public:
  ConvolutionApart(uint64_t bytes, LoweredOperator copy, LoweredOperator product) {
    patches_ = AddScratch("patches", bytes);
    copy_ = AddPart(copy.implementation, std::move(copy.kernel));
    product_ = AddPart(product.implementation, std::move(product.kernel));
  }

  bool packs_input(uint32_t input) const override { return input == 1 && PartPacksInput(product_, 1); }
  Status Initialize(const KernelArguments& arguments) const override {
    return InitializePart(product_, arguments);
  }

  Status Run(const KernelArguments& arguments) const override {
    const Buffer patches = patches_.In(arguments.temporary);
    KernelArguments part = arguments;
    part.inputs = arguments.inputs.first(1);
    part.outputs = {&patches, 1};
    ANYDML_RETURN_IF_ERROR(RunPart(copy_, part));
    const Buffer inputs[] = {patches, arguments.inputs[1], arguments.inputs[2]};
    part = arguments;
    part.inputs = inputs;
    return RunPart(product_, part);
  }

 private:
  ScratchLayout::Piece patches_;
  uint32_t copy_, product_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionApart(const ConvolutionProblem& problem,
                                                     const LowerContext& context, std::string* why_not) {
  *why_not = WhyNot(problem.shape);
  if (!why_not->empty()) return nullptr;
  const ElementProblem copy = CopyOf(problem);
  LoweredOperator copying, product;
  Status status = ChooseKernel(copy, context.ForPart(), &copying);
  if (status.ok()) status = ChooseKernel(OfPatches(problem), context.ForPart(), &product);
  if (!status.ok()) {
    *why_not = status.message();
    return nullptr;
  }
  const uint64_t bytes = copy.Elements() * (BitSize(problem.type) / 8);
  return std::make_unique<ConvolutionApart>(bytes, std::move(copying), std::move(product));
}

}  // namespace anydml
