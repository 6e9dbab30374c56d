// Five operators of two kinds, products and convolutions. Longer than most files, because both kinds share
// the rules about scales, zero points and their layouts.
#include <array>

#include "ops/common/checks.h"
#include "ops/convolution/shape.h"
#include "ops/integer_product/problem.h"
#include "ops/implementation_list.h"
#include "ops/work.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

using Type = OperatorType;
Type TypeOf(const OperatorDesc& desc) { return static_cast<Type>(desc.schema->type); }

// Its index among the inputs in binding order; -1: absent.
int32_t BindingOf(const OperatorDesc& desc, std::string_view name) {
  int32_t number = 0;
  for (size_t i = 0; i < desc.fields.size(); ++i) {
    if (name == desc.schema->fields[i].name) {
      return std::holds_alternative<TensorDesc>(desc.fields[i]) ? number : -1;
    }
    if (desc.schema->fields[i].kind == FieldKind::kInput) ++number;
  }
  return -1;
}

enum class Each { kRow, kColumn, kElement };

// A parameter has one element, or `count` in a dimension from `first` up to `end`; it has no batch.
Status CheckParameter(const OperatorDesc& desc, std::string_view name, uint32_t count, const char* what,
                      uint32_t first, uint32_t end) {
  const TensorDesc* const tensor = desc.tensor(name);
  if (tensor == nullptr || ElementCount(*tensor) == 1) return {};
  for (uint32_t d = first; d < std::min(end, tensor->rank); ++d) {
    if (tensor->sizes[d] == count && ElementCount(*tensor) == count) return {};
  }
  return InvalidArgument(desc.schema->name, ": ", name, ".Sizes is ", SizesToString(*tensor),
                         " but must be all 1, or ", count, " in dimension ",
                         first + 1 == end ? StrCat(first) : StrCat(first, " or ", end - 1),
                         ": one number for all or one for each ", what);
}

// For matrices, whose parameters may have fewer dimensions: numbers of rows are in the second last one,
// unless there is only one.
Status CheckMatrixParameter(const OperatorDesc& desc, const char* name, uint32_t count, Each each) {
  const TensorDesc* const tensor = desc.tensor(name);
  const bool rows = each == Each::kRow;
  const uint32_t behind = rows && tensor != nullptr && tensor->rank > 1 ? 2 : 1;
  const uint32_t at = tensor == nullptr ? 0 : tensor->rank - behind;
  return CheckParameter(desc, name, count, rows ? "row" : "column", at, at + 1);
}

uint64_t ParameterStride(const TensorDesc& tensor) {
  for (uint32_t d = 0; d < tensor.rank; ++d) {
    if (tensor.sizes[d] > 1) return tensor.strides[d];
  }
  return 0;
}

// The program's dimensions, and those along which the numbers of rows (output channels) and columns
// (positions) vary.
constexpr uint32_t kRank = 6, kGroup = 1, kRow = 2, kColumn = 5;

// Appends the program's operands as they are loaded.
class ProgramBuilder {
 public:
  ProgramBuilder(const OperatorDesc& desc, const IntegerSums& sums) : desc_(desc), shape_(sums.shape) {
    ElementProblem& p = problem_;
    p.rank = kRank;
    const auto& w = shape_.windows;
    p.sizes = {shape_.outer[0], shape_.outer[1], shape_.output_channels,
               w[0].output,     w[1].output,     w[2].output};
    ElementOperand packed = {sums.sum_type, {}};
    uint64_t stride = 1;
    for (uint32_t d = kRank; d-- > 0; stride *= p.sizes[d]) packed.strides[d] = stride;
    p.inputs = {packed};
    const Class wide = sums.sum_type == DataType::kInt64 ? Class::kI64 : Class::kI32;
    sum_ = p.program.Load(0, wide);
  }

  uint8_t sum() const { return sum_; }
  ElementProgram& program() { return problem_.program; }

