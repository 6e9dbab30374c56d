#include "onnx/model/normalized_convolutions.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "onnx/model/graph_edit.h"
#include "onnx/model/node_facts.h"

namespace anydml::onnx {
namespace {

// New filters are in memory beside the original ones, so their total is limited. Large filters have small
// images, on which a normalisation costs little.
constexpr uint64_t kMostBytes = uint64_t{16} << 20;
// With larger ones, filters and sums might overflow.
constexpr double kMostScale = 0x1p40, kMostShift = 0x1p100;

// Transforms channel c's sums: times scale[c], plus shift[c].
struct Affine {
  std::vector<double> scale, shift;
};

struct Filters {
  const Tensor* weights = nullptr;
  const Tensor* bias = nullptr;
  int64_t channels = 0;  // of the output
  bool transposed = false;

  // The channel of a filter's element.
  int64_t ChannelOf(int64_t element) const {
    const Shape& shape = weights->shape;
    if (!transposed) return element / (weights->count() / channels);
    // {inputs, channels per group, ...}
    const int64_t row = element / (weights->count() / shape[0]);
    const int64_t of_group = element / (weights->count() / shape[0] / shape[1]) % shape[1];
    const int64_t groups = channels / shape[1];
    return row / (shape[0] / groups) * shape[1] + of_group;
  }
};

class Normalizations {
 public:
  explicit Normalizations(GraphProto* graph) : graph_(*graph), edit_(graph, "normalised") {}

  void Run() {
    std::vector<bool> gone;
    for (NodeProto& node : graph_.nodes) gone.push_back(Take(node));
    for (const auto& [conv, affine] : taken_) Fold(affine, conv);
    std::vector<NodeProto> nodes;
    for (size_t i = 0; i < gone.size(); ++i) {
      if (!gone[i]) nodes.push_back(std::move(graph_.nodes[i]));
    }
    edit_.RemoveDead(&nodes);
    graph_.nodes = std::move(nodes);
  }

 private:
  // Merges the node into the convolution before it, if possible.
  bool Take(const NodeProto& node) {
    // A name that is defined twice is left to the program, which refuses it.
    if (node.outputs.empty() || edit_.Producer(node.outputs[0]) != &node) return false;
    const bool normalizes = node.type == "BatchNormalization";
    if (!normalizes && node.type != "Mul" && node.type != "Add") return false;
    for (size_t i = 0; i < std::min<size_t>(node.inputs.size(), normalizes ? 1 : 2); ++i) {
      NodeProto* const conv = edit_.Producer(node.inputs[i]);
      const std::optional<Filters> filters = FiltersOf(conv);
      if (!filters || !edit_.OnlyHere(node.inputs[i])) continue;
      const std::optional<Affine> affine =
          normalizes ? NormalizationOf(node, *filters) : StepOf(node, 1 - i, *filters);
      if (!affine || !Compose(*affine, *filters, conv)) continue;
      for (size_t j = 0; j < node.inputs.size(); ++j) {
        if (j != i) edit_.Leave(node.inputs[j]);
      }
      conv->outputs[0] = node.outputs[0];
      edit_.SetProducer(node.outputs[0], conv);
      return true;
    }
    return false;
  }

  std::optional<Filters> FiltersOf(const NodeProto* conv) const {
    if (conv == nullptr || (conv->type != "Conv" && conv->type != "ConvTranspose") ||
        conv->inputs.size() < 2 || conv->inputs.size() > 3 || conv->outputs.size() != 1 ||
        edit_.IsDead(conv->outputs[0])) {
      return std::nullopt;
    }
    Filters filters;
    filters.weights = edit_.Constant(conv->inputs[1]);
    filters.transposed = conv->type == "ConvTranspose";
    if (filters.weights == nullptr || filters.weights->type != ElementType::kFloat ||
        filters.weights->shape.size() < 3 || filters.weights->count() < 1) {
      return std::nullopt;
    }
    const Shape& shape = filters.weights->shape;
    const int64_t groups = NodeFacts(*conv, 0).Int("group", 1);
    if (groups < 1 || groups > shape[0] || shape[0] % groups != 0) return std::nullopt;
    filters.channels = filters.transposed ? shape[1] * groups : shape[0];
    if (conv->inputs.size() == 3 && !conv->inputs[2].empty()) {
      filters.bias = edit_.Constant(conv->inputs[2]);
      if (filters.bias == nullptr || filters.bias->type != ElementType::kFloat ||
          filters.bias->shape != Shape{filters.channels}) {
        return std::nullopt;
      }
    }
    return filters;
  }

