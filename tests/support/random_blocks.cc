#include "support/random_blocks.h"

#include <cstring>
#include <utility>

#include "base/half.h"

namespace anydml::testing {
namespace {

using Source = RandomGraph::Source;

class BlockMaker {
 public:
  explicit BlockMaker(uint64_t seed) : random_(seed) {}

  RandomGraph Make() {
    type_ = OneIn(3) ? DataType::kFloat32 : DataType::kFloat16;
    // Whole units of 16 bytes, as GPU kernels prefer, or not.
    constexpr uint32_t kChannels[] = {8, 16, 24, 64, 72};
    channels_ = OneIn(6) ? Uniform(random_, 5, 20) : kChannels[random_() % std::size(kChannels)];
    const bool is_large = OneIn(16);  // for GPU libraries, and for cuda.planes
    if (is_large) channels_ = OneIn(2) ? 64 : 72;
    const auto size = [&] {
      if (is_large) return 8 * Uniform(random_, 4, 7);
      return OneIn(3) ? Uniform(random_, 3, 20) : 8 * Uniform(random_, 1, 3);
    };
    image_ = Image({Uniform(random_, 1, 2), channels_, size(), size()});
    const Source x = Input(image_, WholeNumbers(image_));
    Source y = x;
    if (OneIn(2)) {
      y = Convolve(y);
      if (OneIn(2)) y = Relu(y, image_);
    }
    y = Convolve(y);
    if (OneIn(2)) y = Normalize(y);
    if (OneIn(2)) y = Add(y, x);
    if (OneIn(2)) y = OneIn(2) ? Relu(y, image_) : Clip(y);
    graph_.outputs.push_back({y.index, 0});
    return std::move(graph_);
  }

 private:
  bool OneIn(uint32_t count) { return random_() % count == 0; }

  TensorDesc Image(const std::vector<uint32_t>& sizes) {
    if (!OneIn(4)) return Packed(type_, sizes);
    const uint32_t c = sizes[1], w = sizes[3];
    return Strided(type_, sizes, {c * sizes[2] * w, 1, c * w, c});
  }
  Source Input(const TensorDesc& tensor, const std::vector<float>& numbers) {
    const size_t width = BitSize(type_) / 8;
    Bytes bytes(tensor.total_bytes);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const uint16_t half = ToHalf(numbers[i]).bits;
      std::memcpy(&bytes[i * width], width == 2 ? static_cast<const void*>(&half) : &numbers[i], width);
    }
    graph_.inputs.push_back(std::move(bytes));
    graph_.owned.push_back(tensor.owned_by_dml);
    return {Source::Kind::kInput, static_cast<uint32_t>(graph_.inputs.size() - 1), 0};
  }
  std::vector<float> WholeNumbers(const TensorDesc& tensor) {
    std::vector<float> numbers(ElementSpan(tensor));
    for (float& number : numbers) number = static_cast<float>(Uniform(random_, 0, 2)) - 1;
    return numbers;
  }
  Source AddNode(OperatorDesc desc, std::vector<Source> inputs) {
    graph_.nodes.push_back({std::move(desc), std::move(inputs)});
    return {Source::Kind::kNode, static_cast<uint32_t>(graph_.nodes.size() - 1), 0};
  }

  Source Convolve(Source x) {
    using Sizes = std::vector<uint32_t>;
    const uint32_t taps = OneIn(2) ? 3 : 1;
    TensorDesc filter = Packed(type_, {channels_, channels_, taps, taps});
    filter.owned_by_dml = !OneIn(4);
    OperatorDesc desc = MakeDesc("CONVOLUTION", {{"InputTensor", image_},
                                                 {"FilterTensor", filter},
                                                 {"OutputTensor", image_},
                                                 {"Mode", uint32_t{1}},
                                                 {"Direction", uint32_t{0}},
                                                 {"DimensionCount", uint32_t{2}},
                                                 {"Strides", Sizes{1, 1}},
                                                 {"Dilations", Sizes{1, 1}},
                                                 {"StartPadding", Sizes{taps / 2, taps / 2}},
                                                 {"EndPadding", Sizes{taps / 2, taps / 2}},
                                                 {"OutputPadding", Sizes{0, 0}},
                                                 {"GroupCount", uint32_t{1}}});
    std::vector<Source> inputs = {x, Input(filter, WholeNumbers(filter)), {}};
    if (OneIn(2)) {
      const TensorDesc bias = Packed(type_, {1, channels_, 1, 1});
      desc.fields[static_cast<size_t>(FindField(*desc.schema, "BiasTensor"))] = bias;
      inputs[2] = Input(bias, WholeNumbers(bias));
    }
    return AddNode(std::move(desc), std::move(inputs));
  }

  Source Normalize(Source x) {
    const TensorDesc row = Packed(type_, {1, channels_, 1, 1});
    const auto numbers = [&](float least) {
      std::vector<float> result(channels_);
      for (float& number : result) number = least + static_cast<float>(Uniform(random_, 0, 1000)) / 500.0f;
      return Input(row, result);
    };
    std::vector<Source> inputs = {x, numbers(-1), numbers(0.5f), numbers(0.5f), numbers(-1)};
    return AddNode(MakeDesc("BATCH_NORMALIZATION", {{"InputTensor", image_},
                                                    {"MeanTensor", row},
                                                    {"VarianceTensor", row},
                                                    {"ScaleTensor", row},
                                                    {"BiasTensor", row},
                                                    {"OutputTensor", image_},
                                                    {"Spatial", uint32_t{1}},
                                                    {"Epsilon", 1e-5f}}),
                   std::move(inputs));
  }

  Source Add(Source x, Source y) {
    if (OneIn(2)) std::swap(x, y);
    return AddNode(
        MakeDesc("ELEMENT_WISE_ADD", {{"ATensor", image_}, {"BTensor", image_}, {"OutputTensor", image_}}),
        {x, y});
  }
  Source Relu(Source x, const TensorDesc& tensor) {
    return AddNode(MakeDesc("ACTIVATION_RELU", {{"InputTensor", tensor}, {"OutputTensor", tensor}}), {x});
  }
  // To FLOAT16 limits, or others.
  Source Clip(Source x) {
    return AddNode(MakeDesc("ELEMENT_WISE_CLIP", {{"InputTensor", image_},
                                                  {"OutputTensor", image_},
                                                  {"Min", OneIn(2) ? 0.0f : -1.3f},
                                                  {"Max", 6.0f}}),
                   {x});
  }

  std::mt19937_64 random_;
  DataType type_ = DataType::kFloat32;
  uint32_t channels_ = 1;
  TensorDesc image_;
  RandomGraph graph_;
};

}  // namespace

RandomGraph MakeRandomBlock(uint64_t seed) { return BlockMaker(seed).Make(); }

}  // namespace anydml::testing