  // Appends the tensor `name` as an input: a number for each row or column, or (kElement) its own layout.
  // False if it is absent.
  bool Load(const char* name, Each each, Class type, uint8_t* at) {
    const int32_t binding = BindingOf(desc_, name);
    if (binding < 0) return false;
    const TensorDesc& tensor = *desc_.tensor(name);
    ElementOperand operand = {tensor.type, {}};
    if (each == Each::kElement) {
      for (uint32_t d = 0; d < tensor.rank; ++d)
        operand.strides[MatrixDimension(tensor, d)] = tensor.strides[d];
    } else {
      const uint64_t stride = ParameterStride(tensor);
      operand.strides[each == Each::kRow ? kRow : kColumn] = stride;
      if (each == Each::kRow && per_group_) operand.strides[kGroup] = stride * shape_.output_channels;
    }
    *at = program().Load(static_cast<uint32_t>(problem_.inputs.size()), type);
    problem_.inputs.push_back(operand);
    bindings_.push_back(static_cast<uint32_t>(binding));
    return true;
  }

  // Counts rows across groups, as channels of a convolution are.
  void CountRowsThroughGroups() { per_group_ = true; }

  void Finish(uint8_t at, const ConvolutionTensor& output, DataType type, IntegerProductProblem* problem) {
    ElementOperand operand = {type, {}};
    operand.strides = {output.outer[0],   output.outer[1],   output.channel,
                       output.spatial[0], output.spatial[1], output.spatial[2]};
    problem_.outputs = {operand};
    program().Store(0, at, Class::kF32);
    problem->program = std::move(problem_);
    problem->program_inputs = std::move(bindings_);
  }

 private:
  static uint32_t MatrixDimension(const TensorDesc& tensor, uint32_t d) {
    if (d + 1 == tensor.rank) return kColumn;
    if (d + 2 == tensor.rank) return kRow;
    return d + 4 - tensor.rank;
  }

  const OperatorDesc& desc_;
  const ConvolutionShape& shape_;
  bool per_group_ = false;
  ElementProblem problem_;
  std::vector<uint32_t> bindings_;
  uint8_t sum_;
};

// sum * (scale of A * scale of B / scale of the output), rounded to nearest even, plus the zero point.
struct ScaleNames {
  const char *first, *second, *output, *output_zero;
  Each second_each;
};

uint8_t AppendQuantization(ProgramBuilder& b, const ScaleNames& names, const ByteLimits& limits) {
  ElementProgram& program = b.program();
  uint8_t scale = 0, other = 0;
  b.Load(names.first, Each::kRow, Class::kF32, &scale);
  b.Load(names.second, names.second_each, Class::kF32, &other);
  program.Apply(ElementFunction::kMultiply, Class::kF32, {scale, other});
  if (b.Load(names.output, Each::kRow, Class::kF32, &other)) {
    program.Apply(ElementFunction::kDivide, Class::kF32, {scale, other});
  }
  const uint8_t sum = program.Convert(b.sum(), Class::kI32, Class::kF32, DataType::kFloat32);
  program.Apply(ElementFunction::kMultiply, Class::kF32, {sum, scale});
  program.Apply(ElementFunction::kRoundHalfToEven, Class::kF32, {sum});
  if (b.Load(names.output_zero, Each::kRow, Class::kF32, &other)) {
    program.Apply(ElementFunction::kAdd, Class::kF32, {sum, other});
  }
  if (limits.low > ByteLimits().low || limits.high < ByteLimits().high) {
    program.Apply(ElementFunction::kClip, Class::kF32, {sum}, ParameterOf(static_cast<float>(limits.low)),
                  ParameterOf(static_cast<float>(limits.high)));
  }
  return sum;
}

// ---- Products of matrices

