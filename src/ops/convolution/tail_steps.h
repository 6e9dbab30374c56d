// A convolution's tail as steps of an element program, for kernels that run it after the sums.
#pragma once

#include "ops/convolution/problem.h"

namespace anydml {

inline void LimitRegister(const ConvolutionLimits& limits, uint8_t x, ElementProgram* program) {
  const ConvolutionLimits none;
  if (limits.least == none.least && limits.most == none.most) return;
  program->Apply(ElementFunction::kClip, Class::kF32, {x}, ParameterOf(limits.least),
                 ParameterOf(limits.most));
}

// `x` has the convolution's result, rounded to `type`. `load` returns a register with a tensor of the tail, a
// ConvolutionTail::Input; it is called in their order.
template <typename Load>
void ApplyTail(const ConvolutionTail& tail, DataType type, uint8_t x, const Load& load,
               ElementProgram* program) {
  const auto apply = [&](ElementFunction function, std::initializer_list<uint8_t> sources) {
    program->Apply(function, Class::kF32, sources);
  };
  if (tail.normalization) {
    apply(ElementFunction::kSubtract, {x, load(ConvolutionTail::kMean)});
    const uint8_t variance = load(ConvolutionTail::kVariance);
    program->Apply(ElementFunction::kScaleBias, Class::kF32, {variance}, ParameterOf(1.0f),
                   ParameterOf(tail.normalization->epsilon));
    apply(ElementFunction::kSquareRoot, {variance});
    const uint8_t factor = load(ConvolutionTail::kScale);
    apply(ElementFunction::kDivide, {factor, variance});
    apply(ElementFunction::kMultiply, {x, factor});
    apply(ElementFunction::kAdd, {x, load(ConvolutionTail::kBias)});
    LimitRegister(tail.normalization->limits, x, program);
    if (tail.addition && type == DataType::kFloat16) apply(ElementFunction::kRoundToHalf, {x});
  }
  if (tail.addition) {
    apply(ElementFunction::kAdd, {x, load(ConvolutionTail::kAdded)});
    LimitRegister(tail.addition->limits, x, program);
  }
}

}  // namespace anydml
