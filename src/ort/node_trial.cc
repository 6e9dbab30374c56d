#include "ort/node_trial.h"

#include <algorithm>
#include <functional>
#include <set>

#include <anydml.h>

#include "onnx/run/trace.h"

namespace anydml::ort {
namespace {

// Guesses for unknown sizes: the same number for all, so that sizes agree with each other. 1 broadcasts with
// everything; the last two have many divisors and leave room for many dimensions.
constexpr int64_t kGuesses[] = {64, 1, 24, 12};
// Guesses for an unknown rank: from a scalar (onnxruntime then states no shape) to a video.
constexpr size_t kGuessedRanks[] = {4, 3, 2, 1, 0, 5};
// The maximum number of size guesses per rank.
constexpr size_t kMostTries = 128;
// Inputs whose elements are needed are shapes, axes, lengths; a larger size is a wrong guess.
constexpr uint64_t kMostElementBytes = 1 << 12;
constexpr size_t kMostElementGuesses = 16;
// Larger attribute values are not sizes.
constexpr int64_t kMostSize = 1 << 20;

// Validates operators at a feature level.
class CheckingMaker final : public onnx::OperatorMaker {
 public:
  explicit CheckingMaker(uint32_t feature_level) : feature_level_(feature_level) {}
  Status Make(const DML_OPERATOR_DESC& desc, Microsoft::WRL::ComPtr<IDMLOperator>*) override {
    if (AnyDmlCheckOperator(&desc, feature_level_) >= 0) return {};
    return InvalidArgument(AnyDmlGetLastErrorMessage());
  }

