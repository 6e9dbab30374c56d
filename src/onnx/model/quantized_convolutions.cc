#include "onnx/model/quantized_convolutions.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <tuple>

#include "onnx/model/graph_edit.h"
#include "onnx/model/node_facts.h"

namespace anydml::onnx {
namespace {

// Byte products are computed four at a time for at least this many channels. Sums of fewer take longer to
// scale than to compute.
constexpr int64_t kLeastChannels = 8, kLeastProducts = 16;
// With one input channel (depthwise) and at most this many filters and taps (the limits of cpu.depthwise),
// sums are as in FLOAT32, with a quarter of the memory traffic.
constexpr int64_t kMostDepthwiseFilters = 4, kMostDepthwiseTaps = 256;

bool IsByte(ElementType type) { return type == ElementType::kInt8 || type == ElementType::kUInt8; }

// The quantised number, in a type whose lowest number is `least`.
int64_t Quantized(float number, float scale, int64_t zero, int64_t least) {
  const double step = std::nearbyint(double{number / scale}) + static_cast<double>(zero);
  return static_cast<int64_t>(std::clamp(step, static_cast<double>(least), static_cast<double>(least + 255)));
}

// DequantizeLinear or QuantizeLinear with constants.
struct Scales {
  const NodeProto* node = nullptr;
  const Tensor* scale = nullptr;
  const Tensor* zero = nullptr;  // null: 0

  bool one() const { return scale->count() == 1 && (zero == nullptr || zero->count() == 1); }
};

class QuantizedConvolutions {
 public:
  QuantizedConvolutions(GraphProto* graph, int64_t opset)
      : graph_(*graph), edit_(graph, "quantised"), limits_are_attributes_(opset < 11) {}

  void Run() {
    MergeEqual();
    std::vector<NodeProto> nodes;
    for (const NodeProto& node : graph_.nodes) {
      if (node.type != "QuantizeLinear" || !node.domain.empty() || !TakeOne(node, &nodes))
        nodes.push_back(node);
    }
    edit_.RemoveDead(&nodes);
    graph_.nodes = std::move(nodes);
  }

 private:
  bool ScalesOf(const NodeProto* node, const char* type, Scales* out) const {
    if (node == nullptr || node->type != type || node->inputs.size() < 2 || node->inputs.size() > 3 ||
        node->outputs.size() != 1 || node->Find("block_size") != nullptr) {
      return false;
    }
    *out = {node, edit_.Constant(node->inputs[1]), nullptr};
    if (out->scale == nullptr || out->scale->type != ElementType::kFloat) return false;
    if (node->inputs.size() < 3 || node->inputs[2].empty()) return true;
    out->zero = edit_.Constant(node->inputs[2]);
    return out->zero != nullptr;
  }

