#include "ops/convolution/tail.h"

#include <algorithm>

#include "kernel/composite.h"
#include "ops/convolution/cpu/channels_last_choice.h"
#include "ops/convolution/cpu/pixel_tile.h"
#include "ops/convolution/shape.h"
#include "ops/convolution/tail_steps.h"
#include "ops/implementation_list.h"
#include "ops/numbers/epilogue.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

using List = std::vector<Implementation<ConvolutionProblem>>;

List WithTails(const DeviceTraits& device) {
  List list;
  for (const auto& implementation : ImplementationsFor<ConvolutionProblem>(device)) {
    if ((implementation.abilities & kAppliesTail) != 0) list.push_back(implementation);
  }
  return list;
}

ConvolutionProblem WithTail(const OperatorDesc& desc, const ConvolutionTailDesc& given) {
  const TensorDesc& output = ConvolutionDesc::From(desc).output;
  ConvolutionProblem problem = ConvolutionProblemOf(desc, output);
  ConvolutionTail& tail = problem.tail.emplace();
  if (given.normalizes()) {
    auto& normalization = tail.normalization.emplace();
    for (size_t i = 0; i < 4; ++i) normalization.strides[i] = given.tensors[i]->strides[1];
    normalization.epsilon = given.epsilon;
    normalization.limits = given.normalized;
  }
  if (given.adds()) {
    tail.addition = {ConvolutionProblemOf(desc, *given.tensors.back()).shape.output, given.added};
  }
  return problem;
}

// Packed, in the memory order of `tensor`.
TensorDesc PackedLike(const TensorDesc& tensor) {
  TensorDesc packed = tensor;
  packed.owned_by_dml = false;
  SetPackedStrides(&packed);
  if (tensor.sizes[1] > 1 && tensor.strides[1] == 1) {
    uint32_t stride = tensor.sizes[1];
    packed.strides[1] = 1;
    for (uint32_t d = tensor.rank; d-- > 2; stride *= tensor.sizes[d]) packed.strides[d] = stride;
  }
  packed.total_bytes = MinimumTotalBytes(packed);
  return packed;
}

// For convolutions that graphs make channels-last, whose kernels can apply tails.
bool GainsByTailInVectors(const ConvolutionProblem& problem) {
  const ConvolutionShape& s = problem.shape;
  constexpr uint32_t kWide = 8;
  const uint32_t lanes = ConvolutionPixelTiles().lanes;
  return lanes >= kWide && !s.backward && s.outer[1] == 1 && s.output_channels >= lanes &&
         TilesCanFinish(problem);
}

// Whether the output may be in the place of the added tensor: kernels read its elements just before they
// write. Some keep FLOAT32 sums in the output if channels are contiguous.
bool MayReplaceAdded(const TensorDesc& output, const ConvolutionTailDesc& tail, bool sums_in_output) {
  if (!tail.adds()) return false;
  const TensorDesc& added = *tail.tensors.back();
  for (uint32_t d = 0; d < output.rank; ++d) {
    if (output.sizes[d] > 1 && added.strides[d] != output.strides[d]) return false;
  }
  const bool neighbours = output.sizes[1] == 1 || output.strides[1] == 1;
  return !sums_in_output || output.type != DataType::kFloat32 || !neighbours;
}

// From the convolution's result (input 0) and the tail's present tensors to the output.
ElementProblem StepsOf(const TensorDesc& result, const TensorDesc& output, const ConvolutionTailDesc& given,
                       const ConvolutionTail& tail) {
  ElementProblem problem;
  problem.rank = output.rank;
  std::copy_n(output.sizes.begin(), output.rank, problem.sizes.begin());
  const auto operand = [&](const TensorDesc& tensor) {
    ElementOperand strides = {.type = tensor.type};
    for (uint32_t d = 0; d < output.rank; ++d)
      strides.strides[d] = tensor.sizes[d] == 1 ? 0 : tensor.strides[d];
    return strides;
  };
  ElementProgram& program = problem.program;
  const auto load = [&](const TensorDesc& tensor) {
    problem.inputs.push_back(operand(tensor));
    return program.Load(static_cast<uint32_t>(problem.inputs.size() - 1), Class::kF32);
  };
  const uint8_t x = load(result);
  ApplyTail(
      tail, output.type, x,
      [&](uint32_t input) { return load(*given.tensors[input - ConvolutionTail::kMean]); }, &program);
  problem.outputs = {operand(output)};
  program.Store(0, x, Class::kF32);
  return problem;
}

