#include "support/random_attention.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "base/half.h"

namespace anydml::testing {
namespace {

using Source = RandomGraph::Source;

class AttentionMaker {
 public:
  explicit AttentionMaker(uint64_t seed) : random_(seed) {}

  RandomGraph Make() {
    graph_.attention = true;
    type_ = OneIn(2) ? DataType::kFloat16 : DataType::kFloat32;
    batch_ = Uniform(random_, 1, 3);
    heads_ = Uniform(random_, 1, 4);
    queries_ = OneIn(4) ? Uniform(random_, 1, 4) : Uniform(random_, 1, 150);
    keys_ = OneIn(4) ? Uniform(random_, 1, 4) : Uniform(random_, 1, 150);
    // Whole units of 16 bytes, as GPU kernels prefer, or not.
    columns_ = OneIn(2) ? 8 * Uniform(random_, 1, 8) : Uniform(random_, 1, 33);
    value_columns_ = OneIn(2) ? columns_ : Uniform(random_, 1, 33);
    projects_ = OneIn(3);
    Source weights = AddLogits();
    if (OneIn(2)) weights = AddScale(weights);
    if (OneIn(2)) weights = AddMask(weights);
    weights = AddNode(
        MakeDesc("ACTIVATION_SOFTMAX1",
                 {{"InputTensor", logits_}, {"OutputTensor", logits_}, {"Axes", std::vector<uint32_t>{3}}}),
        {weights});
    AddResult(weights);
    return std::move(graph_);
  }

 private:
  bool OneIn(uint32_t count) { return random_() % count == 0; }

  Bytes Content(const std::vector<float>& numbers) const {
    const size_t width = BitSize(type_) / 8;
    Bytes bytes((numbers.size() * width + 3) / 4 * 4);
    for (size_t i = 0; i < numbers.size(); ++i) {
      const uint16_t half = ToHalf(numbers[i]).bits;
      std::memcpy(&bytes[i * width], width == 2 ? static_cast<const void*>(&half) : &numbers[i], width);
    }
    return bytes;
  }
  std::vector<float> Numbers(const TensorDesc& tensor) {
    std::vector<float> numbers(ElementSpan(tensor));
    for (float& number : numbers) number = static_cast<float>(Uniform(random_, 0, 2000)) / 1000.0f - 1;
    return numbers;
  }
  Source Input(Bytes content) {
    graph_.inputs.push_back(std::move(content));
    graph_.owned.push_back(false);
    return {Source::Kind::kInput, static_cast<uint32_t>(graph_.inputs.size() - 1), 0};
  }
  Source AddNode(OperatorDesc desc, std::vector<Source> inputs) {
    graph_.nodes.push_back({std::move(desc), std::move(inputs)});
    return {Source::Kind::kNode, static_cast<uint32_t>(graph_.nodes.size() - 1), 0};
  }

  // {batch, heads, rows, columns}, directly or from {batch, rows, heads, columns} by a copy.
  Source AddMatrices(const TensorDesc& tensor) {
    if (OneIn(2)) return Input(Content(Numbers(tensor)));
    const uint32_t rows = tensor.sizes[2], columns = tensor.sizes[3];
    const TensorDesc words = Strided(type_, {batch_, heads_, rows, columns},
                                     {rows * heads_ * columns, columns, heads_ * columns, 1});
    const Source input =
        projects_ ? Project(batch_ * rows, heads_ * columns) : Input(Content(Numbers(words)));
    return AddNode(MakeDesc("ELEMENT_WISE_IDENTITY", {{"InputTensor", words}, {"OutputTensor", tensor}}),
                   {input});
  }

  // Numbers up to 1 as a product of words with weights; one matrix of words has several.
  Source Project(uint32_t rows, uint32_t columns) {
    constexpr uint32_t kSteps = 16;
    const TensorDesc words = Packed(type_, {rows, kSteps}), output = Packed(type_, {rows, columns});
    const auto known = words_.try_emplace(rows);
    if (known.second) known.first->second = Input(Content(Numbers(words)));
    const bool transposes = OneIn(3), adds = !OneIn(3);
    TensorDesc weights = transposes ? Packed(type_, {columns, kSteps}) : Packed(type_, {kSteps, columns});
    weights.owned_by_dml = !OneIn(8);
    std::vector<float> numbers = Numbers(weights);
    for (float& number : numbers) number /= 2 * kSteps;
    const Source factors = Input(Content(numbers));
    graph_.owned.back() = weights.owned_by_dml;
    const Source product = AddNode(MakeDesc("GEMM", {{"ATensor", words},
                                                     {"BTensor", weights},
                                                     {"OutputTensor", output},
                                                     {"TransA", uint32_t{0}},
                                                     {"TransB", uint32_t{transposes}},
                                                     {"Alpha", 1.0f},
                                                     {"Beta", 0.0f}}),
                                   {known.first->second, factors, {}});
    if (!adds) return product;
    const TensorDesc row = Strided(type_, {rows, columns}, {0, 1});
    numbers = Numbers(row);
    for (float& number : numbers) number /= 2;
    graph_.constants.push_back(Content(numbers));
    const Source added = {Source::Kind::kConstant, static_cast<uint32_t>(graph_.constants.size() - 1), 0};
    return AddNode(
        MakeDesc("ELEMENT_WISE_ADD", {{"ATensor", output}, {"BTensor", row}, {"OutputTensor", output}}),
        {product, added});
  }