  // Identical quantisations of one tensor become one.
  void MergeEqual() {
    const auto bytes = [](const Tensor& tensor) {
      return std::string(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
    };
    std::map<std::tuple<std::string, std::string, std::string, ElementType>, std::string> first;
    std::map<std::string, std::string> renamed;
    for (const NodeProto& node : graph_.nodes) {
      Scales scales;
      if (!ScalesOf(&node, "QuantizeLinear", &scales) || scales.zero == nullptr || !scales.one()) continue;
      const auto [found, added] = first.try_emplace(
          {node.inputs[0], bytes(*scales.scale), bytes(*scales.zero), scales.zero->type}, node.outputs[0]);
      if (!added) renamed[node.outputs[0]] = found->second;
    }
    for (NodeProto& node : graph_.nodes) {
      for (std::string& input : node.inputs) {
        const auto found = renamed.find(input);
        if (found == renamed.end()) continue;
        edit_.Leave(input);
        input = found->second;
        edit_.Use(input);
      }
    }
  }

  // Replaces the node that ends with `last`, a QuantizeLinear, by other nodes.
  bool TakeOne(const NodeProto& last, std::vector<NodeProto>* nodes) {
    Scales y, x, w;
    if (!ScalesOf(&last, "QuantizeLinear", &y) || edit_.IsDead(last.outputs[0]) || y.zero == nullptr ||
        !y.one() || !IsByte(y.zero->type) || !edit_.OnlyHere(last.inputs[0])) {
      return false;
    }
    const NodeProto* conv = edit_.Producer(last.inputs[0]);
    float low = -std::numeric_limits<float>::infinity(), high = -low;
    if (conv != nullptr && LimitsOf(*conv, &low, &high) && edit_.OnlyHere(conv->inputs[0]))
      conv = edit_.Producer(conv->inputs[0]);
    if (conv == nullptr || conv->type != "Conv" || conv->inputs.size() < 2 || conv->inputs.size() > 3 ||
        !ScalesOf(edit_.Producer(conv->inputs[0]), "DequantizeLinear", &x) || x.zero == nullptr || !x.one() ||
        !IsByte(x.zero->type) || !ScalesOf(edit_.Producer(conv->inputs[1]), "DequantizeLinear", &w)) {
      return false;
    }
    const Tensor* const weights = edit_.Constant(w.node->inputs[0]);
    if (weights == nullptr || !IsByte(weights->type) || !Pays(*conv, *weights) || !ScalesFit(w, *weights))
      return false;
    const float scale = static_cast<float>(ToDoubles(*y.scale)[0]);
    if (!(scale > 0) || !std::isfinite(scale)) return false;
    std::vector<int64_t> bias;
    if (conv->inputs.size() > 2 && !conv->inputs[2].empty() &&
        !BiasOf(conv->inputs[2], x, w, weights->shape[0], scale, &bias))
      return false;
    if (!SumsFit(*weights, bias)) return false;

    const int64_t least = y.zero->type == ElementType::kInt8 ? -128 : 0;
    const int64_t zero = ToInts(*y.zero)[0];
    const int64_t from = Quantized(low, scale, zero, least), to = Quantized(high, scale, zero, least);
    NodeProto product;
    product.name = conv->name;
    product.type = "QLinearConv";
    product.attributes = conv->attributes;
    product.inputs = {x.node->inputs[0], x.node->inputs[1],        x.node->inputs[2], w.node->inputs[0],
                      w.node->inputs[1], ZeroOf(w, weights->type), last.inputs[1],    last.inputs[2]};
    if (!bias.empty())
      product.inputs.push_back(edit_.Add(FromInts(ElementType::kInt32, {weights->shape[0]}, bias)));
    for (const std::string& input : product.inputs) edit_.Use(input);
    product.outputs = {last.outputs[0]};
    nodes->push_back(std::move(product));
    if (from > least || to < least + 255) AddLimits(from, to, y.zero->type, nodes);
    for (const std::string& input : last.inputs) edit_.Leave(input);
    return true;
  }

  // Relu and Clip; false for others.
  bool LimitsOf(const NodeProto& node, float* low, float* high) const {
    if (!node.domain.empty() || node.inputs.empty()) return false;
    if (node.type == "Relu") {
      *low = 0;
      return node.inputs.size() == 1;
    }
    if (node.type != "Clip" || node.inputs.size() > (limits_are_attributes_ ? 1 : 3)) return false;
    for (const size_t i : {1, 2}) {
      float* const limit = i == 1 ? low : high;
      if (limits_are_attributes_) {
        const NodeFacts facts(node, 0);
        *limit = facts.Float(i == 1 ? "min" : "max", *limit);
        if (!facts.attribute_kinds().ok()) return false;
        continue;
      }
      if (node.inputs.size() <= i || node.inputs[i].empty()) continue;
      const Tensor* const tensor = edit_.Constant(node.inputs[i]);
      if (tensor == nullptr || tensor->type != ElementType::kFloat || tensor->count() != 1) return false;
      *limit = static_cast<float>(ToDoubles(*tensor)[0]);
    }
    return *low <= *high;  // also false for NaN
  }

  static bool Pays(const NodeProto& conv, const Tensor& weights) {
    const NodeFacts facts(conv, 0);
    const int64_t groups = facts.Int("group", 1);
    if (!facts.attribute_kinds().ok()) return false;
    if (weights.shape.size() < 3 || weights.shape.size() > 4 || groups < 1 || weights.shape[0] <= 0)
      return false;
    const int64_t filters = weights.shape[0] / groups;
    const int64_t products = weights.count() / weights.shape[0];
    if (weights.shape[1] == 1 && filters <= kMostDepthwiseFilters && products <= kMostDepthwiseTaps)
      return true;
    return filters >= kLeastChannels && products >= kLeastProducts;
  }

  // One for all, or one per output channel.
  static bool ScalesFit(const Scales& w, const Tensor& weights) {
    const int64_t channels = weights.shape[0], count = w.scale->count();
    if (w.zero != nullptr && (w.zero->count() != count || w.zero->type != weights.type)) return false;
    return count == 1 || (count == channels && NodeFacts(*w.node, 0).Int("axis", 1) == 0);
  }

  // The sums of integers must not wrap; those of the numbers do not, either.
  static bool SumsFit(const Tensor& weights, std::span<const int64_t> bias) {
    int64_t most = 0;
    for (const int64_t step : bias) most = std::max(most, std::abs(step));
    return weights.count() / weights.shape[0] < ((int64_t{1} << 31) - most) / (255 * 255);
  }

  // In units of the sums' scale, to which numbers are rounded here, with an error of at most half a step of
  // the result.
  bool BiasOf(const std::string& name, const Scales& x, const Scales& w, int64_t channels, double of_result,
              std::vector<int64_t>* out) const {
    const Tensor* numbers = edit_.Constant(name);
    Scales of_bias;
    std::vector<double> values;
    if (numbers != nullptr && numbers->type == ElementType::kFloat) {
      values = ToDoubles(*numbers);
    } else if (ScalesOf(edit_.Producer(name), "DequantizeLinear", &of_bias) &&
               (numbers = edit_.Constant(of_bias.node->inputs[0])) != nullptr &&
               numbers->type == ElementType::kInt32 &&
               (of_bias.zero == nullptr ||
                std::ranges::all_of(ToInts(*of_bias.zero), [](int64_t z) { return z == 0; }))) {
      values = ToDoubles(*numbers);
      const std::vector<double> scales = ToDoubles(*of_bias.scale);
      if (scales.size() != 1 && scales.size() != values.size()) return false;
      for (size_t i = 0; i < values.size(); ++i) values[i] *= scales[scales.size() == 1 ? 0 : i];
    }
    if (numbers == nullptr || values.size() != static_cast<size_t>(channels)) return false;
    const std::vector<double> scales = ToDoubles(*w.scale);
    const double of_input = ToDoubles(*x.scale)[0];
    for (size_t i = 0; i < values.size(); ++i) {
      const double of_sums = of_input * scales[scales.size() == 1 ? 0 : i];
      const double step = std::nearbyint(values[i] / of_sums);
      if (!(std::fabs(step) < 0x1p30) || std::fabs(step * of_sums - values[i]) > of_result / 2) return false;
      out->push_back(static_cast<int64_t>(step));
    }
    return true;
  }

  std::string ZeroOf(const Scales& scales, ElementType type) {
    return scales.zero != nullptr ? scales.node->inputs[2]
                                  : edit_.Add(FromInts(type, {}, std::vector<int64_t>{0}));
  }

  // Clips the last node's result, which gets another name.
  void AddLimits(int64_t from, int64_t to, ElementType element, std::vector<NodeProto>* nodes) {
    NodeProto node;
    node.name = nodes->back().name;
    node.type = "Clip";
    node.outputs = nodes->back().outputs;
    nodes->back().outputs[0] = edit_.NewName();
    node.inputs = {nodes->back().outputs[0]};
    for (const auto& [name, limit] : {std::pair{"min", from}, {"max", to}}) {
      if (limits_are_attributes_) {
        Attribute& attribute = node.attributes.emplace_back();
        attribute.name = name;
        attribute.kind = AttributeKind::kFloat;
        attribute.number = static_cast<float>(limit);
      } else {
        node.inputs.push_back(edit_.Add(FromInts(element, {}, std::vector<int64_t>{limit})));
      }
    }
    nodes->push_back(std::move(node));
  }

  GraphProto& graph_;
  GraphEdit edit_;
  const bool limits_are_attributes_;  // of Clip
};

}  // namespace

void TakeQuantizedConvolutions(Model* model) {
  const auto opset = model->opsets.find("");
  if (HasOnlyKnownOperators(*model) && opset != model->opsets.end())
    QuantizedConvolutions(&model->graph, opset->second).Run();
}

}  // namespace anydml::onnx
