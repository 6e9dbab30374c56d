// A convolution with one tap that takes every position as it is: a product of matrices.
#include "kernel/composite.h"
#include "ops/convolution/cuda/activation.h"
#include "ops/convolution/cuda/planes.h"
#include "ops/convolution/problem.h"
#include "ops/gemm/problem.h"
#include "ops/operator_table.h"

namespace anydml {
namespace {

// The one stride between positions, in row-major order; false where there is none.
bool PositionStride(const ConvolutionShape& shape, const ConvolutionTensor& tensor, uint64_t* stride) {
  *stride = 0;
  uint64_t next = 0;  // the stride that continues the dimensions so far
  for (uint32_t d = kMaxSpatial; d-- > 0;) {
    const uint64_t size = shape.windows[d].output;
    if (size == 1) continue;
    if (next == 0) {
      *stride = tensor.spatial[d];
    } else if (tensor.spatial[d] != next) {
      return false;
    }
    next = tensor.spatial[d] * size;
    if (next == 0) return false;
  }
  if (*stride == 0) *stride = 1;
  return true;
}

std::string WhyNot(const ConvolutionShape& shape) {
  for (const ConvolutionWindow& w : shape.windows) {
    if (w.taps != 1) return "there is more than one tap";
    if (w.stride != 1 || w.start_padding != 0 || w.output != w.input || w.reached != w.output) {
      return "the output has other positions than the input";
    }
  }
  return "";
}

// Rows are output channels, columns positions; or the other way round where channels are neighbours.
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
  // Images whose positions continue each other are one.
  if (s.outer[0] > 1 && s.outer[1] == 1 && s.input.outer[0] == gemm->n * input_stride &&
      s.output.outer[0] == gemm->n * output_stride) {
    gemm->n *= s.outer[0];
    gemm->batch[0] = 1;
  }
  if (s.output.channel == 1 && s.output_channels > 1) *gemm = gemm->Transposed();
  return true;
}

// Whether cuda.channels_last reads everything as it is, on tensor cores: then an activation costs no second
// kernel.
bool IsBetterInOne(const ConvolutionProblem& problem) {
  constexpr uint64_t kUnit = 8, kMany = uint64_t{1} << 20;
  const ConvolutionShape& s = problem.shape;
  if (HasUnitsOfPositions(problem)) return true;
  return problem.type == DataType::kFloat16 && s.input.channel == 1 && s.input_channels % kUnit == 0 &&
         s.Elements() >= kMany;
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
  *why_not = WhyNot(problem.shape);
  if (!why_not->empty()) return nullptr;
  GemmProblem gemm;
  if (!ToGemm(problem, &gemm)) {
    *why_not = "positions have more than one stride";
    return nullptr;
  }
  LoweredOperator lowered;
  const Status status =
      ChooseKernel(OperatorTableOf(context.backend).gemm, gemm, context.ForPart(), &lowered);
  if (!status.ok()) {
    *why_not = status.message();
    return nullptr;
  }
  const bool transposed = problem.shape.output.channel == 1 && problem.shape.output_channels > 1;
  SumLimits limits;
  if (transposed && lowered.implementation == "cuda.product_first" && limits.Set(problem.activation) &&
      IsBetterInOne(problem)) {
    *why_not = "the activation would be a kernel of its own";
    return nullptr;
  }
  return std::make_unique<ConvolutionGemm>(std::move(lowered), transposed);
}

}  // namespace anydml
