// A convolution with one tap and stride 1, as a matrix product.
#include "kernel/composite.h"
#include "ops/convolution/activation.h"
#include "ops/convolution/one_tap.h"
#include "ops/convolution/problem.h"
#include "ops/convolution/tail_steps.h"
#include "ops/gemm/problem.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

// Rows are output channels and columns positions, or the reverse if channels are contiguous.
bool ToGemm(const ConvolutionProblem& problem, GemmProblem* gemm) {
  const ConvolutionShape& s = problem.shape;
  uint64_t input_stride, output_stride;
  if (!PositionStride(s, s.input, &input_stride) || !PositionStride(s, s.output, &output_stride))
    return false;
  gemm->type = gemm->output_type = problem.type;
  gemm->batch = s.outer;
  gemm->m = s.output_channels;
  gemm->n = s.Positions();
  gemm->k = s.input_channels;
  gemm->a = {s.filter.outer, s.filter.output_channel, s.filter.channel};
  gemm->b = {s.input.outer, s.input.channel, input_stride};
  gemm->output = {s.output.outer, s.output.channel, output_stride};
  if (problem.bias) {
    gemm->c = GemmMatrix{{0, s.output_channels * *problem.bias}, *problem.bias, 0};
    gemm->beta = 1;
  }
  gemm->activation = problem.activation;
  gemm->a_is_owned = problem.filter_is_owned;
  // Images whose positions are consecutive are treated as one.
  if (s.outer[0] > 1 && s.outer[1] == 1 && s.input.outer[0] == gemm->n * input_stride &&
      s.output.outer[0] == gemm->n * output_stride) {
    gemm->n *= s.outer[0];
    gemm->batch[0] = 1;
  }
  if (s.output.channel == 1 && s.output_channels > 1) *gemm = gemm->Transposed();
  return true;
}

// Whether cuda.channels_last reads all operands in place, on tensor cores.
bool IsProductOfRows(const ConvolutionProblem& problem) {
  constexpr uint64_t kUnit = 8;
  const ConvolutionShape& s = problem.shape;
  return problem.type == DataType::kFloat16 && s.input.channel == 1 && s.input_channels % kUnit == 0;
}

std::string WhyNotThenTail(const ConvolutionProblem& problem) {
  const ConvolutionShape& s = problem.shape;
  if (problem.type != DataType::kFloat16) return "what comes after sums is of FLOAT16";
  if (!problem.bias && problem.activation.instructions.empty()) {
    return "what comes after sums would be the only work of its kernel";
  }
  if (s.output.channel == 1 || s.Positions() == 1) {
    return "where channels are neighbours a product adds the bias by itself";
  }
  const bool begins =
      s.output.offset == 0 && (!problem.tail->addition || problem.tail->addition->tensor.offset == 0);
  return begins ? "" : "a tensor does not begin with its first element";
}

// The program on FLOAT32 sums, including the tail: input 0, then the bias and the tail's present tensors.
ElementProblem RestWithTail(const ConvolutionProblem& problem, const ConvolutionTensor& sums) {
  const ConvolutionTail& tail = *problem.tail;
  ElementProblem result = ConvolutionActivation(problem, sums);
  ElementProgram& program = result.program;
  program = {};
  const uint8_t x = program.Load(0, Class::kF32);
  const auto load = [&](const ElementOperand& operand) {
    result.inputs.push_back(operand);
    return program.Load(static_cast<uint32_t>(result.inputs.size() - 1), Class::kF32);
  };
  const auto load_numbers = [&](uint64_t stride) {
    return load({problem.type, {0, problem.shape.output_channels * stride, stride}});
  };
  if (problem.bias) {
    program.Apply(ElementFunction::kAdd, Class::kF32, {x, load_numbers(*problem.bias)});
  }
  program.instructions.insert(program.instructions.end(), problem.activation.instructions.begin(),
                              problem.activation.instructions.end());
  program.Apply(ElementFunction::kRoundToHalf, Class::kF32, {x});
  const auto load_of_tail = [&](uint32_t input) {
    if (input != ConvolutionTail::kAdded) {
      return load_numbers(tail.normalization->strides[input - ConvolutionTail::kMean]);
    }
    const ConvolutionTensor& t = tail.addition->tensor;
    return load(
        {problem.type, {t.outer[0], t.outer[1], t.channel, t.spatial[0], t.spatial[1], t.spatial[2]}});
  };
  ApplyTail(tail, problem.type, x, load_of_tail, &program);
  program.Store(0, x, Class::kF32);
  return result;
}

