// RNN, LSTM and GRU for tests: descriptions with their inputs, and networks so small that their results can
// be worked out by hand.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/operator_runner.h"

namespace anydml::testing {

inline constexpr uint32_t kForward = 0, kBackward = 1, kBidirectional = 2;

inline TensorDesc F32(const std::vector<uint32_t>& sizes) { return Packed(DataType::kFloat32, sizes); }

using Rows = std::vector<std::vector<float>>;

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
  Rows Run() const {
    std::vector<Bytes> all;
    for (size_t i = 0; i < desc.schema->fields.size(); ++i) {
      if (desc.schema->fields[i].kind != FieldKind::kInput) continue;
      const auto found = inputs.find(desc.schema->fields[i].name);
      all.push_back(found == inputs.end() ? Bytes() : found->second);
    }
    const RunResult result = ExpectAllAgree(desc, all);
    Rows outputs;
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

inline Network Make(const char* name, uint32_t direction = kForward) {
  Network network = {MakeDesc(name, {{"Direction", direction}}), {}};
  if (name == std::string("GRU")) network.Set("LinearBeforeReset", 0u);
  if (name == std::string("LSTM")) {
    network.Set("ClipThreshold", 0.0f).Set("UseClipThreshold", 0u).Set("CoupleInputForget", 0u);
  }
  return network;
}

// One input, one unit, a batch of one: H = relu(2 x + H / 2).
inline Network SmallRnn(uint32_t direction) {
  return Make("RNN", direction)
      .Input("InputTensor", {1, 3, 1, 1}, {1, 2, 3})
      .Input("WeightTensor", {1, 1, 1, 1}, {2})
      .Input("RecurrenceTensor", {1, 1, 1, 1}, {0.5f})
      .Set("OutputSequenceTensor", F32({3, 1, 1, 1}))
      .Set("OutputSingleTensor", F32({1, 1, 1, 1}))
      .Named({"ACTIVATION_RELU"});
}

// One of everything: without peepholes i, o, f and c are 2, 3, 5 and 7, and the cell state begins with 10.
inline Network SmallLstm() {
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

// z = 1/2, r = 2; h sees 3 from the input and the state, 4, through r. Its biases are 10 and 1.
inline Network SmallGru(bool linear_before_reset) {
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

}  // namespace anydml::testing