// A zero point and what it applies to.
std::optional<ZeroPoints> ZerosOf(const OperatorDesc& desc, const char* name, uint64_t per_group = 0) {
  const int32_t binding = BindingOf(desc, name);
  if (binding < 0) return std::nullopt;
  const uint64_t stride = ParameterStride(*desc.tensor(name));
  return ZeroPoints{static_cast<uint32_t>(binding), stride, stride * per_group};
}

Status CheckMatrices(const OperatorDesc& desc, FeatureLevel) {
  const TensorDesc &a = *desc.tensor("ATensor"), &b = *desc.tensor("BTensor");
  const uint32_t rank = a.rank, m = a.sizes[rank - 2], k = a.sizes[rank - 1], n = b.sizes[rank - 1];
  if (b.sizes[rank - 2] != k) {
    return InvalidArgument(desc.schema->name, ": BTensor.Sizes[", rank - 2, "] is ", b.sizes[rank - 2],
                           " but must be ", k, ", that of ATensor.Sizes[", rank - 1,
                           "]: the product runs over both (K)");
  }
  Dimensions sizes = a.sizes;
  sizes[rank - 1] = n;
  for (uint32_t d = 0; d + 2 < rank; ++d) {
    if (b.sizes[d] == a.sizes[d]) continue;
    return InvalidArgument(desc.schema->name, ": BTensor.Sizes[", d, "] is ", b.sizes[d], " but must be ",
                           a.sizes[d], ", that of ATensor.Sizes[", d, "]");
  }
  ANYDML_RETURN_IF_ERROR(CheckSizes(desc, "OutputTensor", sizes, "it is the product of ATensor and BTensor"));
  for (const char* name :
       {"AZeroPointTensor", "AScaleTensor", "OutputScaleTensor", "OutputZeroPointTensor"}) {
    if (FindField(*desc.schema, name) < 0) continue;
    ANYDML_RETURN_IF_ERROR(CheckMatrixParameter(desc, name, m, Each::kRow));
  }
  for (const char* name : {"BZeroPointTensor", "BScaleTensor"}) {
    if (FindField(*desc.schema, name) < 0) continue;
    ANYDML_RETURN_IF_ERROR(CheckMatrixParameter(desc, name, n, Each::kColumn));
  }
  if (FindField(*desc.schema, "BiasTensor") < 0 || desc.tensor("BiasTensor") == nullptr) return {};
  return CheckSizes(desc, "BiasTensor", sizes, "it is added to the product");
}

ConvolutionTensor MatrixTensor(const TensorDesc& tensor) {
  ConvolutionTensor result;
  for (uint32_t d = 0; d + 2 < tensor.rank; ++d) result.outer[d + 4 - tensor.rank] = tensor.strides[d];
  result.channel = tensor.strides[tensor.rank - 2];
  result.spatial[kMaxSpatial - 1] = tensor.strides[tensor.rank - 1];
  return result;
}

// Whether the tensor and its zero points, which are subtracted when it is packed, are owned.
bool IsOwned(const OperatorDesc& desc, const char* tensor, const char* zero_point) {
  const TensorDesc* const zero = desc.tensor(zero_point);
  return desc.tensor(tensor)->owned_by_dml && (zero == nullptr || zero->owned_by_dml);
}