  Source AddLogits() {
    const TensorDesc query = Packed(type_, {batch_, heads_, queries_, columns_});
    const bool transposes = OneIn(2);
    const TensorDesc key = transposes ? Packed(type_, {batch_, heads_, keys_, columns_})
                                      : Packed(type_, {batch_, heads_, columns_, keys_});
    logits_ = Packed(type_, {batch_, heads_, queries_, keys_});
    const Source from = AddMatrices(query), to = AddMatrices(key);
    return AddNode(MakeDesc("GEMM", {{"ATensor", query},
                                     {"BTensor", key},
                                     {"OutputTensor", logits_},
                                     {"TransA", uint32_t{0}},
                                     {"TransB", uint32_t{transposes}},
                                     {"Alpha", 1 / std::sqrt(static_cast<float>(columns_))},
                                     {"Beta", 0.0f}}),
                   {from, to, {}});
  }

  Source AddScale(Source logits) {
    const float scale = OneIn(2) ? 0.5f : 0.8f;
    return AddNode(
        MakeDesc("ELEMENT_WISE_IDENTITY",
                 {{"InputTensor", logits_}, {"OutputTensor", logits_}, {"ScaleBias", ScaleBias{scale, 0}}}),
        {logits});
  }

  // Numbers, or 0 and a value that hides keys; in a row with hidden keys only, weights are equal, or NaN.
  Source AddMask(Source logits) {
    const uint32_t strides[] = {OneIn(2) ? 0 : heads_ * queries_ * keys_, OneIn(2) ? 0 : queries_ * keys_,
                                OneIn(2) ? 0 : keys_, 1};
    const TensorDesc mask = Strided(type_, {batch_, heads_, queries_, keys_}, {strides, strides + 4});
    std::vector<float> numbers = Numbers(mask);
    const float lowest = type_ == DataType::kFloat16 ? -65504.0f : std::numeric_limits<float>::lowest();
    const float hidden = OneIn(2) ? lowest : -std::numeric_limits<float>::infinity();
    if (!OneIn(3)) {
      for (float& number : numbers) number = OneIn(3) ? hidden : 0;
    }
    return AddNode(
        MakeDesc("ELEMENT_WISE_ADD", {{"ATensor", logits_}, {"BTensor", mask}, {"OutputTensor", logits_}}),
        {logits, Input(Content(numbers))});
  }

  void AddResult(Source weights) {
    const TensorDesc value = Packed(type_, {batch_, heads_, keys_, value_columns_});
    const TensorDesc result = Packed(type_, {batch_, heads_, queries_, value_columns_});
    const Source values = AddMatrices(value);
    Source output = AddNode(MakeDesc("GEMM", {{"ATensor", logits_},
                                              {"BTensor", value},
                                              {"OutputTensor", result},
                                              {"TransA", uint32_t{0}},
                                              {"TransB", uint32_t{0}},
                                              {"Alpha", 1.0f},
                                              {"Beta", 0.0f}}),
                            {weights, values, {}});
    if (OneIn(2)) {
      const uint32_t head = queries_ * value_columns_;
      const TensorDesc from = Strided(type_, {batch_, queries_, heads_, value_columns_},
                                      {heads_ * head, value_columns_, head, 1});
      const TensorDesc to = Packed(type_, {batch_, queries_, heads_, value_columns_});
      output =
          AddNode(MakeDesc("ELEMENT_WISE_IDENTITY", {{"InputTensor", from}, {"OutputTensor", to}}), {output});
    }
    graph_.outputs.push_back({output.index, 0});
  }

  std::mt19937_64 random_;
  DataType type_ = DataType::kFloat32;
  uint32_t batch_ = 1, heads_ = 1, queries_ = 1, keys_ = 1, columns_ = 1, value_columns_ = 1;
  bool projects_ = false;
  std::map<uint32_t, Source> words_;  // by their number
  TensorDesc logits_;
  RandomGraph graph_;
};

}  // namespace

RandomGraph MakeRandomAttention(uint64_t seed) { return AttentionMaker(seed).Make(); }

}  // namespace anydml::testing
