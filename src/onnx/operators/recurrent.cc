// RNN, GRU, LSTM: DirectML's operators with other orders of inputs, in four dimensions.
#include <algorithm>

#include "onnx/lower/compose.h"
#include "onnx/operators/operators.h"

namespace anydml::onnx {
namespace {

struct ActivationRow {
  const char* name;
  DML_OPERATOR_TYPE type;
  int numbers;  // how many of alpha and beta it takes
  float alpha, beta;
};

constexpr ActivationRow kActivations[] = {
    {"Relu", DML_OPERATOR_ACTIVATION_RELU, 0, 0, 0},
    {"Tanh", DML_OPERATOR_ACTIVATION_TANH, 0, 0, 0},
    {"Sigmoid", DML_OPERATOR_ACTIVATION_SIGMOID, 0, 0, 0},
    {"Affine", DML_OPERATOR_ACTIVATION_LINEAR, 2, 1, 0},
    {"LeakyRelu", DML_OPERATOR_ACTIVATION_LEAKY_RELU, 1, 0.01f, 0},
    {"ThresholdedRelu", DML_OPERATOR_ACTIVATION_THRESHOLDED_RELU, 1, 1, 0},
    {"ScaledTanh", DML_OPERATOR_ACTIVATION_SCALED_TANH, 2, 1, 1},
    {"HardSigmoid", DML_OPERATOR_ACTIVATION_HARD_SIGMOID, 2, 0.2f, 0.5f},
    {"Elu", DML_OPERATOR_ACTIVATION_ELU, 1, 1, 0},
    {"Softsign", DML_OPERATOR_ACTIVATION_SOFTSIGN, 0, 0, 0},
    {"Softplus", DML_OPERATOR_ACTIVATION_SOFTPLUS, 0, 1, 0},
};

// The activations of all directions, and the objects to which their descriptions point.
struct Activations {
  std::vector<DML_ACTIVATION_HARD_SIGMOID_OPERATOR_DESC> parameters;
  std::vector<DML_OPERATOR_DESC> descs;
};

Status ReadActivations(const Lowering& n, std::vector<std::string> defaults, size_t directions,
                       Activations* out) {
  std::vector<std::string> names;
  for (size_t i = 0; i < directions; ++i) names.insert(names.end(), defaults.begin(), defaults.end());
  if (n.HasAttribute("activations")) {
    std::vector<std::string> given = n.Texts("activations");
    if (given.size() != names.size()) return InvalidArgument("there are ", given.size(), " activations");
    names = std::move(given);
  }
  // The activations that take such a number consume both lists in order.
  const std::vector<float> alphas = n.Floats("activation_alpha"), betas = n.Floats("activation_beta");
  size_t used_alphas = 0, used_betas = 0;
  std::vector<DML_OPERATOR_TYPE> types;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto found = std::find_if(std::begin(kActivations), std::end(kActivations),
                                    [&](const ActivationRow& row) { return names[i] == row.name; });
    if (found == std::end(kActivations)) return Unsupported("activation ", names[i].substr(0, 40));
    types.push_back(found->type);
    const bool alpha = found->numbers > 0 && used_alphas < alphas.size();
    const bool beta = found->numbers > 1 && used_betas < betas.size();
    out->parameters.push_back({nullptr, nullptr, alpha ? alphas[used_alphas++] : found->alpha,
                               beta ? betas[used_betas++] : found->beta});
  }
  for (size_t i = 0; i < types.size(); ++i) out->descs.push_back({types[i], &out->parameters[i]});
  return {};
}

struct Recurrence {
  int64_t steps = 0, batch = 0, directions = 1, hidden = 0;
  DML_RECURRENT_NETWORK_DIRECTION direction = DML_RECURRENT_NETWORK_DIRECTION_FORWARD;
  bool batch_first = false;
  View x, w, r, bias, lengths, hidden_init, cell_init, peephole;
};

// A state {directions, batch, hidden}, or {batch, directions, hidden}.
View StateOf(const Recurrence& r, const View& view) {
  if (!r.batch_first) return Reshaped(view, Shape{1, r.directions, r.batch, r.hidden});
  const uint32_t order[] = {0, 2, 1, 3};
  return Permuted(Reshaped(view, Shape{1, r.batch, r.directions, r.hidden}), order);
}

Status Resolve(Lowering& n, Recurrence* out) {
  Recurrence& r = *out;
  std::string direction;
  ANYDML_RETURN_IF_ERROR(n.OneOf("direction", {"forward", "reverse", "bidirectional"}, &direction));
  if (direction == "reverse") r.direction = DML_RECURRENT_NETWORK_DIRECTION_BACKWARD;
  if (direction == "bidirectional") r.direction = DML_RECURRENT_NETWORK_DIRECTION_BIDIRECTIONAL;
  r.directions = direction == "bidirectional" ? 2 : 1;
  r.batch_first = n.Int("layout", 0) != 0;
  if (n.rank(0) != 3 || n.rank(1) != 3 || n.rank(2) != 3)
    return InvalidArgument("X, W and R have three dimensions");
  r.steps = n.shape(0)[r.batch_first ? 1 : 0];
  r.batch = n.shape(0)[r.batch_first ? 0 : 1];
  r.hidden = n.shape(2)[n.proto().domain == kMicrosoft ? 1 : 2];
  if (const int64_t given = n.Int("hidden_size", r.hidden); given != r.hidden)
    return InvalidArgument("hidden_size is ", given, "; R ", ShapeToString(n.shape(2)), " has ", r.hidden);
  for (const size_t i : {1, 2}) {
    if (n.shape(i)[0] != r.directions) return InvalidArgument("W or R has ", n.shape(i)[0], " directions");
  }
  const uint32_t swapped[] = {0, 2, 1, 3};
  r.x = AtLeast(n.In(0), 4);
  if (r.batch_first) r.x = Permuted(r.x, swapped);
  r.w = AtLeast(n.In(1), 4);
  r.r = AtLeast(n.In(2), 4);
  if (n.Has(3)) r.bias = AtLeast(n.In(3), 4);
  if (n.Has(4)) {
    r.lengths = AtLeast(n.In(4), 4);
    r.lengths.type = DataType::kUInt32;  // INT32 that is never negative
  }
  const int64_t count = r.directions * r.batch * r.hidden;
  for (const size_t i : {5, 6}) {
    if (n.Has(i) && ElementCount(n.shape(i)) != count)
      return InvalidArgument("an initial state ", ShapeToString(n.shape(i)));
  }
  if (n.Has(5)) r.hidden_init = StateOf(r, n.In(5));
  if (n.Has(6)) r.cell_init = StateOf(r, n.In(6));
  if (n.Has(7)) r.peephole = AtLeast(n.In(7), 4);
  return {};
}

// {steps, directions, batch, hidden} in the model's order.
Status ReturnSequence(Lowering& n, const Recurrence& r, const View& y) {
  if (!r.batch_first) {
    n.Return(0, y, n.type(0), {r.steps, r.directions, r.batch, r.hidden});
    return {};
  }
  const uint32_t order[] = {2, 0, 1, 3};
  View moved;
  ANYDML_RETURN_IF_ERROR(Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, Permuted(y, order), &moved));
  n.Return(0, moved, n.type(0), {r.batch, r.steps, r.directions, r.hidden});
  return {};
}