IntegerSums MatrixSums(const OperatorDesc& desc) {
  const TensorDesc &a = *desc.tensor("ATensor"), &b = *desc.tensor("BTensor");
  IntegerSums sums;
  ConvolutionShape& shape = sums.shape;
  for (uint32_t d = 0; d + 2 < a.rank; ++d) shape.outer[d + 4 - a.rank] = a.sizes[d];
  shape.input_channels = a.sizes[a.rank - 1];
  shape.output_channels = a.sizes[a.rank - 2];
  const uint32_t n = b.sizes[b.rank - 1];
  shape.windows[kMaxSpatial - 1] = {.input = n, .output = n, .reached = n};
  shape.input = MatrixTensor(b);
  shape.filter = MatrixTensor(a);
  shape.filter.output_channel = a.strides[a.rank - 2];
  shape.filter.channel = a.strides[a.rank - 1];
  shape.filter.spatial = {};
  shape.output = MatrixTensor(*desc.tensor("OutputTensor"));
  sums.input = static_cast<uint32_t>(BindingOf(desc, "BTensor"));
  sums.filter = static_cast<uint32_t>(BindingOf(desc, "ATensor"));
  sums.input_type = b.type;
  sums.filter_type = a.type;
  if (BitSize(a.type) > 8 || BitSize(b.type) > 8) sums.sum_type = DataType::kInt64;
  sums.input_zero = ZerosOf(desc, "BZeroPointTensor");
  sums.filter_zero = ZerosOf(desc, "AZeroPointTensor");
  sums.input_is_owned = IsOwned(desc, "BTensor", "BZeroPointTensor");
  sums.filter_is_owned = IsOwned(desc, "ATensor", "AZeroPointTensor");
  return sums;
}

// Sums go into packed scratch.
void PackSums(IntegerSums* sums) {
  ConvolutionShape& shape = sums->shape;
  uint64_t stride = 1;
  for (uint32_t d = kMaxSpatial; d-- > 0; stride *= shape.windows[d].output) shape.output.spatial[d] = stride;
  shape.output.channel = stride;
  shape.output.outer[1] = stride * shape.output_channels;
  shape.output.outer[0] = shape.output.outer[1] * shape.outer[1];
}

// Sets the requantization if the second scale is a single number.
void AddRequantization(const OperatorDesc& desc, const ScaleNames& names, uint64_t per_group,
                       const ConvolutionTensor& output, const ByteLimits& limits,
                       IntegerProductProblem* problem) {
  const auto numbers = [&](const char* name) { return ZerosOf(desc, name, per_group); };
  if (numbers(names.second)->stride != 0 || problem->sums.sum_type != DataType::kInt32) return;
  const bool has_bias = FindField(*desc.schema, "BiasTensor") >= 0;
  problem->requantization = {has_bias ? numbers("BiasTensor") : std::nullopt,
                             *numbers(names.first),
                             *numbers(names.second),
                             *numbers(names.output),
                             numbers(names.output_zero),
                             desc.tensor("OutputTensor")->type,
                             output,
                             limits};
}

void AppendProgram(const OperatorDesc& desc, const ByteLimits& limits, IntegerProductProblem* problem) {
  const ConvolutionTensor output = problem->sums.shape.output;
  const DataType type = desc.tensor("OutputTensor")->type;
  PackSums(&problem->sums);
  ProgramBuilder b(desc, problem->sums);
  uint8_t result = b.sum();
  if (TypeOf(desc) == Type::kQuantizedLinearMatrixMultiply) {
    const ScaleNames names = {"AScaleTensor", "BScaleTensor", "OutputScaleTensor", "OutputZeroPointTensor",
                              Each::kColumn};
    result = AppendQuantization(b, names, limits);
    AddRequantization(desc, names, 0, output, limits, problem);
  } else if (TypeOf(desc) == Type::kQuantizedLinearConvolution) {
    b.CountRowsThroughGroups();
    uint8_t bias = 0;
    if (b.Load("BiasTensor", Each::kRow, Class::kI32, &bias)) {
      b.program().Apply(ElementFunction::kAdd, Class::kI32, {result, bias});
    }
    // The input's scale is a single number.
    const ScaleNames names = {"FilterScaleTensor", "InputScaleTensor", "OutputScaleTensor",
                              "OutputZeroPointTensor", Each::kColumn};
    result = AppendQuantization(b, names, limits);
    AddRequantization(desc, names, problem->sums.shape.output_channels, output, limits, problem);
  } else {
    ElementProgram& program = b.program();
    const Class wide = problem->sums.sum_type == DataType::kInt64 ? Class::kI64 : Class::kI32;
    uint8_t scale = 0, other = 0;
    b.Load("AScaleTensor", Each::kRow, Class::kF32, &scale);
    b.Load("BScaleTensor", Each::kColumn, Class::kF32, &other);
    program.Apply(ElementFunction::kMultiply, Class::kF32, {scale, other});
    program.Convert(result, wide, Class::kF32, DataType::kFloat32);
    program.Apply(ElementFunction::kMultiply, Class::kF32, {result, scale});
    if (b.Load("BiasTensor", Each::kElement, Class::kF32, &other)) {
      program.Apply(ElementFunction::kAdd, Class::kF32, {result, other});
    }
  }
  b.Finish(result, output, type, problem);
}

