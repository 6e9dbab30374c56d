#include "ops/common/checks.h"
#include "ops/element/builder.h"
#include "ops/gemm/softmax.h"
#include "ops/implementation_list.h"
#include "ops/work.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

// A matrix as the product uses it, and the names of its dimensions for messages.
struct Operand {
  const char* name;
  const TensorDesc& tensor;
  bool transposed;

  uint32_t RowDimension() const { return tensor.rank - (transposed ? 1 : 2); }
  uint32_t ColumnDimension() const { return tensor.rank - (transposed ? 2 : 1); }
  uint32_t rows() const { return tensor.sizes[RowDimension()]; }
  uint32_t columns() const { return tensor.sizes[ColumnDimension()]; }
  std::string Field(uint32_t d) const { return StrCat(name, ".Sizes[", d, "]"); }

  GemmMatrix Matrix() const {
    GemmMatrix matrix;
    for (uint32_t d = 0; d + 2 < tensor.rank; ++d) {
      matrix.batch[d + 4 - tensor.rank] = tensor.strides[d];
    }
    matrix.row = tensor.strides[RowDimension()];
    // The stride of a single column is never used, so it counts as contiguous.
    matrix.column = columns() == 1 ? 1 : tensor.strides[ColumnDimension()];
    return matrix;
  }
};

Operand OperandA(const GemmDesc& desc) {
  return {"ATensor", desc.a, desc.trans_a == MatrixTransform::kTranspose};
}
Operand OperandB(const GemmDesc& desc) {
  return {"BTensor", desc.b, desc.trans_b == MatrixTransform::kTranspose};
}

Status CheckSoftmaxAxes(const GemmDesc& desc) {
  const OperatorDesc* const fused = desc.fused_activation;
  if (fused == nullptr || fused->schema->type != static_cast<uint32_t>(OperatorType::kActivationSoftmax1)) {
    return {};
  }
  const int field = FindField(*fused->schema, "Axes");
  uint32_t seen = 0;
  for (const uint32_t axis : std::get<std::vector<uint32_t>>(fused->fields[field])) {
    if (axis >= desc.output.rank) {
      return InvalidArgument("GEMM: FusedActivation.Axes has ", axis, " but must be less than ",
                             desc.output.rank, ", the output's DimensionCount");
    }
    if ((seen >> axis & 1) != 0) return InvalidArgument("GEMM: FusedActivation.Axes has ", axis, " twice");
    seen |= 1u << axis;
  }
  return {};
}

Status Check(const OperatorDesc& desc, FeatureLevel) {
  const auto typed = GemmDesc::From(desc);
  const Operand a = OperandA(typed), b = OperandB(typed);
  if (a.columns() != b.rows()) {
    return InvalidArgument("GEMM: ", b.Field(b.RowDimension()), " is ", b.rows(), " but must be ",
                           a.columns(), ", that of ", a.Field(a.ColumnDimension()),
                           ": the product runs over both (K)");
  }
  for (uint32_t d = 0; d + 2 < a.tensor.rank; ++d) {
    if (b.tensor.sizes[d] == a.tensor.sizes[d]) continue;
    return InvalidArgument("GEMM: ", b.Field(d), " is ", b.tensor.sizes[d], " but must be ",
                           a.tensor.sizes[d], ", that of ", a.Field(d),
                           ": every matrix of A has one of B (a stride of 0 repeats one)");
  }
  Dimensions sizes = a.tensor.sizes;
  sizes[a.tensor.rank - 2] = a.rows();
  sizes[a.tensor.rank - 1] = b.columns();
  ANYDML_RETURN_IF_ERROR(CheckSizes(desc, "OutputTensor", sizes, "it is the product of ATensor and BTensor"));
  ANYDML_RETURN_IF_ERROR(CheckSoftmaxAxes(typed));
  if (typed.c == nullptr) return {};
  return CheckSizes(desc, "CTensor", sizes, "it is added to the product");
}

// Of {batch, batch, m, n}, if the activation is a softmax.
std::optional<AxisSet> SoftmaxAxes(const GemmDesc& desc) {
  if (desc.fused_activation == nullptr) return std::nullopt;
  const uint32_t shift = 4 - desc.output.rank;
  switch (static_cast<OperatorType>(desc.fused_activation->schema->type)) {
    case OperatorType::kActivationSoftmax:
      return AxisSet{1} << 3;
    case OperatorType::kActivationSoftmax1: {
      const int field = FindField(*desc.fused_activation->schema, "Axes");
      AxisSet axes = 0;
      for (const uint32_t axis : std::get<std::vector<uint32_t>>(desc.fused_activation->fields[field])) {
        axes |= AxisSet{1} << (axis + shift);
      }
      return axes;
    }
    default:
      return std::nullopt;
  }
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  const auto typed = GemmDesc::From(desc);
  const Operand a = OperandA(typed), b = OperandB(typed), output = {"OutputTensor", typed.output, false};
  GemmProblem problem;
  problem.type = problem.output_type = typed.a.type;
  for (uint32_t d = 0; d + 2 < typed.a.rank; ++d) problem.batch[d + 4 - typed.a.rank] = typed.a.sizes[d];
  problem.m = a.rows();
  problem.n = b.columns();
  problem.k = a.columns();
  problem.a = a.Matrix();
  problem.b = b.Matrix();
  problem.output = output.Matrix();
  problem.a_is_owned = typed.a.owned_by_dml;
  problem.b_is_owned = typed.b.owned_by_dml;
  problem.alpha = typed.alpha;
  if (typed.c != nullptr && typed.beta != 0) {
    problem.c = Operand{"CTensor", *typed.c, false}.Matrix();
    problem.beta = typed.beta;
  }
  if (const std::optional<AxisSet> axes = SoftmaxAxes(typed)) {
    const GemmSoftmaxProblem whole = {problem, *axes};
    return ChooseKernel(whole, context, out);
  }
  if (typed.fused_activation != nullptr) {
    AppendActivation(*typed.fused_activation, &problem.activation, problem.activation.NewRegister());
  }
  return ChooseKernel(problem, context, out);
}

Status Infer(OperatorDesc* desc) {
  const TensorDesc *a = nullptr, *b = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "ATensor", &a));
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "BTensor", &b));
  if (a->rank != b->rank || a->rank < 2) return {};  // validation reports it
  Dimensions sizes = a->sizes;
  sizes[a->rank - 2] = a->sizes[a->rank - (desc->uint("TransA") != 0 ? 1 : 2)];
  sizes[a->rank - 1] = b->sizes[b->rank - (desc->uint("TransB") != 0 ? 2 : 1)];
  FillTensor(desc, "OutputTensor", a->type, sizes, a->rank);
  return {};
}

}  // namespace

const Operator& GemmOperator() {
  static const Operator op = {static_cast<uint32_t>(OperatorType::kGemm),
                              Check,
                              Lower,
                              Infer,
                              GemmProblem::kFamily,
                              kPlainTraits.With(Strides::kMatterInOutput).With(WorkOfProduct)};
  return op;
}

namespace family::gemm {

void RegisterOperators(OperatorList* all) { all->Add(GemmOperator()); }

}  // namespace family::gemm

}  // namespace anydml