Status ReturnState(Lowering& n, const Recurrence& r, size_t output, const View& y) {
  if (!r.batch_first) {
    n.Return(output, y, n.type(0), {r.directions, r.batch, r.hidden});
    return {};
  }
  const uint32_t order[] = {0, 2, 1, 3};
  View moved;
  ANYDML_RETURN_IF_ERROR(Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, Permuted(y, order), &moved));
  n.Return(output, moved, n.type(0), {r.batch, r.directions, r.hidden});
  return {};
}

// Sets 0 for sequences without steps: DirectML leaves the initial state there, onnxruntime does not.
Status WithoutEmptySequences(Lowering& n, const Recurrence& r, View* state) {
  View zero, condition;
  ANYDML_RETURN_IF_ERROR(Fill(n, r.lengths.type, {1, 1, 1, 1}, 0, &zero));
  const View none = Broadcast(zero, ShapeOf(r.lengths));
  ANYDML_RETURN_IF_ERROR(
      Compare(n, DML_OPERATOR_ELEMENT_WISE_LOGICAL_GREATER_THAN, r.lengths, none, &condition));
  const View each = Broadcast(Reshaped(condition, Shape{1, 1, r.batch, 1}), ShapeOf(*state));
  ANYDML_RETURN_IF_ERROR(Fill(n, state->type, {1, 1, 1, 1}, 0, &zero));
  return If(n, each, *state, zero, state);
}