Status LowerMatrices(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  IntegerProductProblem problem;
  problem.sums = MatrixSums(desc);
  if (TypeOf(desc) != Type::kMatrixMultiplyInteger) AppendProgram(desc, {}, &problem);
  return ChooseKernel(problem, context, out);
}

DataType OutputType(const OperatorDesc& desc, const TensorDesc& operand) {
  switch (TypeOf(desc)) {
    case Type::kMatrixMultiplyInteger:
    case Type::kConvolutionInteger:
      return DataType::kInt32;
    case Type::kMatrixMultiplyIntegerToFloat:
      return desc.tensor("AScaleTensor")->type;
    default: {
      const TensorDesc* const zero = desc.tensor("OutputZeroPointTensor");
      return zero != nullptr ? zero->type : operand.type;
    }
  }
}

Status InferMatrices(OperatorDesc* desc) {
  const TensorDesc *a = nullptr, *b = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "ATensor", &a));
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "BTensor", &b));
  if (FindField(*desc->schema, "AScaleTensor") >= 0) {
    const TensorDesc* scale = nullptr;
    ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "AScaleTensor", &scale));
  }
  if (a->rank != b->rank || a->rank < 2) return {};  // validation reports it
  Dimensions sizes = a->sizes;
  sizes[a->rank - 1] = b->sizes[b->rank - 1];
  FillTensor(desc, "OutputTensor", OutputType(*desc, *a), sizes, a->rank);
  return {};
}

// ---- Convolutions

ConvolutionFields FieldsOf(const OperatorDesc& desc) {
  if (TypeOf(desc) == Type::kConvolutionInteger) {
    const auto typed = ConvolutionIntegerDesc::From(desc);
    return {"CONVOLUTION_INTEGER", typed.input,       typed.filter, typed.strides,    typed.dilations,
            typed.start_padding,   typed.end_padding, {},           typed.group_count};
  }
  const auto typed = QuantizedLinearConvolutionDesc::From(desc);
  return {"QUANTIZED_LINEAR_CONVOLUTION",
          typed.input,
          typed.filter,
          typed.strides,
          typed.dilations,
          typed.start_padding,
          typed.end_padding,
          {},
          typed.group_count};
}

Status CheckConvolutions(const OperatorDesc& desc, FeatureLevel) {
  const TensorDesc& output = *desc.tensor("OutputTensor");
  ANYDML_RETURN_IF_ERROR(CheckConvolution(FieldsOf(desc), output));
  for (const char* name :
       {"InputZeroPointTensor", "InputScaleTensor", "OutputScaleTensor", "OutputZeroPointTensor"}) {
    if (FindField(*desc.schema, name) >= 0) ANYDML_RETURN_IF_ERROR(CheckOneElement(desc, name));
  }
  for (const char* name : {"FilterZeroPointTensor", "FilterScaleTensor"}) {
    if (FindField(*desc.schema, name) < 0) continue;
    // Dimensions before the channels may be omitted.
    const TensorDesc* const tensor = desc.tensor(name);
    const uint32_t channels = tensor != nullptr && tensor->rank < output.rank ? 0 : 1;
    ANYDML_RETURN_IF_ERROR(CheckParameter(desc, name, output.sizes[1], "output channel", channels, 2));
  }
  if (FindField(*desc.schema, "BiasTensor") < 0 || desc.tensor("BiasTensor") == nullptr) return {};
  Dimensions sizes;
  sizes.fill(1);
  sizes[1] = output.sizes[1];
  return CheckSizes(desc, "BiasTensor", sizes, "it has one number for each output channel");
}

