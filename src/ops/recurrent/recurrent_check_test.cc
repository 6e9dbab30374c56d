// Error messages of RNN, LSTM and GRU, and the outputs that they infer.
#include <gtest/gtest.h>

#include "ops/recurrent/recurrent_test_support.h"

namespace anydml::testing {
namespace {

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
  // 3 * 1431655766 is 2 modulo 2^32.
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