 private:
  const uint32_t feature_level_;
};

struct Unknown {
  int64_t* size;
  size_t group;     // dimensions of one name have one size
  size_t from_end;  // 1: the last dimension
};

// For arbitrary numbers: it wraps.
int64_t Sum(const std::vector<int64_t>& numbers) {
  uint64_t sum = 0;
  for (const int64_t number : numbers) sum += static_cast<uint64_t>(number);
  return static_cast<int64_t>(sum);
}

onnx::Tensor Filled(onnx::ElementType type, const onnx::Shape& shape,
                    const std::function<int64_t(int64_t)>& element) {
  std::vector<int64_t> values(static_cast<size_t>(onnx::ElementCount(shape).value_or(0)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = element(static_cast<int64_t>(i));
  if (!onnx::IsFloat(type)) return onnx::FromInts(type, shape, values);
  return onnx::FromDoubles(type, shape, std::vector<double>(values.begin(), values.end()));
}

// Guesses for the elements of a needed input (a shape, axes, lengths) if the tensor has `first`'s sizes;
// `sizes` are those of all inputs.
std::vector<onnx::Tensor> GuessElements(onnx::ElementType type, const onnx::Shape& shape,
                                        const onnx::Shape& first, const std::set<int64_t>& sizes) {
  const int64_t count = onnx::ElementCount(shape).value_or(0);
  std::vector<onnx::Tensor> guesses;
  const auto add = [&](const std::function<int64_t(int64_t)>& element) {
    guesses.push_back(Filled(type, shape, element));
  };
  add([](int64_t) { return 1; });
  add([](int64_t i) { return i == 0 ? -1 : 1; });
  if (count == static_cast<int64_t>(first.size())) add([&](int64_t i) { return first[i]; });
  add([](int64_t) { return 0; });
  add([](int64_t i) { return i; });
  for (const int64_t size : std::set<int64_t>(first.begin(), first.end())) {  // equal parts of an axis
    if (count > 1 && size % count == 0) add([&](int64_t) { return size / count; });
  }
  for (auto size = sizes.rbegin(); size != sizes.rend() && guesses.size() < kMostElementGuesses; ++size)
    add([&](int64_t) { return *size; });
  return guesses;
}

}  // namespace

NodeTrial::NodeTrial(const Api& api, const Graph& graph, const GraphNode& node, uint32_t feature_level,
                     size_t* budget)
    : feature_level_(feature_level), budget_(*budget) {
  model_.opsets = graph.opsets;
  model_.graph.nodes.push_back(node.proto);
  std::set<std::string> names;
  for (const std::string& name : node.proto.inputs) {
    if (name.empty() || !names.insert(name).second) continue;
    const GraphValue& value = graph.values.at(name);
    onnx::Tensor constant;
    if (value.constant && ConstantOf(api, value, &constant).ok()) {
      model_.graph.initializers[name] = constant;
    } else {
      model_.graph.inputs.push_back(value.facts);
    }
  }
  for (const std::string& name : node.proto.outputs) {
    if (!name.empty()) model_.graph.outputs.push_back(graph.values.at(name).facts);
  }
}

Status NodeTrial::Run() {
  ANYDML_RETURN_IF_ERROR(onnx::Program::Create(model_, &program_));
  const std::vector<onnx::ValueProto>& inputs = model_.graph.inputs;
  const bool all_ranks = std::all_of(inputs.begin(), inputs.end(),
                                     [](const onnx::ValueProto& input) { return input.has_shape; });
  if (all_ranks) return TryRank(0);
  Status refused;
  for (const size_t rank : kGuessedRanks) {
    const Status status = TryRank(rank);
    if (status.ok()) return {};
    if (refused.ok() || status.code() == Code::kUnsupported) refused = status;
  }
  return refused;
}

Status NodeTrial::TryRank(size_t rank) {
  Shapes shapes;
  for (const onnx::ValueProto& input : model_.graph.inputs)
    shapes[input.name] = input.has_shape ? input.shape : onnx::Shape(rank, -1);
  return TrySizes(shapes);
}

// Guesses for sizes from the node: sizes of other tensors, attribute values, and sums of lists.
std::vector<int64_t> NodeTrial::SizesInNode() const {
  std::set<int64_t> sizes;
  for (const onnx::ValueProto& input : model_.graph.inputs) {
    sizes.insert(input.shape.begin(), input.shape.end());
    const auto rank = static_cast<int64_t>(input.shape.size());
    sizes.insert({rank, 2 * rank});  // for lists with one or two numbers per dimension
  }
  for (const auto& [name, constant] : model_.graph.initializers) {
    sizes.insert(constant.shape.begin(), constant.shape.end());
    if (constant.data.size() > kMostElementBytes) continue;
    const std::vector<int64_t> elements = ToInts(constant);
    sizes.insert(Sum(elements));
  }
  for (const onnx::Attribute& attribute : model_.graph.nodes[0].attributes) {
    const std::vector<int64_t>& list = attribute.integers;
    sizes.insert(list.begin(), list.end());
    sizes.insert(Sum(list));
    const int64_t integer = std::clamp<int64_t>(attribute.integer, 0, kMostSize);
    sizes.insert(integer);
    for (const auto& [name, constant] : model_.graph.initializers) {  // channels in groups
      for (const int64_t size : constant.shape) sizes.insert(integer * std::min(size, kMostSize));
    }
  }
  std::vector<int64_t> found;
  for (const int64_t size : sizes) {
    const bool guessed = std::find(std::begin(kGuesses), std::end(kGuesses), size) != std::end(kGuesses);
    if (size > 1 && size <= kMostSize && !guessed) found.push_back(size);
  }
  return found;
}

Status NodeTrial::TrySizes(const Shapes& shapes) {
  Shapes guessed = shapes;
  std::vector<Unknown> unknown;
  std::map<std::string, size_t> symbols;
  std::map<size_t, int64_t> others;  // known sizes, by their distance from the last dimension
  size_t groups = 0, most_rank = 0;
  for (const onnx::ValueProto& input : model_.graph.inputs) {
    onnx::Shape& shape = guessed[input.name];
    most_rank = std::max(most_rank, shape.size());
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] > 1) others.try_emplace(shape.size() - i, shape[i]);
      if (shape[i] >= 0) continue;
      const std::string symbol = i < input.symbols.size() ? input.symbols[i] : "";
      const size_t group = symbol.empty() ? groups : symbols.try_emplace(symbol, groups).first->second;
      groups = std::max(groups, group + 1);
      unknown.push_back({&shape[i], group, shape.size() - i});
    }
  }
  if (unknown.empty()) return TryElements(guessed);

