#include "ops/convolution/activation.h"

namespace anydml {

ElementProblem ConvolutionActivation(const ConvolutionProblem& problem, const ConvolutionTensor& sums) {
  const ConvolutionShape& s = problem.shape;
  const auto operand = [](const ConvolutionTensor& t, DataType type) {
    return ElementOperand{type,
                          {t.outer[0], t.outer[1], t.channel, t.spatial[0], t.spatial[1], t.spatial[2]}};
  };
  ElementProblem result;
  result.rank = 6;
  result.sizes = {s.outer[0],          s.outer[1],          s.output_channels,
                  s.windows[0].output, s.windows[1].output, s.windows[2].output};
  result.inputs = {operand(sums, DataType::kFloat32)};
  result.outputs = {operand(s.output, problem.type)};
  const uint8_t at = result.program.Load(0, Class::kF32);
  for (const Instruction& instruction : problem.activation.instructions) {
    result.program.instructions.push_back(instruction);
  }
  result.program.Store(0, at, Class::kF32);
  return result;
}

ConvolutionTensor PackedOutput(const ConvolutionShape& shape, bool channels_last) {
  ConvolutionTensor packed;
  uint64_t stride = channels_last ? shape.outer[1] * shape.output_channels : 1;
  for (uint32_t d = kMaxSpatial; d-- > 0; stride *= shape.windows[d].output) packed.spatial[d] = stride;
  packed.channel = channels_last ? 1 : stride;
  packed.outer[1] = packed.channel * shape.output_channels;
  packed.outer[0] = shape.Positions() * shape.output_channels * shape.outer[1];
  return packed;
}

}  // namespace anydml