// Whether WithoutEmptySequences is needed.
bool MayHaveEmptySequences(const Lowering& n) {
  if (!n.Has(4) || !(n.Has(5) || n.Has(6))) return false;
  const Tensor* const lengths = n.IfConstant(4);
  if (lengths == nullptr) return true;
  const std::vector<int64_t> numbers = ToInts(*lengths);
  return std::find(numbers.begin(), numbers.end(), 0) != numbers.end();
}

// Runs `add` with the requested outputs; the cell is LSTM's.
template <typename Add>
Status Run(Lowering& n, const Recurrence& r, const Add& add) {
  View sequence = n.New(r.x.type, {r.steps, r.directions, r.batch, r.hidden});
  View single = n.New(r.x.type, {1, r.directions, r.batch, r.hidden});
  View cell = single;
  const bool wants_sequence = n.Wants(0), wants_single = n.Wants(1) || !wants_sequence;
  if (r.steps == 0) {
    ANYDML_RETURN_IF_ERROR(Fill(n, single.type, ShapeOf(single), 0, &single));
    cell = single;
  } else {
    ANYDML_RETURN_IF_ERROR(add(wants_sequence ? &sequence : nullptr, wants_single ? &single : nullptr,
                               n.Wants(2) ? &cell : nullptr));
    if (MayHaveEmptySequences(n)) {
      if (n.Wants(1)) ANYDML_RETURN_IF_ERROR(WithoutEmptySequences(n, r, &single));
      if (n.Wants(2)) ANYDML_RETURN_IF_ERROR(WithoutEmptySequences(n, r, &cell));
    }
  }
  if (n.Wants(0)) ANYDML_RETURN_IF_ERROR(ReturnSequence(n, r, sequence));
  if (n.Wants(1)) ANYDML_RETURN_IF_ERROR(ReturnState(n, r, 1, single));
  if (n.Wants(2)) ANYDML_RETURN_IF_ERROR(ReturnState(n, r, 2, cell));
  return {};
}

Status Rnn(Lowering& n) {
  Recurrence r;
  Activations a;
  ANYDML_RETURN_IF_ERROR(Resolve(n, &r));
  ANYDML_RETURN_IF_ERROR(ReadActivations(n, {"Tanh"}, static_cast<size_t>(r.directions), &a));
  if (n.HasAttribute("clip")) return Unsupported("clip");
  return Run(n, r, [&](View* sequence, View* single, View*) {
    GraphBuilder& g = n.graph();
    const DML_RNN_OPERATOR_DESC desc{g.In(r.x),
                                     g.In(r.w),
                                     g.In(r.r),
                                     g.In(n.Has(3) ? &r.bias : nullptr),
                                     g.In(n.Has(5) ? &r.hidden_init : nullptr),
                                     g.In(n.Has(4) ? &r.lengths : nullptr),
                                     g.Out(sequence),
                                     g.Out(single),
                                     static_cast<UINT>(a.descs.size()),
                                     a.descs.data(),
                                     r.direction};
    return g.Add(DML_OPERATOR_RNN, desc);
  });
}

Status Gru(Lowering& n) {
  Recurrence r;
  Activations a;
  ANYDML_RETURN_IF_ERROR(Resolve(n, &r));
  ANYDML_RETURN_IF_ERROR(ReadActivations(n, {"Sigmoid", "Tanh"}, static_cast<size_t>(r.directions), &a));
  if (n.HasAttribute("clip")) return Unsupported("clip");
  return Run(n, r, [&](View* sequence, View* single, View*) {
    GraphBuilder& g = n.graph();
    const DML_GRU_OPERATOR_DESC desc{g.In(r.x),
                                     g.In(r.w),
                                     g.In(r.r),
                                     g.In(n.Has(3) ? &r.bias : nullptr),
                                     g.In(n.Has(5) ? &r.hidden_init : nullptr),
                                     g.In(n.Has(4) ? &r.lengths : nullptr),
                                     g.Out(sequence),
                                     g.Out(single),
                                     static_cast<UINT>(a.descs.size()),
                                     a.descs.data(),
                                     r.direction,
                                     n.Int("linear_before_reset", 0) != 0};
    return g.Add(DML_OPERATOR_GRU, desc);
  });
}