  std::optional<Affine> NormalizationOf(const NodeProto& node, const Filters& filters) const {
    const NodeFacts facts(node, 0);
    const auto epsilon = double{facts.Float("epsilon", 1e-5f)};
    const bool one_result = std::all_of(node.outputs.begin() + 1, node.outputs.end(),
                                        [](const std::string& name) { return name.empty(); });
    if (node.inputs.size() != 5 || !one_result || facts.Int("training_mode", 0) != 0 ||
        facts.Int("spatial", 1) == 0 || !facts.attribute_kinds().ok())
      return std::nullopt;
    std::vector<double> numbers[4];  // scale, bias, mean, variance
    for (size_t i = 0; i < 4; ++i) {
      const Tensor* const tensor = edit_.Constant(node.inputs[i + 1]);
      if (tensor == nullptr || tensor->type != ElementType::kFloat ||
          tensor->shape != Shape{filters.channels})
        return std::nullopt;
      numbers[i] = ToDoubles(*tensor);
    }
    Affine affine;
    for (size_t i = 0; i < numbers[0].size(); ++i) {
      const double scale = numbers[0][i] / std::sqrt(numbers[3][i] + epsilon);
      affine.scale.push_back(scale);
      affine.shift.push_back(numbers[1][i] - numbers[2][i] * scale);
    }
    return affine;
  }

  // Mul or Add, whose other input has one number or one per channel.
  std::optional<Affine> StepOf(const NodeProto& node, size_t other, const Filters& filters) const {
    const Tensor* const tensor = node.inputs.size() == 2 ? edit_.Constant(node.inputs[other]) : nullptr;
    if (tensor == nullptr || tensor->type != ElementType::kFloat) return std::nullopt;
    const size_t rank = filters.weights->shape.size(), given = tensor->shape.size();
    const bool one = tensor->count() == 1 && given <= rank;
    const bool each = tensor->count() == filters.channels && given <= rank && given + 1 >= rank &&
                      tensor->shape[given + 1 - rank] == filters.channels;
    if (!one && !each) return std::nullopt;
    std::vector<double> numbers = ToDoubles(*tensor);
    if (!each) numbers.assign(static_cast<size_t>(filters.channels), numbers[0]);
    if (node.type == "Mul") return Affine{numbers, std::vector<double>(numbers.size(), 0)};
    return Affine{std::vector<double>(numbers.size(), 1), numbers};
  }

  // Appends to what is already done to its sums.
  bool Compose(const Affine& next, const Filters& filters, NodeProto* conv) {
    const auto found = taken_.find(conv);
    const size_t channels = next.scale.size();
    Affine all = found != taken_.end()
                     ? found->second
                     : Affine{std::vector<double>(channels, 1), std::vector<double>(channels, 0)};
    const bool scaled = Scales(all);
    for (size_t c = 0; c < channels; ++c) {
      all.scale[c] *= next.scale[c];
      all.shift[c] = all.shift[c] * next.scale[c] + next.shift[c];
      // Also false for NaN.
      if (!(std::fabs(all.scale[c]) <= kMostScale && std::fabs(all.shift[c]) <= kMostShift)) return false;
    }
    uint64_t bytes = Scales(all) && !scaled ? filters.weights->data.size() : 0;
    if (found == taken_.end()) bytes += channels * (2 * sizeof(double) + sizeof(float));  // and the bias
    if (bytes > kMostBytes - bytes_) return false;
    bytes_ += bytes;
    taken_[conv] = std::move(all);
    return true;
  }

  static bool Scales(const Affine& affine) {
    return std::ranges::any_of(affine.scale, [](double scale) { return scale != 1; });
  }

  void Fold(const Affine& affine, NodeProto* conv) {
    const Filters filters = *FiltersOf(conv);
    std::vector<double> bias(affine.shift);
    if (filters.bias != nullptr) {
      const std::vector<double> before = ToDoubles(*filters.bias);
      for (size_t c = 0; c < bias.size(); ++c) bias[c] += before[c] * affine.scale[c];
    }
    conv->inputs.resize(3);
    Replace(&conv->inputs[2], FromDoubles(ElementType::kFloat, {filters.channels}, bias));
    if (!Scales(affine)) return;
    std::vector<double> weights = ToDoubles(*filters.weights);
    DropPages(*filters.weights);
    for (size_t i = 0; i < weights.size(); ++i)
      weights[i] *= affine.scale[static_cast<size_t>(filters.ChannelOf(static_cast<int64_t>(i)))];
    Replace(&conv->inputs[1], FromDoubles(ElementType::kFloat, filters.weights->shape, weights));
  }

  void Replace(std::string* input, Tensor tensor) {
    edit_.Leave(*input);
    *input = edit_.Add(std::move(tensor));
    edit_.Use(*input);
  }

  GraphProto& graph_;
  GraphEdit edit_;
  std::map<NodeProto*, Affine> taken_;
  uint64_t bytes_ = 0;  // of new filters and of numbers per channel
};

}  // namespace

void FoldNormalizations(Model* model) {
  const auto opset = model->opsets.find("");
  // Before version 7 broadcasting had other rules.
  if (opset != model->opsets.end() && opset->second >= 7 && HasOnlyKnownOperators(*model))
    Normalizations(&model->graph).Run();
}

}  // namespace anydml::onnx
