#include <array>
#include <cstring>

#include "ops/common/checks.h"
#include "ops/generate/problem.h"
#include "ops/generate/random.h"
#include "ops/implementation_list.h"
#include "ops/numbers/math/saturate.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

uint64_t BitsOf(const Scalar& scalar) {
  uint64_t bits = 0;
  std::memcpy(&bits, scalar.bytes.data(), sizeof(bits));
  return bits;
}

// A FLOAT attribute as an element; for integers truncated and saturated.
uint64_t BitsOf(float value, DataType type) {
  switch (type) {
    case DataType::kFloat32:
      return std::bit_cast<uint32_t>(value);
    case DataType::kFloat16:
      return ToHalf(value).bits;
    case DataType::kFloat64:
      return std::bit_cast<uint64_t>(double{value});
    default:
      return SaturatedBits(value, type);
  }
}

GenerateProblem ProblemOf(const OperatorDesc& desc) {
  GenerateProblem problem;
  problem.output = *desc.tensor("OutputTensor");
  switch (static_cast<OperatorType>(desc.schema->type)) {
    case OperatorType::kFillValueConstant:
      problem.kind = GenerateProblem::Kind::kConstant;
      problem.value = BitsOf(FillValueConstantDesc::From(desc).value);
      break;
    case OperatorType::kFillValueSequence: {
      const auto sequence = FillValueSequenceDesc::From(desc);
      problem.kind = GenerateProblem::Kind::kSequence;
      problem.value = BitsOf(sequence.value_start);
      problem.delta = BitsOf(sequence.value_delta);
      break;
    }
    case OperatorType::kDiagonalMatrix: {
      const auto matrix = DiagonalMatrixDesc::From(desc);
      problem.kind = GenerateProblem::Kind::kBand;
      problem.value = BitsOf(matrix.value, matrix.output.type);
      problem.begin = matrix.offset;
      problem.end = problem.begin + 1;
      break;
    }
    default: {
      const auto matrix = DiagonalMatrix1Desc::From(desc);
      problem.kind = GenerateProblem::Kind::kBand;
      problem.value = BitsOf(matrix.value);
      problem.begin = matrix.diagonal_fill_begin;
      problem.end = matrix.diagonal_fill_end;
      problem.has_input = matrix.input != nullptr;
      if (problem.has_input) problem.input = *matrix.input;
    }
  }
  return problem;
}

// The schema has all rules.
Status Check(const OperatorDesc&, FeatureLevel) { return {}; }

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  return ChooseKernel(ProblemOf(desc), context, out);
}

Status Infer(OperatorDesc* desc) {
  if (desc->schema == FindOperator(OperatorType::kDiagonalMatrix1)) {
    const TensorDesc* const input = desc->tensor("InputTensor");
    if (input != nullptr && input->rank > 0) {
      const TensorDesc like = *input;
      FillTensor(desc, "OutputTensor", like.type, like.sizes, like.rank);
    }
  }
  return RequireOutput(*desc, "OutputTensor");
}

}  // namespace

LoopNest<4> GenerateNest(const GenerateProblem& p) {
  const uint32_t rank = p.output.rank;
  const bool counts = p.kind == GenerateProblem::Kind::kSequence;
  const bool is_band = p.kind == GenerateProblem::Kind::kBand;
  std::array<uint64_t, kMaxDimensions> numbers{};
  uint64_t number = 1;
  for (uint32_t d = rank; d-- > 0; number *= p.output.sizes[d]) numbers[d] = number;
  LoopNest<4> nest;
  for (uint32_t d = 0; d < rank; ++d) {
    const uint64_t diagonal = d + 1 == rank ? 1 : d + 2 == rank ? ~uint64_t{0} : 0;
    nest.Append(p.output.sizes[d], {p.output.strides[d], p.has_input ? p.input.strides[d] : 0,
                                    counts ? numbers[d] : 0, is_band ? diagonal : 0});
  }
  return SortedByStride(nest, kGenerateOutput);
}

std::span<const Operator> GenerateOperators() {
  static const auto operators = [] {
    std::array<Operator, 4> rows;
    constexpr OperatorType kTypes[] = {OperatorType::kFillValueConstant, OperatorType::kFillValueSequence,
                                       OperatorType::kDiagonalMatrix, OperatorType::kDiagonalMatrix1};
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] = {static_cast<uint32_t>(kTypes[i]), Check,       Lower, Infer,
                 GenerateProblem::kFamily,         kPlainTraits};
    }
    return rows;
  }();
  return operators;
}

namespace family::generate {

void RegisterOperators(OperatorList* all) {
  all->Add(GenerateOperators());
  all->Add(RandomGeneratorOperator());
}

}  // namespace family::generate

}  // namespace anydml