// 8-bit weights {directions, size, 4 * hidden} as numbers, transposed.
Status DequantizeWeights(Lowering& n, size_t input, size_t scale, View* out) {
  const Shape& given = n.shape(input);
  const Shape full = {1, given[0], given[1], given[2]};
  View parameters[2];
  for (const size_t i : {0, 1}) {
    if (!n.Has(scale + i)) return InvalidArgument("input ", scale + i, " is left out");
    const int64_t count = ElementCount(n.shape(scale + i)).value_or(0);
    const bool each = count == given[0] * given[2];
    if (!each && count != given[0]) return InvalidArgument("a scale ", ShapeToString(n.shape(scale + i)));
    parameters[i] = Broadcast(Reshaped(n.In(scale + i), Shape{1, given[0], 1, each ? given[2] : 1}), full);
  }
  const View x = Reshaped(n.In(input), full);
  View y = n.New(parameters[0].type, full);
  const DML_ELEMENT_WISE_DEQUANTIZE_LINEAR_OPERATOR_DESC desc{n.graph().In(x), n.graph().In(parameters[0]),
                                                              n.graph().In(parameters[1]), n.graph().Out(&y)};
  ANYDML_RETURN_IF_ERROR(n.graph().Add(DML_OPERATOR_ELEMENT_WISE_DEQUANTIZE_LINEAR, desc));
  const uint32_t order[] = {0, 1, 3, 2};
  return Unary(n, DML_OPERATOR_ELEMENT_WISE_IDENTITY, Permuted(y, order), out);
}

// Also DynamicQuantizeLSTM, with W_scale, W_zero_point, R_scale and R_zero_point at the end: X is not
// quantised.
Status Lstm(Lowering& n) {
  Recurrence r;
  Activations a;
  ANYDML_RETURN_IF_ERROR(Resolve(n, &r));
  if (n.proto().domain == kMicrosoft) {
    ANYDML_RETURN_IF_ERROR(DequantizeWeights(n, 1, 8, &r.w));
    ANYDML_RETURN_IF_ERROR(DequantizeWeights(n, 2, 10, &r.r));
  }
  ANYDML_RETURN_IF_ERROR(
      ReadActivations(n, {"Sigmoid", "Tanh", "Tanh"}, static_cast<size_t>(r.directions), &a));
  return Run(n, r, [&](View* sequence, View* single, View* cell) {
    GraphBuilder& g = n.graph();
    const DML_LSTM_OPERATOR_DESC desc{g.In(r.x),
                                      g.In(r.w),
                                      g.In(r.r),
                                      g.In(n.Has(3) ? &r.bias : nullptr),
                                      g.In(n.Has(5) ? &r.hidden_init : nullptr),
                                      g.In(n.Has(6) ? &r.cell_init : nullptr),
                                      g.In(n.Has(4) ? &r.lengths : nullptr),
                                      g.In(n.Has(7) ? &r.peephole : nullptr),
                                      g.Out(sequence),
                                      g.Out(single),
                                      g.Out(cell),
                                      static_cast<UINT>(a.descs.size()),
                                      a.descs.data(),
                                      r.direction,
                                      n.Float("clip", 0),
                                      n.HasAttribute("clip"),
                                      n.Int("input_forget", 0) != 0};
    return g.Add(DML_OPERATOR_LSTM, desc);
  });
}

constexpr OperatorRow kRecurrentRows[] = {
    {kOnnx, "RNN", 3, 6, 0, Rnn, nullptr},
    {kOnnx, "GRU", 3, 6, 0, Gru, nullptr},
    {kOnnx, "LSTM", 3, 8, 0, Lstm, nullptr},
    {kMicrosoft, "DynamicQuantizeLSTM", 3, 12, 0, Lstm, nullptr},
};

}  // namespace

std::span<const OperatorRow> RecurrentOperators() { return kRecurrentRows; }

}  // namespace anydml::onnx
