#include "support/cases.h"

namespace anydml::testing {
namespace {

constexpr OperatorType kOperators[] = {OperatorType::kFillValueConstant, OperatorType::kFillValueSequence,
                                       OperatorType::kDiagonalMatrix, OperatorType::kDiagonalMatrix1,
                                       OperatorType::kRandomGenerator};
constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kInt64,  DataType::kInt32,
                               DataType::kInt16,   DataType::kInt8,    DataType::kUInt64, DataType::kUInt32,
                               DataType::kUInt16,  DataType::kUInt8,   DataType::kFloat64};

Scalar AnyScalar(CaseMaker& make) {
  Scalar scalar{};
  for (uint8_t& byte : scalar.bytes) byte = make.source().Byte();
  return scalar;
}

uint32_t Number(DataType type) { return static_cast<uint32_t>(type); }

// Of 2 to 4 dimensions, for matrices.
std::vector<uint32_t> MatrixSizes(CaseMaker& make) {
  std::vector<uint32_t> sizes = make.Sizes(4);
  if (sizes.size() == 1) sizes.push_back(make.source().Between(1, 12));
  return sizes;
}

// Near the matrix, or anywhere.
int32_t AnyDiagonal(CaseMaker& make) {
  constexpr int32_t kFar[] = {INT32_MIN, INT32_MAX, INT32_MIN + 1, 1000};
  if (make.source().OneIn(4)) return make.source().Any(kFar);
  return static_cast<int32_t>(make.source().Between(0, 20)) - 10;
}

Case MakeRandomGenerator(CaseMaker& make) {
  const TensorDesc output = make.Output(DataType::kUInt32, make.Sizes(kMaxDimensions));
  std::vector<uint32_t> state_sizes(make.source().Between(1, 4), 1);
  state_sizes.back() = 6;
  const TensorDesc state = make.Input(DataType::kUInt32, state_sizes);
  Case problem;
  FieldValue output_state;
  if (!make.source().OneIn(4)) output_state = make.Output(DataType::kUInt32, state_sizes);
  problem.desc = MakeDesc("RANDOM_GENERATOR", {{"InputStateTensor", state},
                                               {"OutputTensor", output},
                                               {"OutputStateTensor", output_state},
                                               {"Type", 0u}});
  problem.inputs = {make.Content(state)};
  if (make.source().OneIn(2)) {  // a carry through all words
    for (uint8_t& byte : problem.inputs[0]) byte = 0xFF;
  }
  return problem;
}

Case MakeGenerate(OperatorType type, CaseMaker& make) {
  if (type == OperatorType::kRandomGenerator) return MakeRandomGenerator(make);
  const char* const name = FindOperator(type)->name;
  DataType data_type = make.source().Any(kTypes);
  Case problem;
  if (type == OperatorType::kFillValueConstant) {
    problem.desc = MakeDesc(name, {{"OutputTensor", make.Output(data_type, make.Sizes(kMaxDimensions))},
                                   {"ValueDataType", Number(data_type)},
                                   {"Value", AnyScalar(make)}});
  } else if (type == OperatorType::kFillValueSequence) {
    if (data_type == DataType::kFloat64) data_type = DataType::kFloat32;
    problem.desc = MakeDesc(name, {{"OutputTensor", make.Output(data_type, make.Sizes(kMaxDimensions))},
                                   {"ValueDataType", Number(data_type)},
                                   {"ValueStart", AnyScalar(make)},
                                   {"ValueDelta", AnyScalar(make)}});
  } else if (type == OperatorType::kDiagonalMatrix) {
    constexpr float kValues[] = {1, -2.75f, 300.5f, 1e20f, -1e20f, 0.1f};
    problem.desc = MakeDesc(name, {{"OutputTensor", make.Output(data_type, MatrixSizes(make))},
                                   {"Offset", AnyDiagonal(make)},
                                   {"Value", make.source().Any(kValues)}});
  } else {
    const std::vector<uint32_t> sizes = MatrixSizes(make);
    const bool has_input = !make.source().OneIn(4);
    const TensorDesc input = make.Input(data_type, sizes);
    problem.desc = MakeDesc(name, {{"InputTensor", has_input ? FieldValue(input) : FieldValue()},
                                   {"OutputTensor", make.Output(data_type, sizes)},
                                   {"ValueDataType", Number(data_type)},
                                   {"Value", AnyScalar(make)},
                                   {"DiagonalFillBegin", AnyDiagonal(make)},
                                   {"DiagonalFillEnd", AnyDiagonal(make)}});
    problem.inputs = {has_input ? make.Content(input) : Bytes()};
  }
  return problem;
}

}  // namespace

CaseFamily family::generate::Cases() { return {"generate", kOperators, MakeGenerate}; }

}  // namespace anydml::testing
