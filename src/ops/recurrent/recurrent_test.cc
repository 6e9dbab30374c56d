// RNN, LSTM and GRU against results computed by hand from ONNX's equations.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string_view>

#include "ops/recurrent/recurrent_test_support.h"
#include "support/compare.h"

namespace anydml::testing {
namespace {

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

// Forward with f = relu, backward with f = -x; lengths 2, 0 and more than the number of steps.
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

// ONNX's example with defaults: all weights are 0.1.
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
  // FLOAT16 cannot represent 2049: a state kept in FLOAT16 would stay at 2048.
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
  // The second unit reads 32 times the first unit's state, which FLOAT16 cannot represent.
  Network network = Make("RNN");
  network.Input("InputTensor", {1, 2, 1, 2}, {0.5f, 0, 0, -14.75f})
      .Input("WeightTensor", {1, 1, 2, 2}, {1, 0, 0, 1})
      .Input("RecurrenceTensor", {1, 1, 2, 2}, {0, 0, 32, 0})
      .Set("OutputSingleTensor", F32({1, 1, 1, 2}))
      .Named({"ACTIVATION_TANH"});
  EXPECT_NEAR(network.Halved().Run()[0][1], std::tanh(32 * std::tanh(0.5) - 14.75), 0x1p-14);
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

TEST(Gru, ResetBeforeTheProduct) { EXPECT_EQ(SmallGru(false).Run(), (Rows{{13}, {13}})); }

TEST(Gru, LinearBeforeReset) { EXPECT_EQ(SmallGru(true).Run(), (Rows{{13.5f}, {13.5f}})); }

// The recurrence swaps the states of two units, in two steps.
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

// Weights up to `largest` for every kind of cell: large weights amplify errors.
struct LargeWeights {
  OperatorDesc desc;
  std::vector<Bytes> inputs;
};

LargeWeights MakeLargeWeights(const char* name, float largest, std::mt19937_64& random) {
  constexpr uint32_t kSteps = 6, kBatch = 3, kInputs = 5, kUnits = 9;
  const uint32_t gates = name == std::string_view("LSTM") ? 4 : name == std::string_view("GRU") ? 3 : 1;
  Network network = Make(name);
  LargeWeights made;
  const auto add = [&](const char* field, const std::vector<uint32_t>& sizes, float most) {
    const TensorDesc tensor = Packed(DataType::kFloat32, sizes);
    std::vector<float> numbers(ElementCount(tensor));
    for (float& number : numbers) number = most * (static_cast<float>(random() % 20001) * 1e-4f - 1);
    network.Set(field, tensor);
    made.inputs.push_back(Scattered(tensor, numbers));
  };
  add("InputTensor", {1, kSteps, kBatch, kInputs}, 1);
  add("WeightTensor", {1, 1, gates * kUnits, kInputs}, largest);
  add("RecurrenceTensor", {1, 1, gates * kUnits, kUnits}, largest);
  network.Set("OutputSequenceTensor", Packed(DataType::kFloat32, {kSteps, 1, kBatch, kUnits}));
  if (gates == 1) {
    network.Named({"ACTIVATION_TANH"});
  } else if (gates == 3) {
    network.Named({"ACTIVATION_SIGMOID", "ACTIVATION_TANH"});
  } else {
    network.Named({"ACTIVATION_SIGMOID", "ACTIVATION_TANH", "ACTIVATION_TANH"});
  }
  made.desc = network.desc;
  made.inputs.resize(made.desc.inputs().size());
  return made;
}

TEST(Recurrent, ErrorsFollowTheWeights) {
  SCOPED_TRACE(StrCat("ANYDML_TEST_SEED=", TestSeed()));
  std::printf("ANYDML_TEST_SEED=%llu\n", static_cast<unsigned long long>(TestSeed()));
  std::mt19937_64 random(TestSeed());
  const int count = TestIterations(20);
  for (const char* name : {"RNN", "LSTM", "GRU"}) {
    SCOPED_TRACE(name);
    double most = 0;
    for (int i = 0; i < count && !HasFailure(); ++i) {
      for (const float largest : {0.1f, 2.0f, 8.0f, 40.0f}) {
        const LargeWeights made = MakeLargeWeights(name, largest, random);
        ExpectAllAgree(made.desc, made.inputs);
        const Errors errors = ErrorsOf(made.desc, made.inputs);
        for (const double error : errors[0]) {
          if (largest < 1) EXPECT_LT(error, 3e-6);
          most = std::max(most, error);
        }
      }
    }
    EXPECT_GT(most, 1e-5);  // with large weights
  }
}

}  // namespace
}  // namespace anydml::testing
