#include <vector>

#include "kernel/module.h"
#include "ops/attention/problem.h"
#include "ops/batchnorm/problem.h"
#include "ops/column.h"
#include "ops/convolution/problem.h"
#include "ops/dynamic_quantize/problem.h"
#include "ops/element/element.h"
#include "ops/fold/problem.h"
#include "ops/gather/problem.h"
#include "ops/gemm/problem.h"
#include "ops/generate/problem.h"
#include "ops/generate/random.h"
#include "ops/integer_product/problem.h"
#include "ops/lrn/problem.h"
#include "ops/move/problem.h"
#include "ops/move/reverse.h"
#include "ops/move/value_scale.h"
#include "ops/mvn/problem.h"
#include "ops/one_hot/problem.h"
#include "ops/operator.h"
#include "ops/pooling/problem.h"
#include "ops/recurrent/problem.h"
#include "ops/reduce/problem.h"
#include "ops/resample/problem.h"
#include "ops/roi/problem.h"
#include "ops/scan/nonzero.h"
#include "ops/scan/problem.h"
#include "ops/scatter/scatter.h"
#include "ops/softmax/problem.h"
#include "ops/top_k/top_k.h"

namespace anydml {
namespace {

std::vector<const Operator*> CollectOperators() {
  std::vector<const Operator*> operators = {
      &ConvolutionOperator(),          // CONVOLUTION
      &DynamicQuantizeOperator(),      // DYNAMIC_QUANTIZE_LINEAR
      &GemmOperator(),                 // GEMM
      &NonzeroCoordinatesOperator(),   // NONZERO_COORDINATES
      &OneHotOperator(),               // ONE_HOT
      &RandomGeneratorOperator(),      // RANDOM_GENERATOR
      &ReverseSubsequencesOperator(),  // REVERSE_SUBSEQUENCES
      &kScatterElementsOperator,       // SCATTER_ELEMENTS, SCATTER
      &kScatterNdOperator,             // SCATTER_ND
      &kTopKOperator,                  // TOP_K
      &kTopK1Operator,                 // TOP_K1
      &ValueScaleOperator(),           // VALUE_SCALE_2D
  };
  for (const Operator& op : AttentionOperators()) operators.push_back(&op);
  for (const Operator& op : BatchNormOperators()) operators.push_back(&op);
  for (const Operator& op : ElementOperators()) operators.push_back(&op);
  for (const Operator& op : FoldOperators()) operators.push_back(&op);
  for (const Operator& op : GatherOperators()) operators.push_back(&op);
  for (const Operator& op : GenerateOperators()) operators.push_back(&op);
  for (const Operator& op : IntegerProductOperators()) operators.push_back(&op);
  for (const Operator& op : LrnOperators()) operators.push_back(&op);
  for (const Operator& op : MoveOperators()) operators.push_back(&op);
  for (const Operator& op : MvnOperators()) operators.push_back(&op);
  for (const Operator& op : PoolingOperators()) operators.push_back(&op);
  for (const Operator& op : RecurrentOperators()) operators.push_back(&op);
  for (const Operator& op : ReduceOperators()) operators.push_back(&op);
  for (const Operator& op : ResampleOperators()) operators.push_back(&op);
  for (const Operator& op : RoiOperators()) operators.push_back(&op);
  for (const Operator& op : ScanOperators()) operators.push_back(&op);
  for (const Operator& op : SoftmaxOperators()) operators.push_back(&op);
  return operators;
}

// By DML_OPERATOR_TYPE; null where there is none.
const std::vector<const Operator*>& ByType() {
  static const std::vector<const Operator*> by_type = [] {
    std::vector<const Operator*> table(AllOperators().size() + 1);
    for (const Operator* op : ImplementedOperators()) table.at(op->type) = op;
    return table;
  }();
  return by_type;
}

}  // namespace

std::vector<const char*> ImplementationNames(const Operator& op) {
  std::vector<const char*> names, references;
  for (const char* name : HostColumn().NamesOf(op.family)) {
    (std::string_view(name) == "cpu.reference" ? references : names).push_back(name);
  }
  for (const Module* module : Modules()) {
    const auto theirs = module->column().NamesOf(op.family);
    names.insert(names.end(), theirs.begin(), theirs.end());
  }
  names.insert(names.end(), references.begin(), references.end());
  return names;
}

Status LowerOperator(const Operator& op, const OperatorDesc& desc, const LowerContext& context,
                     LoweredOperator* out) {
  const Status status = op.lower(desc, context, out);
  if (status.ok()) return {};
  return Status(status.code(), StrCat(desc.schema->name, ": ", status.message()));
}

std::span<const Operator* const> ImplementedOperators() {
  static const std::vector<const Operator*> operators = CollectOperators();
  return operators;
}

const Operator* FindImplementation(uint32_t type) {
  const auto& by_type = ByType();
  return type < by_type.size() ? by_type[type] : nullptr;
}

}  // namespace anydml
