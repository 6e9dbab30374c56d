// VALUE_SCALE_2D with an element program's kernel per channel, on any backend.
#include <utility>

#include "kernel/composite.h"
#include "ops/move/value_scale.h"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

class ValueScaleKernel final : public CompositeKernel {
 public:
  ValueScaleKernel(const ValueScaleProblem& problem, std::vector<LoweredOperator> channels)
      : input_stride_(uint64_t{problem.input.strides[1]} * (BitSize(problem.input.type) / 8)),
        output_stride_(uint64_t{problem.output.strides[1]} * (BitSize(problem.output.type) / 8)),
        count_(static_cast<uint32_t>(channels.size())) {
    for (LoweredOperator& channel : channels) AddPart(channel.implementation, std::move(channel.kernel));
  }

  Status Run(const KernelArguments& arguments) const override {
    for (uint32_t c = 0; c < count_; ++c) {
      const Buffer input = Behind(arguments.inputs[0], c * input_stride_);
      const Buffer output = Behind(arguments.outputs[0], c * output_stride_);
      KernelArguments part = arguments;
      part.inputs = {&input, 1};
      part.outputs = {&output, 1};
      ANYDML_RETURN_IF_ERROR(RunPart(c, part));
    }
    return {};
  }

 private:
  static Buffer Behind(const Buffer& buffer, uint64_t bytes) {
    return {buffer.data + bytes, buffer.size - bytes};
  }

  uint64_t input_stride_, output_stride_;  // of channels, in bytes
  uint32_t count_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateValueScale(const ValueScaleProblem& problem, const LowerContext& context,
                                               std::string* why_not) {
  std::vector<LoweredOperator> channels(problem.channels.size());
  for (size_t c = 0; c < channels.size(); ++c) {
    const Status status = ChooseKernel(problem.channels[c], context.ForPart(), &channels[c]);
    if (status.ok()) continue;
    *why_not = status.message();
    return nullptr;
  }
  return std::make_unique<ValueScaleKernel>(problem, std::move(channels));
}

}  // namespace anydml
