#include <bit>

#include "ops/gemm/gemm_cases.h"
#include "support/cases.h"

namespace anydml::testing {
namespace {

using Type = OperatorType;

constexpr Type kOperators[] = {Type::kRnn, Type::kLstm, Type::kGru};

// None of these magnifies errors, for parameters up to 1; nor do the first ones give numbers larger than 1.
constexpr Type kContinuous[] = {
    Type::kActivationTanh,      Type::kActivationSigmoid,    Type::kActivationHardSigmoid,
    Type::kActivationSoftsign,  Type::kActivationScaledTanh, Type::kActivationSoftmax,
    Type::kActivationRelu,      Type::kActivationLeakyRelu,  Type::kActivationElu,
    Type::kActivationLinear,    Type::kActivationIdentity,   Type::kActivationParametricSoftplus,
    Type::kActivationScaledElu, Type::kActivationCelu,       Type::kActivationGelu,
    Type::kActivationSoftplus,
};
constexpr std::span<const Type> kBounded = std::span(kContinuous).first(6);
// With these, rounding errors of the sums could change results completely.
constexpr Type kWithJumps[] = {Type::kActivationThresholdedRelu, Type::kActivationShrink,
                               Type::kActivationHardmax, Type::kActivationRelu, Type::kActivationIdentity};

OperatorDesc MakeActivation(Type type, ByteSource& source) {
  constexpr float kParameters[] = {0.5f, 1, 0.25f};
  OperatorDesc desc = MakeDesc(FindOperator(type)->name, {});
  for (size_t i = 0; i < desc.fields.size(); ++i) {
    if (desc.schema->fields[i].type == FieldType::kFloat) desc.fields[i] = source.Any(kParameters);
  }
  return desc;
}

// Makes the tensors of a case and their contents, in binding order.
class RecurrentCase {
 public:
  RecurrentCase(Type type, DataType data_type, CaseMaker& make) : type_(data_type), make_(make) {
    case_.desc = MakeDesc(FindOperator(type)->name, {});
  }

  void Set(const char* name, FieldValue value) { SetField(&case_.desc, name, std::move(value)); }

  // Numbers up to `most`; sums of `terms` products stay near that.
  void AddInput(const char* name, const std::vector<uint32_t>& sizes, uint32_t terms = 1, float most = 1) {
    const TensorDesc tensor = make_.Input(type_, sizes);
    Bytes bytes(tensor.total_bytes);
    const size_t width = BitSize(type_) / 8;
    const float unit = 0.125f * most / static_cast<float>(std::bit_ceil(terms));
    for (size_t at = 0; at + width <= bytes.size(); at += width) {
      const float number = (static_cast<float>(make_.random()() % 17) - 8) * unit;
      const Half half = ToHalf(number);
      std::memcpy(bytes.data() + at, type_ == DataType::kFloat16 ? static_cast<const void*>(&half) : &number,
                  width);
    }
    Set(name, tensor);
    case_.inputs.push_back(std::move(bytes));
  }

  void AddOptionalInput(const char* name, const std::vector<uint32_t>& sizes) {
    if (make_.source().OneIn(2)) return AddInput(name, sizes);
    case_.inputs.emplace_back();
  }

  // Some are 0, some larger than the number of steps.
  void AddLengths(uint32_t batch, uint32_t steps) {
    if (make_.source().OneIn(2)) {
      case_.inputs.emplace_back();
      return;
    }
    const TensorDesc tensor = make_.Input(DataType::kUInt32, {1, 1, 1, batch});
    Bytes bytes(tensor.total_bytes);
    for (size_t at = 0; at + sizeof(uint32_t) <= bytes.size(); at += sizeof(uint32_t)) {
      const auto length =
          make_.random()() % 16 == 0 ? ~uint32_t{0} : static_cast<uint32_t>(make_.random()() % (steps + 2));
      std::memcpy(bytes.data() + at, &length, sizeof(length));
    }
    Set("SequenceLengthsTensor", tensor);
    case_.inputs.push_back(std::move(bytes));
  }

