// RNN, LSTM and GRU against numbers worked out by hand from ONNX's equations.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "ops/recurrent/problem.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

constexpr uint32_t kForward = 0, kBackward = 1, kBidirectional = 2;

TensorDesc F32(const std::vector<uint32_t>& sizes) { return Packed(DataType::kFloat32, sizes); }

// A description and its inputs, which are packed FLOAT32 (lengths: UINT32) by field name.
struct Network {
  OperatorDesc desc;
  std::map<std::string, Bytes> inputs;

  Network& Set(const char* name, FieldValue value) {
    desc.fields.at(static_cast<size_t>(FindField(*desc.schema, name))) = std::move(value);
    return *this;
  }
  Network& Input(const char* name, const std::vector<uint32_t>& sizes, const std::vector<float>& numbers) {
    inputs[name] = Scattered(F32(sizes), numbers);
    return Set(name, F32(sizes));
  }
  Network& Lengths(const std::vector<uint32_t>& lengths) {
    const TensorDesc tensor = Packed(DataType::kUInt32, {1, 1, 1, static_cast<uint32_t>(lengths.size())});
    inputs["SequenceLengthsTensor"] = Scattered(tensor, lengths);
    return Set("SequenceLengthsTensor", tensor);
  }
  Network& Activations(std::vector<OperatorDesc> activations) {
    Set("ActivationDescCount", static_cast<uint32_t>(activations.size()));
    return Set("ActivationDescs", std::move(activations));
  }
  Network& Named(std::initializer_list<const char*> names) {
    std::vector<OperatorDesc> activations;
    for (const char* name : names) activations.push_back(MakeDesc(name, {}));
    return Activations(std::move(activations));
  }

  // The same with FLOAT16 for FLOAT32.
  Network Halved() const {
    Network halved = *this;
    for (size_t i = 0; i < desc.schema->fields.size(); ++i) {
      const char* const name = desc.schema->fields[i].name;
      const TensorDesc* const tensor = std::get_if<TensorDesc>(&desc.fields[i]);
      if (tensor == nullptr || tensor->type != DataType::kFloat32) continue;
      const TensorDesc half =
          Packed(DataType::kFloat16, {tensor->sizes.begin(), tensor->sizes.begin() + tensor->rank});
      halved.Set(name, half);
      const auto found = inputs.find(name);
      if (found == inputs.end()) continue;
      std::vector<Half> numbers;
      for (const float number : Gathered<float>(*tensor, found->second)) numbers.push_back(ToHalf(number));
      halved.inputs[name] = Scattered(half, numbers);
    }
    return halved;
  }

  // Of the outputs that there are, in their order.
  std::vector<std::vector<float>> Run() const {
    std::vector<Bytes> all;
    for (size_t i = 0; i < desc.schema->fields.size(); ++i) {
      if (desc.schema->fields[i].kind != FieldKind::kInput) continue;
      const auto found = inputs.find(desc.schema->fields[i].name);
      all.push_back(found == inputs.end() ? Bytes() : found->second);
    }
    const RunResult result = ExpectAllAgree(desc, all);
    std::vector<std::vector<float>> outputs;
    for (size_t i = 0; i < result.outputs.size(); ++i) {
      const TensorDesc* const tensor = desc.outputs()[i];
      if (tensor == nullptr) continue;
      if (tensor->type == DataType::kFloat32) {
        outputs.push_back(Gathered<float>(*tensor, result.outputs[i]));
        continue;
      }
      std::vector<float>& numbers = outputs.emplace_back();
      for (const Half number : Gathered<Half>(*tensor, result.outputs[i])) numbers.push_back(ToFloat(number));
    }
    return outputs;
  }

  std::string Message() const { return ImplementationOf(desc).check(desc, kLatestFeatureLevel).message(); }
};

Network Make(const char* name, uint32_t direction = kForward) {
  Network network = {MakeDesc(name, {{"Direction", direction}}), {}};
  if (name == std::string("GRU")) network.Set("LinearBeforeReset", 0u);
  if (name == std::string("LSTM")) {
    network.Set("ClipThreshold", 0.0f).Set("UseClipThreshold", 0u).Set("CoupleInputForget", 0u);
  }
  return network;
}

