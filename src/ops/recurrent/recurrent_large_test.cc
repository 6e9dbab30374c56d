// All implementations against each other, at sizes for which they divide their work differently.
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/recurrent/problem.h"
#include "ops/recurrent/recurrent_test_support.h"

namespace anydml::testing {
namespace {

// Numbers from -1 to 1, divided by `divisor`: sums of `divisor` products of them stay within 1.
std::vector<float> Numbers(uint64_t count, uint32_t divisor = 1) {
  std::vector<float> numbers(count);
  uint32_t state = divisor;
  for (float& number : numbers) {
    state = state * 1664525 + 1013904223;
    number = (static_cast<float>(state >> 24) - 127.5f) / 127.5f / static_cast<float>(divisor);
  }
  return numbers;
}

// With every optional tensor, both directions; `usual`: without lengths and peepholes.
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

// More rows of weights than a multiprocessor holds.
TEST(Recurrent, ManyUnits) { ExpectImplementationsAgree(2, 3, 5, 278); }

TEST(Recurrent, ManySteps) { ExpectImplementationsAgree(150, 2, 3, 10); }

TEST(Recurrent, LargeBatches) {
  ExpectImplementationsAgree(3, 31, 4, 33);
  ExpectImplementationsAgree(2, 40, 4, 6);
  ExpectImplementationsAgree(3, 37, 70, 150);
}

// As many as a cluster of 16 blocks has, with more groups than clusters can run concurrently, and with a
// cluster of 8.
TEST(Recurrent, UnitsOfClusters) {
  ExpectImplementationsAgree(2, 17, 2, 512);
  ExpectImplementationsAgree(4, 4, 3, 130);
}

// More weights than fit into memory, all of them the same element (stride 0): they are not packed.
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

}  // namespace
}  // namespace anydml::testing
