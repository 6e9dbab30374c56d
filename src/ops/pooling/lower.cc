#include "ops/common/checks.h"
#include "ops/element/operators.h"
#include "ops/implementation_list.h"
#include "ops/pooling/problem.h"
#include "ops/pooling/windows.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

using Type = OperatorType;

// ---- The poolings: all have an input and an output, and some have more.

template <typename Desc>
constexpr PoolingFunction FunctionOf() {
  if constexpr (requires(Desc desc) { desc.input_scale; }) return PoolingFunction::kQuantizedAverage;
  if constexpr (requires(Desc desc) { desc.p; }) return PoolingFunction::kLp;
  if constexpr (requires(Desc desc) { desc.include_padding; }) return PoolingFunction::kAverage;
  return PoolingFunction::kMax;
}

// One for all channels, or one for each: {1,C,1,1}, or {C}.
bool IsPerChannel(const TensorDesc& parameter, uint32_t channels) {
  return channels > 1 && parameter.sizes[parameter.rank == 1 ? 0 : 1] == channels &&
         ElementCount(parameter) == channels;
}

Status CheckParameter(const OperatorDesc& desc, const char* name) {
  const TensorDesc* parameter = desc.tensor(name);
  const uint32_t channels = desc.tensor("InputTensor")->sizes[1];
  if (parameter == nullptr || ElementCount(*parameter) == 1 || IsPerChannel(*parameter, channels)) return {};
  return InvalidArgument(desc.schema->name, ": ", name, ".Sizes is ", SizesToString(*parameter),
                         " but must be all 1, or ", channels, " channels in dimension 1 and 1 elsewhere");
}

template <typename Desc>
Status CheckPooling(const OperatorDesc& desc, FeatureLevel) {
  const Desc typed = Desc::From(desc);
  ANYDML_RETURN_IF_ERROR(CheckWindows(desc, WindowFieldsOf(typed), "InputTensor", "OutputTensor"));
  if constexpr (requires { typed.p; }) {
    if (typed.p == 0) return InvalidArgument(desc.schema->name, ": P is 0 but must be at least 1");
  }
  if constexpr (requires { typed.input_scale; }) {
    for (const char* name :
         {"InputScaleTensor", "InputZeroPointTensor", "OutputScaleTensor", "OutputZeroPointTensor"}) {
      ANYDML_RETURN_IF_ERROR(CheckParameter(desc, name));
    }
  }
  return {};
}

void SetParameter(const TensorDesc* tensor, PoolingProblem::Parameter which, PoolingProblem* problem) {
  problem->has_parameter[which] = tensor != nullptr;
  if (tensor == nullptr || !IsPerChannel(*tensor, problem->shape.channels)) return;
  problem->parameter_strides[which] = tensor->strides[tensor->rank == 1 ? 0 : 1];
}

template <typename Desc>
Status LowerPooling(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const Desc typed = Desc::From(desc);
  PoolingProblem problem = {.function = FunctionOf<Desc>(),
                            .shape = ShapeOf(WindowFieldsOf(typed), typed.input, typed.output),
                            .input = PoolingTensorOf(&typed.input),
                            .output = PoolingTensorOf(&typed.output)};
  if constexpr (requires { typed.output_indices; }) {
    problem.indices = PoolingTensorOf(typed.output_indices);
  }
  if constexpr (requires { typed.include_padding; }) problem.include_padding = typed.include_padding;
  if constexpr (requires { typed.p; }) problem.p = typed.p;
  if constexpr (requires { typed.input_scale; }) {
    SetParameter(&typed.input_scale, PoolingProblem::kInputScale, &problem);
    SetParameter(typed.input_zero_point, PoolingProblem::kInputZeroPoint, &problem);
    SetParameter(&typed.output_scale, PoolingProblem::kOutputScale, &problem);
    SetParameter(typed.output_zero_point, PoolingProblem::kOutputZeroPoint, &problem);
  }
  return ChooseKernel(problem, context, out);
}

template <typename Desc>
Status InferPooling(OperatorDesc* desc) {
  const TensorDesc* given = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &given));
  const TensorDesc input = *given;
  Dimensions sizes;
  ANYDML_RETURN_IF_ERROR(InferWindows(*desc, WindowFieldsOf(Desc::From(*desc)), input, &sizes));
  FillTensor(desc, "OutputTensor", input.type, sizes, input.rank);
  if constexpr (requires(Desc typed) { typed.output_indices; }) {
    if (desc->tensor("OutputIndicesTensor") != nullptr) {
      FillTensor(desc, "OutputIndicesTensor", DataType::kUInt32, sizes, input.rank);
    }
  }
  return {};
}

template <typename Desc>
constexpr Operator Pooling(Type type, const OperatorTraits& traits = kPlainTraits.With(LayoutOfAll)) {
  return {static_cast<uint32_t>(type), CheckPooling<Desc>,      LowerPooling<Desc>,
          InferPooling<Desc>,          PoolingProblem::kFamily, traits};
}

// ---- Gradients