using Rows = std::vector<std::vector<float>>;

// One input, one unit, a batch of one: H = relu(2 x + H / 2).
Network SmallRnn(uint32_t direction) {
  return Make("RNN", direction)
      .Input("InputTensor", {1, 3, 1, 1}, {1, 2, 3})
      .Input("WeightTensor", {1, 1, 1, 1}, {2})
      .Input("RecurrenceTensor", {1, 1, 1, 1}, {0.5f})
      .Set("OutputSequenceTensor", F32({3, 1, 1, 1}))
      .Set("OutputSingleTensor", F32({1, 1, 1, 1}))
      .Named({"ACTIVATION_RELU"});
}

TEST(Rnn, Forward) { EXPECT_EQ(SmallRnn(kForward).Run(), (Rows{{2, 5, 8.5f}, {8.5f}})); }

TEST(Rnn, BackwardStoresWhereItIs) { EXPECT_EQ(SmallRnn(kBackward).Run(), (Rows{{5.5f, 7, 6}, {5.5f}})); }

TEST(Rnn, BothBiasesAndAnInitialState) {
  Network network = SmallRnn(kForward);
  network.Input("BiasTensor", {1, 1, 1, 2}, {1, -3}).Input("HiddenInitTensor", {1, 1, 1, 1}, {8});
  EXPECT_EQ(network.Run(), (Rows{{4, 4, 6}, {6}}));
}

TEST(Rnn, OutputsMayBeAbsent) {
  EXPECT_EQ(SmallRnn(kForward).Set("OutputSingleTensor", {}).Run(), (Rows{{2, 5, 8.5f}}));
  EXPECT_EQ(SmallRnn(kForward).Set("OutputSequenceTensor", {}).Run(), (Rows{{8.5f}}));
}

// Forward with f = relu, backward with f = -x; lengths 2, 0 and more than there are steps.
TEST(Rnn, BothDirectionsOfSequencesOfDifferentLengths) {
  Network network = Make("RNN", kBidirectional);
  network.Input("InputTensor", {1, 3, 3, 1}, {1, 10, 100, 2, 20, 200, 3, 30, 300})
      .Input("WeightTensor", {1, 2, 1, 1}, {2, 1})
      .Input("RecurrenceTensor", {1, 2, 1, 1}, {0.5f, 1})
      .Input("HiddenInitTensor", {1, 2, 3, 1}, {0, 7, 0, 0, 9, 0})
      .Lengths({2, 0, 4})
      .Set("OutputSequenceTensor", F32({3, 2, 3, 1}))
      .Set("OutputSingleTensor", F32({1, 2, 3, 1}))
      .Activations({MakeDesc("ACTIVATION_RELU", {}),
                    MakeDesc("ACTIVATION_LINEAR", {{"Alpha", -1.0f}, {"Beta", 0.0f}})});
  // Backward, first sequence: -(2 + 0) = -2, -(1 - 2) = 1; third: -300, -(200 - 300) = 100, -(100 + 100).
  EXPECT_EQ(network.Run(), (Rows{{2, 0, 200, 1, 0, -200,  //
                                  5, 0, 500, -2, 0, 100,  //
                                  0, 0, 850, 0, 0, -300},
                                 {5, 7, 850, 1, 9, -200}}));
}

TEST(Rnn, FunctionsOfAllUnits) {
  Network network = Make("RNN");
  network.Input("InputTensor", {1, 1, 2, 1}, {1, -1})
      .Input("WeightTensor", {1, 1, 3, 1}, {1, 3, 2})
      .Input("RecurrenceTensor", {1, 1, 3, 3}, std::vector<float>(9, 0))
      .Set("OutputSingleTensor", F32({1, 1, 2, 3}))
      .Named({"ACTIVATION_HARDMAX"});
  EXPECT_EQ(network.Run(), (Rows{{0, 1, 0, 1, 0, 0}}));
  const std::vector<float> softmax = network.Named({"ACTIVATION_SOFTMAX"}).Run()[0];
  const double sum = std::exp(1) + std::exp(2) + std::exp(3);
  EXPECT_NEAR(softmax[0], std::exp(1) / sum, 1e-6);
  EXPECT_NEAR(softmax[1], std::exp(3) / sum, 1e-6);
  EXPECT_NEAR(softmax[2], std::exp(2) / sum, 1e-6);
}

