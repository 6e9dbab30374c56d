// Descriptions of convolutions and numbers for them.
#pragma once

#include <cstring>
#include <random>
#include <vector>

#include "base/half.h"
#include "support/operator_runner.h"

namespace anydml::testing {

using Sizes = std::vector<uint32_t>;

inline constexpr uint32_t kMirrored = 0, kCrossCorrelation = 1;

struct Attributes {
  uint32_t mode = kCrossCorrelation;
  bool backward = false;
  uint32_t stride = 1, dilation = 1, padding = 0, groups = 1;
};

inline TensorDesc F32(const Sizes& sizes) { return Packed(DataType::kFloat32, sizes); }

inline OperatorDesc Convolution(const Sizes& input, const Sizes& filter, const Sizes& output,
                                const Attributes& attributes) {
  const auto spatial = static_cast<uint32_t>(input.size()) - 2;
  const auto all = [&](uint32_t value) { return Sizes(spatial, value); };
  return MakeDesc("CONVOLUTION", {{"InputTensor", F32(input)},
                                  {"FilterTensor", F32(filter)},
                                  {"OutputTensor", F32(output)},
                                  {"Mode", attributes.mode},
                                  {"Direction", uint32_t{attributes.backward}},
                                  {"DimensionCount", spatial},
                                  {"Strides", all(attributes.stride)},
                                  {"Dilations", all(attributes.dilation)},
                                  {"StartPadding", all(attributes.padding)},
                                  {"EndPadding", all(attributes.padding)},
                                  {"OutputPadding", all(0)},
                                  {"GroupCount", attributes.groups}});
}

inline void SetTypes(OperatorDesc* desc, DataType type) {
  for (const char* field : {"InputTensor", "FilterTensor", "OutputTensor"}) {
    auto& tensor = std::get<TensorDesc>(desc->fields[static_cast<size_t>(FindField(*desc->schema, field))]);
    const std::vector<uint32_t> sizes(tensor.sizes.begin(), tensor.sizes.begin() + tensor.rank);
    tensor = Packed(type, sizes);
  }
}

// Multiples of an eighth up to 1: their sums have no rounding.
inline Bytes Eighths(const TensorDesc& tensor, std::mt19937_64& random) {
  Bytes bytes(tensor.total_bytes);
  const bool half = tensor.type == DataType::kFloat16;
  for (size_t at = 0; at + (half ? 2 : 4) <= bytes.size(); at += half ? 2 : 4) {
    const float number = static_cast<float>(Uniform(random, 0, 16)) / 8 - 1;
    const Half bits = ToHalf(number);
    std::memcpy(bytes.data() + at, half ? static_cast<const void*>(&bits) : &number, half ? 2 : 4);
  }
  return bytes;
}

// With channels innermost; behind those of a pixel, and behind a row, may be something else.
inline TensorDesc ChannelsLast(DataType type, const std::vector<uint32_t>& sizes, uint32_t gap = 0) {
  TensorDesc tensor = Packed(type, sizes);
  uint32_t stride = sizes[1] + gap;
  for (size_t d = sizes.size(); d-- > 2; stride = stride * sizes[d] + gap) tensor.strides[d] = stride;
  tensor.strides[1] = 1;
  tensor.strides[0] = stride;
  tensor.total_bytes = MinimumTotalBytes(tensor);
  return tensor;
}

}  // namespace anydml::testing