  void AddOutput(const char* name, const std::vector<uint32_t>& sizes) {
    Set(name, make_.Output(type_, sizes));
  }

  Case Take() && { return std::move(case_); }

 private:
  DataType type_;
  CaseMaker& make_;
  Case case_;
};

Case MakeRecurrent(Type type, CaseMaker& make) {
  ByteSource& source = make.source();
  const bool is_lstm = type == Type::kLstm;
  const uint32_t gates = type == Type::kRnn ? 1 : is_lstm ? 4 : 3;
  const uint32_t each = type == Type::kRnn ? 1 : is_lstm ? 3 : 2;
  const bool jumps = source.OneIn(6), large = source.OneIn(12);
  const uint32_t steps = jumps ? 1 : source.Between(1, type == Type::kRnn ? 6 : 4);
  const uint32_t batch = source.Between(1, source.OneIn(3) ? 40 : 4);
  const uint32_t inputs = source.Between(1, large ? 70 : 9), units = source.Between(1, large ? 70 : 9);
  const uint32_t direction = source.Between(0, 2), directions = direction == 2 ? 2 : 1;
  const DataType data_type = source.OneIn(2) ? DataType::kFloat16 : DataType::kFloat32;

  const float weights = source.OneIn(4) ? 16 : 1;

  RecurrentCase problem(type, data_type, make);
  problem.AddInput("InputTensor", {1, steps, batch, inputs});
  problem.AddInput("WeightTensor", {1, directions, gates * units, inputs}, inputs, weights);
  problem.AddInput("RecurrenceTensor", {1, directions, gates * units, units}, units, weights);
  problem.AddOptionalInput("BiasTensor", {1, 1, directions, 2 * gates * units});
  problem.AddOptionalInput("HiddenInitTensor", {1, directions, batch, units});
  if (is_lstm) problem.AddOptionalInput("CellMemInitTensor", {1, directions, batch, units});
  problem.AddLengths(batch, steps);
  if (is_lstm) problem.AddOptionalInput("PeepholeTensor", {1, 1, directions, 3 * units});

  const uint32_t outputs = source.Between(1, is_lstm ? 7 : 3);  // bits
  if ((outputs & 1) != 0) problem.AddOutput("OutputSequenceTensor", {steps, directions, batch, units});
  if ((outputs & 2) != 0) problem.AddOutput("OutputSingleTensor", {1, directions, batch, units});
  if ((outputs & 4) != 0) problem.AddOutput("OutputCellSingleTensor", {1, directions, batch, units});

  std::vector<OperatorDesc> activations;
  for (uint32_t i = 0; i < directions * each; ++i) {
    // Gates are factors of the state: powers of larger ones soon overflow.
    const bool is_factor = type != Type::kRnn && i % each == 0 && steps > 1;
    const Type activation = jumps       ? source.Any(kWithJumps)
                            : is_factor ? source.Any(kBounded)
                                        : source.Any(kContinuous);
    activations.push_back(MakeActivation(activation, source));
  }
  problem.Set("ActivationDescCount", directions * each);
  problem.Set("ActivationDescs", std::move(activations));
  problem.Set("Direction", direction);
  if (is_lstm) {
    constexpr float kThresholds[] = {0.5f, 1, 0};
    problem.Set("ClipThreshold", source.Any(kThresholds));
    problem.Set("UseClipThreshold", uint32_t{source.OneIn(3)});
    problem.Set("CoupleInputForget", uint32_t{source.OneIn(3)});
  }
  if (type == Type::kGru) problem.Set("LinearBeforeReset", source.Between(0, 1));
  return std::move(problem).Take();
}

}  // namespace

CaseFamily family::recurrent::Cases() { return {"recurrent", kOperators, MakeRecurrent}; }

}  // namespace anydml::testing