class ConvolutionThenTail final : public CompositeKernel {
 public:
  ConvolutionThenTail(uint64_t bytes, LoweredOperator convolution, LoweredOperator rest)
      : result_(AddScratch("result", bytes)),
        convolution_(AddPart(convolution.implementation, std::move(convolution.kernel))),
        rest_(AddPart(rest.implementation, std::move(rest.kernel))) {}

  bool packs_input(uint32_t input) const override {
    return input < ConvolutionTail::kMean && PartPacksInput(convolution_, input);
  }
  Status Initialize(const KernelArguments& arguments) const override {
    KernelArguments part = arguments;
    part.inputs = arguments.inputs.first(ConvolutionTail::kMean);
    return InitializePart(convolution_, part);
  }

  Status Run(const KernelArguments& arguments) const override {
    const Buffer result = result_.In(arguments.temporary);
    KernelArguments part = arguments;
    part.inputs = arguments.inputs.first(ConvolutionTail::kMean);
    part.outputs = {&result, 1};
    ANYDML_RETURN_IF_ERROR(RunPart(convolution_, part));
    Buffer inputs[1 + ConvolutionTail::kInputs - ConvolutionTail::kMean] = {result};
    size_t count = 1;
    for (const Buffer& buffer : arguments.inputs.subspan(ConvolutionTail::kMean)) {
      if (buffer.data != nullptr) inputs[count++] = buffer;
    }
    part = arguments;
    part.inputs = {inputs, count};
    return RunPart(rest_, part);
  }

 private:
  ScratchLayout::Piece result_;
  uint32_t convolution_, rest_;
};

}  // namespace

Status LowerConvolutionWithTail(const OperatorDesc& desc, const ConvolutionTailDesc& tail,
                                const LowerContext& context, LoweredOperator* out) {
  const ConvolutionProblem problem = WithTail(desc, tail);
  const List list = WithTails(*context.device);
  LowerContext on_device = context;
  on_device.host_fallback = false;  // it is the whole that may run on the host
  const TensorDesc& output = ConvolutionDesc::From(desc).output;
  const auto set_in_place = [&](bool sums_in_output) {
    if (MayReplaceAdded(output, tail, sums_in_output)) out->in_place.emplace_back(ConvolutionTail::kAdded, 0);
  };
  if (ChooseKernel(std::span<const Implementation<ConvolutionProblem>>(list), problem, context, out).ok()) {
    set_in_place((out->abilities & kKeepsSumsInOutput) != 0 && ChannelsLastKeepsSums(problem));
    return {};
  }
  const TensorDesc result = PackedLike(output);
  LoweredOperator convolution, rest;
  ANYDML_RETURN_IF_ERROR(ChooseKernel(ConvolutionProblemOf(desc, result), on_device, &convolution));
  ANYDML_RETURN_IF_ERROR(
      ChooseKernel(StepsOf(result, output, tail, *problem.tail), context.ForPart(), &rest));
  out->implementation = convolution.implementation;
  out->explanation = convolution.explanation;
  out->exactness = convolution.exactness;
  out->kernel =
      std::make_unique<ConvolutionThenTail>(result.total_bytes, std::move(convolution), std::move(rest));
  set_in_place(false);
  return {};
}

bool TilesCanFinish(const ConvolutionProblem& problem) {
  const ConvolutionTail& tail = *problem.tail;
  const auto compare = [](const ConvolutionLimits& limits) {
    return CompareAsLimits(limits.least, limits.most);
  };
  if (!Epilogue(problem.activation).limits().has_value()) return false;
  if (tail.normalization && (problem.type != DataType::kFloat32 || !compare(tail.normalization->limits))) {
    return false;
  }
  return !tail.addition || compare(tail.addition->limits);
}

bool GainsByTail(const OperatorDesc& desc, const ConvolutionTailDesc& tail, const LowerContext& context) {
  const List list = WithTails(*context.device);
  if (list.empty()) return false;
  const ConvolutionProblem problem = WithTail(desc, tail);
  // A later pass may convert planes to channels-last, so the kernel for the present layout does not count.
  if (context.device->convolution_channels == ConvolutionChannels::kFillVectors) {
    return GainsByTailInVectors(problem);
  }
  LoweredOperator lowered;
  return ChooseKernel(std::span<const Implementation<ConvolutionProblem>>(list), problem, context, &lowered)
      .ok();
}

}  // namespace anydml