  Status refused;
  size_t tries = 0;
  // True if the node can be lowered with these sizes.
  const auto fits = [&](const std::function<int64_t(const Unknown&)>& size) {
    if (++tries > kMostTries || (budget_ == 0 && tries > 1)) return false;
    for (const Unknown& each : unknown) *each.size = size(each);
    const Status status = TryElements(guessed);
    if (refused.ok() || status.code() == Code::kUnsupported) refused = status;
    return status.ok();
  };
  const std::vector<int64_t> sizes = SizesInNode();
  for (const int64_t guess : kGuesses) {
    if (fits([&](const Unknown&) { return guess; })) return {};
  }
  for (const int64_t guess : kGuesses) {
    const auto like_others = [&](const Unknown& each) {
      const auto known = others.find(each.from_end);
      return known == others.end() ? guess : known->second;
    };
    if (fits(like_others)) return {};
    // Replaces one size by another, in all inputs or in one.
    for (const int64_t size : sizes) {
      for (size_t place = 1; place <= most_rank; ++place) {
        if (fits([&](const Unknown& each) { return each.from_end == place ? size : guess; })) return {};
      }
    }
    for (const int64_t size : sizes) {
      for (size_t group = 0; group < groups; ++group) {
        if (fits([&](const Unknown& each) { return each.group == group ? size : guess; })) return {};
      }
    }
  }
  return refused;
}

Status NodeTrial::TryElements(const Shapes& shapes) {
  std::vector<onnx::ValueId> needed;
  Status status = Lower(shapes, {}, &needed);
  if (!status.ok() || needed.empty()) return status;
  const auto input = [&](onnx::ValueId id) -> const onnx::ValueProto& {
    return *program_->values()[id].declared;
  };
  onnx::Shape first;
  if (const onnx::ValueId front = program_->nodes()[0].inputs[0]; front != onnx::kAbsent) {
    const onnx::Tensor* const weights = program_->values()[front].initializer;
    first = weights != nullptr ? weights->shape : shapes.at(input(front).name);
  }
  std::set<int64_t> sizes;
  for (const auto& [name, shape] : shapes) sizes.insert(shape.begin(), shape.end());
  std::vector<std::vector<onnx::Tensor>> guesses;
  size_t most = 0;
  for (const onnx::ValueId id : needed) {
    if (onnx::PackedBytes(input(id).type, shapes.at(input(id).name)).value_or(SIZE_MAX) > kMostElementBytes)
      return InvalidArgument("the elements of a large input would have to be known");
    guesses.push_back(GuessElements(input(id).type, shapes.at(input(id).name), first, sizes));
    most = std::max(most, guesses.back().size());
  }
  Status refused(Code::kUnsupported, "it needs the elements of an input, and no guess of them fits");
  bool lowered = false;  // and refused then: that is the better reason
  for (size_t kind = 0; kind < most && (kind == 0 || budget_ > 0); ++kind) {
    Elements elements;
    for (size_t i = 0; i < needed.size(); ++i)
      elements.emplace(needed[i], guesses[i][std::min(kind, guesses[i].size() - 1)]);
    std::vector<onnx::ValueId> more;
    status = Lower(shapes, elements, &more);
    if (status.ok() && more.empty()) return {};
    if (!status.ok() && (!lowered || status.code() == Code::kUnsupported)) refused = status;
    lowered = lowered || !status.ok();
  }
  return refused;
}

Status NodeTrial::Lower(const Shapes& shapes, const Elements& elements, std::vector<onnx::ValueId>* needed) {
  if (budget_ > 0) --budget_;
  CheckingMaker maker(feature_level_);
  const auto outside = [&](onnx::ValueId id) -> std::optional<onnx::OutsideValue> {
    const onnx::ProgramValue& value = program_->values()[id];
    if (value.declared == nullptr || value.producer != onnx::kNever) return std::nullopt;
    const auto known = elements.find(id);
    return onnx::OutsideValue{value.declared->type, shapes.at(value.declared->name),
                              known == elements.end() ? nullptr : &known->second};
  };
  onnx::Part part;
  ANYDML_RETURN_IF_ERROR(onnx::Tracer(*program_, &maker, outside).Trace(0, &part));
  *needed = part.read_back;
  if (part.end == program_->nodes().size() || !needed->empty()) return {};
  return Status(Code::kUnsupported,
                part.refused.empty() ? "DirectML does not compute it for this type" : part.refused);
}

}  // namespace anydml::ort