// ONNX's example of the defaults: all weights are 0.1.
TEST(Rnn, OnnxDefaults) {
  Network network = Make("RNN");
  network.Input("InputTensor", {1, 1, 3, 2}, {1, 2, 3, 4, 5, 6})
      .Input("WeightTensor", {1, 1, 4, 2}, std::vector<float>(8, 0.1f))
      .Input("RecurrenceTensor", {1, 1, 4, 4}, std::vector<float>(16, 0.1f))
      .Set("OutputSingleTensor", F32({1, 1, 3, 4}))
      .Named({"ACTIVATION_TANH"});
  const std::vector<float> hidden = network.Run()[0];
  for (uint32_t i = 0; i < 12; ++i) {
    const uint32_t element = i / 4;
    EXPECT_NEAR(hidden[i], std::tanh(0.3 + 0.4 * element), 1e-6);
  }
}

TEST(Rnn, HalvesKeepTheStateAsFloats) {
  // 2049 is no FLOAT16: a state that is kept as one would stay at 2048.
  const TensorDesc input = Packed(DataType::kFloat16, {1, 3, 1, 1});
  const TensorDesc one = Packed(DataType::kFloat16, {1, 1, 1, 1});
  Network network = Make("RNN").Named({"ACTIVATION_IDENTITY"});
  network.Set("InputTensor", input).Set("WeightTensor", one).Set("RecurrenceTensor", one);
  network.Set("OutputSingleTensor", one);
  const Bytes weight = Scattered(one, std::vector<Half>{ToHalf(1)});
  const Bytes numbers = Scattered(input, std::vector<Half>{ToHalf(2048), ToHalf(1), ToHalf(1)});
  const RunResult result = ExpectAllAgree(network.desc, {numbers, weight, weight, {}, {}, {}});
  EXPECT_EQ(ToFloat(Gathered<Half>(one, result.outputs[1])[0]), 2050);
}

TEST(Rnn, HalvesKeepABoundedStateAsFloats) {
  // The second unit sees 32 times the first one, whose state is no FLOAT16.
  Network network = Make("RNN");
  network.Input("InputTensor", {1, 2, 1, 2}, {0.5f, 0, 0, -14.75f})
      .Input("WeightTensor", {1, 1, 2, 2}, {1, 0, 0, 1})
      .Input("RecurrenceTensor", {1, 1, 2, 2}, {0, 0, 32, 0})
      .Set("OutputSingleTensor", F32({1, 1, 1, 2}))
      .Named({"ACTIVATION_TANH"});
  EXPECT_NEAR(network.Halved().Run()[0][1], std::tanh(32 * std::tanh(0.5) - 14.75), 0x1p-14);
}

// One of everything: without peepholes i, o, f and c are 2, 3, 5 and 7, and the cell state begins with 10.
Network SmallLstm() {
  return Make("LSTM")
      .Input("InputTensor", {1, 1, 1, 1}, {1})
      .Input("WeightTensor", {1, 1, 4, 1}, {2, 3, 5, 7})
      .Input("RecurrenceTensor", {1, 1, 4, 1}, {0, 0, 0, 0})
      .Input("CellMemInitTensor", {1, 1, 1, 1}, {10})
      .Set("OutputSequenceTensor", F32({1, 1, 1, 1}))
      .Set("OutputSingleTensor", F32({1, 1, 1, 1}))
      .Set("OutputCellSingleTensor", F32({1, 1, 1, 1}))
      .Named({"ACTIVATION_IDENTITY", "ACTIVATION_IDENTITY", "ACTIVATION_IDENTITY"});
}

TEST(Lstm, Gates) { EXPECT_EQ(SmallLstm().Run(), (Rows{{192}, {192}, {64}})); }

TEST(Lstm, StateAndBiases) {
  // The state adds 1 to 4 to the gates, the biases -1: 2, 4, 7 and 10.
  Network network = SmallLstm();
  network.Input("HiddenInitTensor", {1, 1, 1, 1}, {0.5f})
      .Input("RecurrenceTensor", {1, 1, 4, 1}, {2, 4, 6, 8})
      .Input("BiasTensor", {1, 1, 1, 8}, {1, 1, 1, 1, -2, -2, -2, -2});
  EXPECT_EQ(network.Run(), (Rows{{360}, {360}, {90}}));
}