template <typename Desc>
Status CheckGrad(const OperatorDesc& desc, FeatureLevel) {
  const WindowFields fields = WindowFieldsOf(Desc::From(desc));
  return CheckWindows(desc, fields, "OutputGradientTensor", "InputGradientTensor");
}

template <typename Desc>
Status LowerGrad(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const Desc typed = Desc::From(desc);
  PoolingGradProblem problem = {
      .shape = ShapeOf(WindowFieldsOf(typed), typed.output_gradient, typed.input_gradient),
      .input_gradient = PoolingTensorOf(&typed.input_gradient),
      .output_gradient = PoolingTensorOf(&typed.output_gradient)};
  if constexpr (requires { typed.input; }) problem.input = PoolingTensorOf(&typed.input);
  if constexpr (requires { typed.include_padding; }) problem.include_padding = typed.include_padding;
  return ChooseKernel(problem, context, out);
}

Status InferMaxPoolingGrad(OperatorDesc* desc) {
  const TensorDesc* given = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &given));
  const TensorDesc input = *given;
  FillTensor(desc, "OutputGradientTensor", input.type, input.sizes, input.rank);
  return {};
}

// The smallest input with as many windows.
Status InferAveragePoolingGrad(OperatorDesc* desc) {
  const TensorDesc* given = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputGradientTensor", &given));
  const TensorDesc gradient = *given;
  const WindowFields fields = WindowFieldsOf(AveragePoolingGradDesc::From(*desc));
  Dimensions sizes = gradient.sizes;
  for (uint32_t i = 0; i < fields.sizes.size() && 2 + i < gradient.rank; ++i) {
    const uint64_t padded = uint64_t{gradient.sizes[2 + i] - 1} * fields.strides[i] + fields.sizes[i];
    const uint64_t padding = uint64_t{fields.start[i]} + fields.end[i];
    sizes[2 + i] = padded > padding ? static_cast<uint32_t>(padded - padding) : 1;
  }
  FillTensor(desc, "OutputGradientTensor", gradient.type, sizes, gradient.rank);
  return {};
}

// ---- MAX_UNPOOLING

Status CheckNothing(const OperatorDesc&, FeatureLevel) { return {}; }

Status LowerUnpooling(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const auto typed = MaxUnpoolingDesc::From(desc);
  OperatorDesc copy;
  copy.schema = FindOperator(Type::kElementWiseIdentity);
  copy.fields = {
      PackedTensor(typed.output.type, typed.output.sizes.data(), typed.output.rank), typed.output, {}};
  const MaxUnpoolingProblem problem = {typed.input, typed.indices, typed.output, BuildElementProblem(copy)};
  return ChooseKernel(problem, context, out);
}

Status InferUnpooling(OperatorDesc* desc) {
  const TensorDesc* output = desc->tensor("OutputTensor");
  if (output != nullptr && output->rank > 0) return {};
  return InvalidArgument(desc->schema->name,
                         ": OutputTensor has no sizes, and the inputs do not determine them");
}

constexpr Type kTypes[] = {
    Type::kMaxPooling,     Type::kMaxPooling1,     Type::kMaxPooling2,
    Type::kAveragePooling, Type::kAveragePooling1, Type::kQuantizedLinearAveragePooling,
    Type::kLpPooling,      Type::kLpPooling1,      Type::kAveragePoolingGrad,
    Type::kMaxPoolingGrad, Type::kMaxUnpooling};

}  // namespace

std::span<const OperatorType> PoolingOperatorTypes() { return kTypes; }

std::span<const Operator> PoolingOperators() {
  static const Operator kOperators[] = {
      Pooling<MaxPoolingDesc>(Type::kMaxPooling),
      Pooling<MaxPooling1Desc>(Type::kMaxPooling1),
      Pooling<MaxPooling2Desc>(Type::kMaxPooling2),
      Pooling<AveragePoolingDesc>(Type::kAveragePooling),
      Pooling<AveragePooling1Desc>(Type::kAveragePooling1),
      Pooling<QuantizedLinearAveragePoolingDesc>(Type::kQuantizedLinearAveragePooling, kPlainTraits),
      Pooling<LpPoolingDesc>(Type::kLpPooling),
      Pooling<LpPooling1Desc>(Type::kLpPooling1),
      {static_cast<uint32_t>(Type::kAveragePoolingGrad), CheckGrad<AveragePoolingGradDesc>,
       LowerGrad<AveragePoolingGradDesc>, InferAveragePoolingGrad, PoolingGradProblem::kFamily, kPlainTraits},
      {static_cast<uint32_t>(Type::kMaxPoolingGrad), CheckGrad<MaxPoolingGradDesc>,
       LowerGrad<MaxPoolingGradDesc>, InferMaxPoolingGrad, PoolingGradProblem::kFamily, kPlainTraits},
      {static_cast<uint32_t>(Type::kMaxUnpooling), CheckNothing, LowerUnpooling, InferUnpooling,
       MaxUnpoolingProblem::kFamily, kPlainTraits},
  };
  return kOperators;
}

namespace family::pooling {

void RegisterOperators(OperatorList* all) { all->Add(PoolingOperators()); }

}  // namespace family::pooling

}  // namespace anydml