// A product, and one kernel for everything after it.
class ConvolutionGemmThenTail final : public CompositeKernel {
 public:
  ConvolutionGemmThenTail(uint64_t elements, LoweredOperator gemm, LoweredOperator rest)
      : sums_(AddScratch("sums", elements * sizeof(float))),
        gemm_(AddPart(gemm.implementation, std::move(gemm.kernel))),
        rest_(AddPart(rest.implementation, std::move(rest.kernel))) {}

  Status Run(const KernelArguments& arguments) const override {
    const Buffer sums = sums_.In(arguments.temporary);
    const Buffer operands[] = {arguments.inputs[1], arguments.inputs[0], {}};
    KernelArguments part = arguments;
    part.inputs = operands;
    part.outputs = {&sums, 1};
    ANYDML_RETURN_IF_ERROR(RunPart(gemm_, part));
    Buffer inputs[ConvolutionTail::kInputs] = {sums};
    size_t count = 1;
    for (const Buffer& buffer : arguments.inputs.subspan(2)) {
      if (buffer.data != nullptr) inputs[count++] = buffer;
    }
    part = arguments;
    part.inputs = {inputs, count};
    return RunPart(rest_, part);
  }

 private:
  ScratchLayout::Piece sums_;
  uint32_t gemm_, rest_;
};

std::unique_ptr<const Kernel> CreateThenTail(const ConvolutionProblem& problem, const LowerContext& context,
                                             std::string* why_not) {
  *why_not = WhyNotThenTail(problem);
  if (!why_not->empty()) return nullptr;
  ConvolutionProblem product = problem;
  product.bias.reset();
  product.activation = {};
  product.shape.output = PackedOutput(problem.shape);
  GemmProblem gemm;
  if (!ToGemm(product, &gemm)) {
    *why_not = "positions have more than one stride";
    return nullptr;
  }
  gemm.output_type = DataType::kFloat32;
  LoweredOperator sums, rest;
  Status status = ChooseKernel(gemm, context.ForPart(), &sums);
  if (status.ok()) {
    status = ChooseKernel(RestWithTail(problem, product.shape.output), context.ForPart(), &rest);
  }
  if (!status.ok()) {
    *why_not = status.message();
    return nullptr;
  }
  if ((rest.abilities & kIsCompiled) == 0) {
    *why_not = "what comes after sums is too little to be compiled, and would be slower than in parts";
    return nullptr;
  }
  return std::make_unique<ConvolutionGemmThenTail>(problem.shape.Elements(), std::move(sums),
                                                   std::move(rest));
}

class ConvolutionGemm final : public CompositeKernel {
 public:
  ConvolutionGemm(LoweredOperator gemm, bool transposed) : transposed_(transposed) {
    gemm_ = AddPart(gemm.implementation, std::move(gemm.kernel));
  }

  Status Run(const KernelArguments& arguments) const override {
    const Buffer input = arguments.inputs[0], filter = arguments.inputs[1];
    const Buffer inputs[] = {transposed_ ? input : filter, transposed_ ? filter : input, arguments.inputs[2]};
    KernelArguments part = arguments;
    part.inputs = inputs;
    return RunPart(gemm_, part);
  }

 private:
  bool transposed_;
  uint32_t gemm_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionGemm(const ConvolutionProblem& problem,
                                                    const LowerContext& context, std::string* why_not) {
  *why_not = WhyNotOneTap(problem.shape);
  if (!why_not->empty()) return nullptr;
  if (problem.tail) return CreateThenTail(problem, context, why_not);
  GemmProblem gemm;
  if (!ToGemm(problem, &gemm)) {
    *why_not = "positions have more than one stride";
    return nullptr;
  }
  LoweredOperator lowered;
  const Status status = ChooseKernel(gemm, context.ForPart(), &lowered);
  if (!status.ok()) {
    *why_not = status.message();
    return nullptr;
  }
  const bool transposed = problem.shape.output.channel == 1 && problem.shape.output_channels > 1;
  constexpr uint64_t kMany = uint64_t{1} << 20;
  SumLimits limits;
  if ((lowered.abilities & kWithoutTensorCores) != 0 && limits.Set(problem.activation) &&
      IsProductOfRows(problem)) {
    *why_not = "a small product, which cuda.channels_last does on tensor cores";
    return nullptr;
  }
  if (transposed && (lowered.abilities & kActivatesLater) != 0 && problem.shape.Elements() >= kMany &&
      limits.Set(problem.activation) && IsProductOfRows(problem)) {
    *why_not = "the activation would be a kernel of its own";
    return nullptr;
  }
  return std::make_unique<ConvolutionGemm>(std::move(lowered), transposed);
}

}  // namespace anydml