TEST(Lstm, Peepholes) {
  // i = 2 + 10, f = 5 - 10, C = -50 + 84, o = 3 + 17.
  Network network = SmallLstm();
  network.Input("PeepholeTensor", {1, 1, 1, 3}, {1, 0.5f, -1});
  EXPECT_EQ(network.Run(), (Rows{{680}, {680}, {34}}));
}

TEST(Lstm, CoupledGates) {
  EXPECT_EQ(SmallLstm().Set("CoupleInputForget", 1u).Run(), (Rows{{12}, {12}, {4}}));
}

TEST(Lstm, SumsAreClippedTheCellStateIsNot) {
  const Network network = SmallLstm().Set("UseClipThreshold", 1u).Set("ClipThreshold", 2.5f);
  EXPECT_EQ(network.Run(), (Rows{{75}, {75}, {30}}));
}

TEST(Lstm, EachActivationIsWhereItBelongs) {
  const auto linear = [](float alpha, float beta) {
    return MakeDesc("ACTIVATION_LINEAR", {{"Alpha", alpha}, {"Beta", beta}});
  };
  // f: twice; g: plus 1; h: minus 100. C = 10 * 10 + 4 * 8, H = 6 * (132 - 100).
  Network network = SmallLstm();
  network.Activations({linear(2, 0), linear(1, 1), linear(1, -100)});
  EXPECT_EQ(network.Run(), (Rows{{192}, {192}, {132}}));
}

TEST(Lstm, OnnxDefaults) {
  Network network = Make("LSTM");
  network.Input("InputTensor", {1, 1, 3, 2}, {1, 2, 3, 4, 5, 6})
      .Input("WeightTensor", {1, 1, 12, 2}, std::vector<float>(24, 0.1f))
      .Input("RecurrenceTensor", {1, 1, 12, 3}, std::vector<float>(36, 0.1f))
      .Set("OutputSingleTensor", F32({1, 1, 3, 3}))
      .Named({"ACTIVATION_SIGMOID", "ACTIVATION_TANH", "ACTIVATION_TANH"});
  const std::vector<float> hidden = network.Run()[0];
  for (uint32_t i = 0; i < 9; ++i) {
    const uint32_t element = i / 3;
    const double sum = 0.3 + 0.4 * element, gate = 1 / (1 + std::exp(-sum));
    EXPECT_NEAR(hidden[i], gate * std::tanh(gate * std::tanh(sum)), 1e-6);
  }
}

TEST(Lstm, AnEndedSequenceKeepsBothStates) {
  Network network = SmallLstm();
  network.Lengths({0}).Input("HiddenInitTensor", {1, 1, 1, 1}, {3});
  EXPECT_EQ(network.Run(), (Rows{{0}, {3}, {10}}));
}

// z = 1/2, r = 2; h sees 3 from the input and the state, 4, through r. Its biases are 10 and 1.
Network SmallGru(bool linear_before_reset) {
  return Make("GRU")
      .Input("InputTensor", {1, 1, 1, 1}, {1})
      .Input("WeightTensor", {1, 1, 3, 1}, {0.5f, 2, 3})
      .Input("RecurrenceTensor", {1, 1, 3, 1}, {0, 0, 1})
      .Input("BiasTensor", {1, 1, 1, 6}, {0, 0, 10, 0, 0, 1})
      .Input("HiddenInitTensor", {1, 1, 1, 1}, {4})
      .Set("LinearBeforeReset", uint32_t{linear_before_reset})
      .Set("OutputSequenceTensor", F32({1, 1, 1, 1}))
      .Set("OutputSingleTensor", F32({1, 1, 1, 1}))
      .Named({"ACTIVATION_IDENTITY", "ACTIVATION_IDENTITY"});
}

TEST(Gru, ResetBeforeTheProduct) { EXPECT_EQ(SmallGru(false).Run(), (Rows{{13}, {13}})); }