Status LowerLimited(const OperatorDesc& desc, const ByteLimits& limits, const LowerContext& context,
                    LoweredOperator* out) {
  const TensorDesc& output = *desc.tensor("OutputTensor");
  IntegerProductProblem problem;
  IntegerSums& sums = problem.sums;
  sums.shape = ShapeOf(FieldsOf(desc), output);
  sums.input = static_cast<uint32_t>(BindingOf(desc, "InputTensor"));
  sums.filter = static_cast<uint32_t>(BindingOf(desc, "FilterTensor"));
  sums.input_type = desc.tensor("InputTensor")->type;
  sums.filter_type = desc.tensor("FilterTensor")->type;
  sums.input_zero = ZerosOf(desc, "InputZeroPointTensor");
  sums.filter_zero = ZerosOf(desc, "FilterZeroPointTensor", sums.shape.output_channels);
  sums.filter_is_owned = IsOwned(desc, "FilterTensor", "FilterZeroPointTensor");
  if (TypeOf(desc) == Type::kQuantizedLinearConvolution) AppendProgram(desc, limits, &problem);
  return ChooseKernel(problem, context, out);
}

Status LowerConvolutions(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  return LowerLimited(desc, {}, context, out);
}

Status InferConvolutions(OperatorDesc* desc) {
  const TensorDesc *input = nullptr, *filter = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &input));
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "FilterTensor", &filter));
  OperatorDesc complete = *desc;  // a description that can be read as a whole
  for (size_t i = 0; i < complete.fields.size(); ++i) {
    const FieldKind kind = complete.schema->fields[i].kind;
    if (kind == FieldKind::kInput || kind == FieldKind::kOutput) {
      FillTensor(&complete, complete.schema->fields[i].name, input->type, input->sizes, input->rank);
    }
  }
  Dimensions sizes;
  ANYDML_RETURN_IF_ERROR(InferConvolution(FieldsOf(complete), &sizes));
  FillTensor(desc, "OutputTensor", OutputType(*desc, *input), sizes, input->rank);
  return {};
}

}  // namespace

Status LowerClippedConvolution(const OperatorDesc& desc, ByteLimits limits, const LowerContext& context,
                               LoweredOperator* out) {
  const Status status = LowerLimited(desc, limits, context, out);
  if (status.ok()) return {};
  return Status(status.code(), StrCat(desc.schema->name, ": ", status.message()));
}

std::span<const Operator> IntegerProductOperators() {
  const auto matrices = [](Type type) {
    return Operator{static_cast<uint32_t>(type),
                    CheckMatrices,
                    LowerMatrices,
                    InferMatrices,
                    IntegerProductProblem::kFamily,
                    kPlainTraits.With(WorkOfIntegerProduct)};
  };
  const auto convolution = [](Type type) {
    return Operator{static_cast<uint32_t>(type),
                    CheckConvolutions,
                    LowerConvolutions,
                    InferConvolutions,
                    IntegerProductProblem::kFamily,
                    kPlainTraits.With(WorkOfIntegerConvolution)};
  };
  static const std::array<Operator, 5> operators = {
      matrices(Type::kMatrixMultiplyInteger),         matrices(Type::kMatrixMultiplyIntegerToFloat),
      matrices(Type::kQuantizedLinearMatrixMultiply), convolution(Type::kConvolutionInteger),
      convolution(Type::kQuantizedLinearConvolution),
  };
  return operators;
}

namespace family::integer_product {

void RegisterOperators(OperatorList* all) { all->Add(IntegerProductOperators()); }

}  // namespace family::integer_product

}  // namespace anydml
