#include <utility>

#include "ops/common/checks.h"
#include "ops/element/builder.h"
#include "ops/implementation_list.h"
#include "ops/recurrent/problem.h"
#include "schema/descriptions.generated.h"

namespace anydml {
namespace {

CellKind KindOf(const OperatorDesc& desc) {
  switch (static_cast<OperatorType>(desc.schema->type)) {
    case OperatorType::kRnn:
      return CellKind::kRnn;
    case OperatorType::kLstm:
      return CellKind::kLstm;
    default:
      return CellKind::kGru;
  }
}

// The sizes of which all tensors' sizes are made.
struct Counts {
  CellKind kind;
  uint32_t directions, steps, batch, inputs, units;

  uint32_t gates() const { return GatesOf(kind); }
};

Counts CountsOf(const OperatorDesc& desc) {
  const TensorDesc& input = *desc.tensor("InputTensor");
  const auto direction = static_cast<RecurrentNetworkDirection>(desc.uint("Direction"));
  return {KindOf(desc),   direction == RecurrentNetworkDirection::kBidirectional ? 2u : 1u,
          input.sizes[1], input.sizes[2],
          input.sizes[3], desc.tensor("RecurrenceTensor")->sizes[3]};
}

// "2 gates"
std::string Counted(uint64_t count, const char* what) {
  return StrCat(count, " ", what, count == 1 ? "" : "s");
}

std::string DirectionsAnd(const Counts& counts, const std::string& others) {
  return StrCat("there ", counts.directions == 1 ? "is " : "are ", Counted(counts.directions, "direction"),
                ", ", others);
}

std::string GatesAndUnits(const Counts& counts) {
  return StrCat(Counted(counts.gates(), "gate"), " of ", Counted(counts.units, "unit"));
}

Status CheckOptional(const OperatorDesc& desc, const char* name, const Dimensions& sizes,
                     const std::string& because) {
  if (FindField(*desc.schema, name) < 0 || desc.tensor(name) == nullptr) return {};
  return CheckSizes(desc, name, sizes, because);
}

// Computes gates times units in 64 bits: once this is checked, no size wraps.
Status CheckGates(const OperatorDesc& desc, const Counts& counts) {
  const uint64_t needed = uint64_t{counts.gates()} * counts.units;
  const uint32_t given = desc.tensor("RecurrenceTensor")->sizes[2];
  if (given == needed) return {};
  return InvalidArgument(desc.schema->name, ": RecurrenceTensor.Sizes[2] is ", given, " but must be ", needed,
                         ": ", GatesAndUnits(counts), " (RecurrenceTensor.Sizes[3])");
}

Status CheckTensors(const OperatorDesc& desc, const Counts& counts) {
  const TensorDesc& input = *desc.tensor("InputTensor");
  if (input.sizes[0] != 1) {
    return InvalidArgument(desc.schema->name, ": InputTensor.Sizes[0] is ", input.sizes[0], " but must be 1");
  }
  ANYDML_RETURN_IF_ERROR(CheckGates(desc, counts));
  const auto [kind, directions, steps, batch, inputs, units] = counts;
  const uint32_t all = counts.gates() * units;
  const std::string weights = DirectionsAnd(counts, GatesAndUnits(counts));
  const std::string states =
      DirectionsAnd(counts, StrCat("a batch of ", batch, " and ", Counted(units, "unit")));
  ANYDML_RETURN_IF_ERROR(CheckSizes(desc, "RecurrenceTensor", {1, directions, all, units}, weights));
  ANYDML_RETURN_IF_ERROR(CheckSizes(desc, "WeightTensor", {1, directions, all, inputs},
                                    StrCat(weights, ", and ", Counted(inputs, "input"))));
  ANYDML_RETURN_IF_ERROR(CheckOptional(desc, "BiasTensor", {1, 1, directions, 2 * all},
                                       StrCat(weights, ", each with two biases")));
  ANYDML_RETURN_IF_ERROR(CheckOptional(desc, "PeepholeTensor", {1, 1, directions, 3 * units},
                                       StrCat(weights, ", of which three see the cell state")));
  ANYDML_RETURN_IF_ERROR(
      CheckOptional(desc, "SequenceLengthsTensor", {1, 1, 1, batch}, StrCat("there is a batch of ", batch)));
  for (const char* const name :
       {"HiddenInitTensor", "CellMemInitTensor", "OutputSingleTensor", "OutputCellSingleTensor"}) {
    ANYDML_RETURN_IF_ERROR(CheckOptional(desc, name, {1, directions, batch, units}, states));
  }
  return CheckOptional(desc, "OutputSequenceTensor", {steps, directions, batch, units},
                       StrCat(states, ", in ", Counted(steps, "step")));
}

Status Check(const OperatorDesc& desc, FeatureLevel) {
  const Counts counts = CountsOf(desc);
  bool any_output = false;
  for (const TensorDesc* const output : desc.outputs()) any_output = any_output || output != nullptr;
  if (!any_output) {
    return InvalidArgument(desc.schema->name, ": all of its outputs are null; at least one must be given");
  }
  ANYDML_RETURN_IF_ERROR(CheckTensors(desc, counts));
  const uint32_t each = ActivationsOf(counts.kind), needed = counts.directions * each;
  const uint32_t given = desc.uint("ActivationDescCount");
  if (given == needed) return {};
  return InvalidArgument(desc.schema->name, ": ActivationDescCount is ", given, " but must be ", needed, ": ",
                         each, " for each of ", Counted(counts.directions, "direction"));
}

CellActivation ActivationOf(const OperatorDesc& desc, const float* clip) {
  CellActivation activation;
  ElementProgram& program = activation.program;
  const uint8_t at = program.NewRegister();
  if (clip != nullptr) {
    program.Apply(ElementFunction::kClip, Class::kF32, {at}, ParameterOf(-*clip), ParameterOf(*clip));
  }
  switch (static_cast<OperatorType>(desc.schema->type)) {
    case OperatorType::kActivationSoftmax:
      activation.row = RowFunction::kSoftmax;
      break;
    case OperatorType::kActivationHardmax:
      activation.row = RowFunction::kHardmax;
      break;
    default:
      AppendActivation(desc, &program, at);
  }
  return activation;
}

std::optional<TensorDesc> Optional(const TensorDesc* tensor) {
  return tensor != nullptr ? std::optional(*tensor) : std::nullopt;
}

// The common fields of all three.
template <typename Desc>
RecurrentProblem ProblemOf(const Desc& typed, const Counts& counts) {
  RecurrentProblem problem;
  problem.kind = counts.kind;
  problem.type = typed.input.type;
  problem.directions = counts.directions;
  problem.first_is_backward = typed.direction == RecurrentNetworkDirection::kBackward;
  problem.steps = counts.steps;
  problem.batch = counts.batch;
  problem.inputs = counts.inputs;
  problem.units = counts.units;
  problem.input = typed.input;
  problem.weight = typed.weight;
  problem.recurrence = typed.recurrence;
  problem.bias = Optional(typed.bias);
  problem.hidden_init = Optional(typed.hidden_init);
  problem.lengths = Optional(typed.sequence_lengths);
  problem.sequence = Optional(typed.output_sequence);
  problem.single = Optional(typed.output_single);
  // The gates' sums are clipped; LSTM's cell state (the input of the last activation) is not.
  const float* clip = nullptr;
  if constexpr (requires { typed.clip_threshold; }) {
    if (typed.use_clip_threshold) clip = &typed.clip_threshold;
  }
  const uint32_t each = ActivationsOf(counts.kind);
  for (uint32_t i = 0; i < typed.activation_descs.size(); ++i) {
    problem.activations[i / each][i % each] =
        ActivationOf(typed.activation_descs[i], i % each < 2 ? clip : nullptr);
  }
  return problem;
}

RecurrentProblem ProblemOf(const OperatorDesc& desc) {
  const Counts counts = CountsOf(desc);
  switch (counts.kind) {
    case CellKind::kRnn:
      return ProblemOf(RnnDesc::From(desc), counts);
    case CellKind::kLstm: {
      const auto typed = LstmDesc::From(desc);
      RecurrentProblem problem = ProblemOf(typed, counts);
      problem.cell_init = Optional(typed.cell_mem_init);
      problem.peephole = Optional(typed.peephole);
      problem.cell_single = Optional(typed.output_cell_single);
      problem.couples_input_and_forget = typed.couple_input_forget;
      return problem;
    }
    default: {
      const auto typed = GruDesc::From(desc);
      RecurrentProblem problem = ProblemOf(typed, counts);
      problem.linear_before_reset = typed.linear_before_reset;
      return problem;
    }
  }
}

Status Lower(const OperatorDesc& desc, const LowerContext& context, LoweredOperator* out) {
  return ChooseKernel(ProblemOf(desc), context, out);
}

// Infers the requested outputs; all are optional.
Status Infer(OperatorDesc* desc) {
  const TensorDesc *given = nullptr, *recurrence = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &given));
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "RecurrenceTensor", &recurrence));
  if (given->rank != 4 || recurrence->rank != 4) return {};  // validation reports it
  const TensorDesc input = *given;
  const Dimensions state = {1, recurrence->sizes[1], input.sizes[2], recurrence->sizes[3]};
  for (const char* const name : {"OutputSequenceTensor", "OutputSingleTensor", "OutputCellSingleTensor"}) {
    if (FindField(*desc->schema, name) < 0 || desc->tensor(name) == nullptr) continue;
    Dimensions sizes = state;
    if (name == std::string_view("OutputSequenceTensor")) sizes[0] = input.sizes[1];
    FillTensor(desc, name, input.type, sizes, 4);
  }
  return {};
}

Operator Make(OperatorType type) {
  return {static_cast<uint32_t>(type),
          Check,
          Lower,
          Infer,
          RecurrentProblem::kFamily,
          kPlainTraits.With(Strides::kRestricted)};
}

}  // namespace

std::unique_ptr<const Kernel> CreateRecurrentErrors(const OperatorDesc& desc) {
  return CreateRecurrentErrors(ProblemOf(desc));
}

std::span<const Operator> RecurrentOperators() {
  static const Operator operators[] = {Make(OperatorType::kRnn), Make(OperatorType::kLstm),
                                       Make(OperatorType::kGru)};
  return operators;
}

namespace family::recurrent {

void RegisterOperators(OperatorList* all) { all->Add(RecurrentOperators()); }

}  // namespace family::recurrent

}  // namespace anydml