TEST(Gru, LinearBeforeReset) { EXPECT_EQ(SmallGru(true).Run(), (Rows{{13.5f}, {13.5f}})); }

// Two units whose states are exchanged by the recurrence, in two steps.
TEST(Gru, UnitsMix) {
  Network network = Make("GRU");
  network.Input("InputTensor", {1, 2, 1, 1}, {1, 1})
      .Input("WeightTensor", {1, 1, 6, 1}, {0, 0, 1, 2, 0, 0})
      .Input("RecurrenceTensor", {1, 1, 6, 2}, {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0})
      .Input("HiddenInitTensor", {1, 1, 1, 2}, {3, 5})
      .Set("OutputSequenceTensor", F32({2, 1, 1, 2}))
      .Named({"ACTIVATION_IDENTITY", "ACTIVATION_IDENTITY"});
  // z = 0, r = {1, 2}. Reset first: {2 * 5, 1 * 3}; linear first: {1 * 5, 2 * 3}.
  EXPECT_EQ(network.Run(), (Rows{{10, 3, 6, 10}}));
  EXPECT_EQ(network.Set("LinearBeforeReset", 1u).Run(), (Rows{{5, 6, 6, 10}}));
}

TEST(Gru, OnnxDefaults) {
  Network network = Make("GRU");
  network.Input("InputTensor", {1, 1, 3, 2}, {1, 2, 3, 4, 5, 6})
      .Input("WeightTensor", {1, 1, 15, 2}, std::vector<float>(30, 0.1f))
      .Input("RecurrenceTensor", {1, 1, 15, 5}, std::vector<float>(75, 0.1f))
      .Set("OutputSingleTensor", F32({1, 1, 3, 5}))
      .Named({"ACTIVATION_SIGMOID", "ACTIVATION_TANH"});
  const std::vector<float> hidden = network.Run()[0];
  for (uint32_t i = 0; i < 15; ++i) {
    const uint32_t element = i / 5;
    const double sum = 0.3 + 0.4 * element, z = 1 / (1 + std::exp(-sum));
    EXPECT_NEAR(hidden[i], (1 - z) * std::tanh(sum), 1e-6);
  }
}

// Numbers from -1 to 1, divided: sums of `divisor` products of them stay within 1.
std::vector<float> Numbers(uint64_t count, uint32_t divisor = 1) {
  std::vector<float> numbers(count);
  uint32_t state = divisor;
  for (float& number : numbers) {
    state = state * 1664525 + 1013904223;
    number = (static_cast<float>(state >> 24) - 127.5f) / 127.5f / static_cast<float>(divisor);
  }
  return numbers;
}

// With every tensor that there may be, both directions; `usual`: without lengths and peepholes.
Network Whole(const char* name, uint32_t steps, uint32_t batch, uint32_t inputs, uint32_t units,
              bool usual = false) {
  const bool is_lstm = name == std::string("LSTM");
  const uint32_t gates = is_lstm ? 4 : name == std::string("GRU") ? 3 : 1;
  const std::vector<uint32_t> state = {1, 2, batch, units};
  Network network = Make(name, kBidirectional);
  network.Input("InputTensor", {1, steps, batch, inputs}, Numbers(uint64_t{steps} * batch * inputs))
      .Input("WeightTensor", {1, 2, gates * units, inputs}, Numbers(2 * gates * units * inputs, inputs))
      .Input("RecurrenceTensor", {1, 2, gates * units, units}, Numbers(2 * gates * units * units, units))
      .Input("BiasTensor", {1, 1, 2, 2 * gates * units}, Numbers(4 * gates * units, 2))
      .Input("HiddenInitTensor", state, Numbers(2 * batch * units))
      .Set("OutputSequenceTensor", F32({steps, 2, batch, units}))
      .Set("OutputSingleTensor", F32(state));
  std::vector<uint32_t> lengths(batch, steps);
  lengths.back() = (steps + 1) / 2;
  if (!usual) network.Lengths(lengths);
  if (!is_lstm) return network;
  if (!usual) network.Input("PeepholeTensor", {1, 1, 2, 3 * units}, Numbers(6 * units, 3));
  return network.Input("CellMemInitTensor", state, Numbers(2 * batch * units))
      .Set("OutputCellSingleTensor", F32(state));
}

void ExpectImplementationsAgree(uint32_t steps, uint32_t batch, uint32_t inputs, uint32_t units) {
  constexpr const char* kTanh = "ACTIVATION_TANH";
  constexpr const char* kSigmoid = "ACTIVATION_SIGMOID";
  Network gru = Whole("GRU", steps, batch, inputs, units).Named({kSigmoid, kTanh, kSigmoid, kTanh});
  Network linear = gru;
  linear.Set("LinearBeforeReset", 1u);
  const Network networks[] = {
      Whole("RNN", steps, batch, inputs, units).Named({kTanh, kSigmoid}),
      Whole("LSTM", steps, batch, inputs, units).Named({kSigmoid, kTanh, kTanh, kSigmoid, kTanh, kTanh}),
      Whole("LSTM", steps, batch, inputs, units, true)
          .Named({kSigmoid, kTanh, kTanh, kSigmoid, kTanh, kTanh}),
      Whole("RNN", steps, batch, inputs, units, true).Named({kTanh, kSigmoid}),
      gru,
      linear};
  for (const Network& network : networks) {
    network.Run();
    network.Halved().Run();
  }
}

// More than a multiprocessor has a row of weights for.
TEST(Recurrent, ManyUnits) { ExpectImplementationsAgree(2, 3, 5, 278); }

TEST(Recurrent, ManySteps) { ExpectImplementationsAgree(150, 2, 3, 10); }

TEST(Recurrent, LargeBatches) {
  ExpectImplementationsAgree(3, 31, 4, 33);
  ExpectImplementationsAgree(2, 40, 4, 6);
  ExpectImplementationsAgree(3, 37, 70, 150);
}

// As many as a cluster of 16 blocks has, with more groups than there are clusters at once, and one of 8.
TEST(Recurrent, UnitsOfClusters) {
  ExpectImplementationsAgree(2, 17, 2, 512);
  ExpectImplementationsAgree(4, 4, 3, 130);
}

// More weights than anybody has, all of them the same one: they are not packed.
TEST(Recurrent, WeightsOfOneElement) {
  constexpr uint32_t kUnits = 1 << 28, kBatch = 64;
  const auto tensor = [](std::vector<uint32_t> sizes, bool is_one_element) {
    TensorDesc made = Packed(DataType::kFloat32, sizes);
    if (!is_one_element) return made;
    std::fill(made.strides.begin(), made.strides.end(), 0);
    made.total_bytes = MinimumTotalBytes(made);
    return made;
  };
  RecurrentProblem problem;
  problem.kind = CellKind::kRnn;
  problem.steps = 2;
  problem.batch = kBatch;
  problem.inputs = 1;
  problem.units = kUnits;
  problem.input = tensor({1, 2, kBatch, 1}, true);
  problem.weight = tensor({1, 1, kUnits, 1}, true);
  problem.recurrence = tensor({1, 1, kUnits, kUnits}, true);
  problem.single = tensor({1, 1, kBatch, kUnits}, false);
  for (auto& of_direction : problem.activations) {
    ElementProgram& program = of_direction[0].program;
    program.Apply(ElementFunction::kTanh, Class::kF32, {program.NewRegister()});
  }
  std::string why_not;
  const auto kernel = CreateRecurrentCpu(problem, LowerContext(), &why_not);
  ASSERT_NE(kernel, nullptr) << why_not;
  EXPECT_EQ(kernel->made_of().find("packed recurrence"), std::string::npos) << kernel->made_of();
}

TEST(RecurrentCheck, Sizes) {
  const auto with = [](const char* name, const std::vector<uint32_t>& sizes) {
    return SmallLstm().Set(name, F32(sizes)).Message();
  };
  EXPECT_EQ(SmallLstm().Message(), "");
  EXPECT_EQ(with("InputTensor", {2, 1, 1, 1}), "LSTM: InputTensor.Sizes[0] is 2 but must be 1");
  EXPECT_EQ(
      with("RecurrenceTensor", {1, 1, 3, 1}),
      "LSTM: RecurrenceTensor.Sizes[2] is 3 but must be 4: 4 gates of 1 unit (RecurrenceTensor.Sizes[3])");
  EXPECT_EQ(with("RecurrenceTensor", {1, 1, 4, 5}),
            "LSTM: RecurrenceTensor.Sizes[2] is 4 but must be 20: 4 gates of 5 units "
            "(RecurrenceTensor.Sizes[3])");
  EXPECT_EQ(
      with("RecurrenceTensor", {1, 2, 4, 1}),
      "LSTM: RecurrenceTensor.Sizes is {1,2,4,1} but must be {1,1,4,1}: there is 1 direction, 4 gates of "
      "1 unit");
  EXPECT_EQ(with("WeightTensor", {1, 1, 4, 2}),
            "LSTM: WeightTensor.Sizes is {1,1,4,2} but must be {1,1,4,1}: there is 1 direction, 4 gates of 1 "
            "unit, and 1 input");
  EXPECT_EQ(with("BiasTensor", {1, 1, 1, 4}),
            "LSTM: BiasTensor.Sizes is {1,1,1,4} but must be {1,1,1,8}: there is 1 direction, 4 gates of 1 "
            "unit, each with two biases");
  EXPECT_EQ(
      with("PeepholeTensor", {1, 1, 1, 4}),
      "LSTM: PeepholeTensor.Sizes is {1,1,1,4} but must be {1,1,1,3}: there is 1 direction, 4 gates of 1 "
      "unit, of which three see the cell state");
  EXPECT_EQ(with("OutputCellSingleTensor", {1, 1, 2, 1}),
            "LSTM: OutputCellSingleTensor.Sizes is {1,1,2,1} but must be {1,1,1,1}: there is 1 direction, a "
            "batch of 1 and 1 unit");
  EXPECT_EQ(with("OutputSequenceTensor", {2, 1, 1, 1}),
            "LSTM: OutputSequenceTensor.Sizes is {2,1,1,1} but must be {1,1,1,1}: there is 1 direction, a "
            "batch of 1 and 1 unit, in 1 step");
  EXPECT_EQ(SmallLstm().Lengths({1, 1}).Message(),
            "LSTM: SequenceLengthsTensor.Sizes is {1,1,1,2} but must be {1,1,1,1}: there is a batch of 1");
  // 3 * 1431655766 is 2 in 32 bits.
  EXPECT_EQ(SmallGru(false).Set("RecurrenceTensor", F32({1, 1, 2, 1431655766})).Message(),
            "GRU: RecurrenceTensor.Sizes[2] is 2 but must be 4294967298: 3 gates of 1431655766 units "
            "(RecurrenceTensor.Sizes[3])");
}

TEST(RecurrentCheck, DirectionsActivationsAndOutputs) {
  EXPECT_EQ(
      SmallRnn(kBidirectional).Message(),
      "RNN: RecurrenceTensor.Sizes is {1,1,1,1} but must be {1,2,1,1}: there are 2 directions, 1 gate of "
      "1 unit");
  EXPECT_EQ(SmallRnn(kForward).Named({"ACTIVATION_TANH", "ACTIVATION_TANH"}).Message(),
            "RNN: ActivationDescCount is 2 but must be 1: 1 for each of 1 direction");
  EXPECT_EQ(SmallLstm().Named({"ACTIVATION_TANH"}).Message(),
            "LSTM: ActivationDescCount is 1 but must be 3: 3 for each of 1 direction");
  EXPECT_EQ(SmallRnn(kForward).Set("OutputSequenceTensor", {}).Set("OutputSingleTensor", {}).Message(),
            "RNN: all of its outputs are null; at least one must be given");
}

TEST(RecurrentInfer, OutputsThatAreWanted) {
  Network network = SmallLstm();
  network.Set("OutputSequenceTensor", TensorDesc()).Set("OutputSingleTensor", {});
  ASSERT_TRUE(ImplementationOf(network.desc).infer(&network.desc).ok());
  EXPECT_EQ(SizesToString(*network.desc.tensor("OutputSequenceTensor")), "{1,1,1,1}");
  EXPECT_EQ(network.desc.tensor("OutputSingleTensor"), nullptr);
  EXPECT_EQ(network.Run(), (Rows{{192}, {64}}));
}

}  // namespace
}  // namespace anydml::testing
