#include "ort/capability.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include <anydml.h>

#include "onnx/trace.h"

namespace anydml::ort {
namespace {

// What sizes that are not known yet may be: the same number for all, so that they agree with each other; or
// 1, which agrees with all that broadcast.
constexpr int64_t kGuesses[] = {64, 1};
// What the rank may be where it is not known: that of a scalar, of which onnxruntime says no more, to that of
// a picture.
constexpr size_t kGuessedRanks[] = {4, 3, 2, 1, 0};

// Checks operators by the rules of a feature level.
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

const onnx::OperatorRow* RowOf(const GraphNode& node) {
  return onnx::FindOperator(node.proto.domain, node.proto.type);
}

// Computed while a model is compiled: sizes, and what is made of them and constants.
class SizeArithmetic {
 public:
  explicit SizeArithmetic(const Graph& graph) : graph_(graph) {
    for (const GraphNode& node : graph.nodes) {
      if (Contains(node)) values_.insert(node.proto.outputs.begin(), node.proto.outputs.end());
    }
  }
  bool Contains(const GraphNode& node) const {
    const onnx::OperatorRow* const row = RowOf(node);
    if (row == nullptr || !node.readable || row->on_host || row->random) return false;
    if (node.proto.domain.empty() && (node.proto.type == "Shape" || node.proto.type == "Size")) return true;
    if (row->evaluate == nullptr && !row->forwards) return false;
    return std::all_of(node.proto.inputs.begin(), node.proto.inputs.end(), [&](const std::string& name) {
      return name.empty() || values_.contains(name) || graph_.values.at(name).constant;
    });
  }

 private:
  const Graph& graph_;
  std::set<std::string> values_;
};

bool IsKnownType(const GraphValue& value) {
  return value.facts.kind == onnx::ValueKind::kTensor &&
         onnx::DmlType(value.facts.type) != DataType::kUnknown;
}

// A model of one node, for which the importer can be asked.
class OneNode {
 public:
  OneNode(const Api& api, const Graph& graph, const GraphNode& node) {
    model_.opsets = graph.opsets;
    model_.graph.nodes.push_back(node.proto);
    for (const std::string& name : node.proto.inputs) {
      if (name.empty() || model_.graph.initializers.contains(name) || !names_.insert(name).second) continue;
      const GraphValue& value = graph.values.at(name);
      onnx::Tensor constant;
      if (value.constant && ConstantOf(api, value, &constant).ok()) {
        model_.graph.initializers[name] = constant;
        continue;
      }
      model_.graph.inputs.push_back(value.facts);
      has_shapes_ &= value.facts.has_shape;
      has_all_sizes_ &=
          std::find(value.facts.shape.begin(), value.facts.shape.end(), -1) == value.facts.shape.end();
    }
    for (const std::string& name : node.proto.outputs) {
      if (!name.empty()) model_.graph.outputs.push_back(graph.values.at(name).facts);
    }
  }

  bool has_shapes() const { return has_shapes_; }

  // Where ranks are not known: refused when no rank is taken, and one would fit but for the type or the
  // feature level.
  Status TryRanks(uint32_t feature_level) const {
    Status refused;
    for (const size_t rank : kGuessedRanks) {
      const Status status = Try(feature_level, kGuesses[0], rank);
      if (status.ok()) return {};
      // Other failures are the guess's.
      if (status.code() == Code::kUnsupported && refused.ok()) refused = status;
    }
    return refused;
  }
  bool has_all_sizes() const { return has_all_sizes_; }

  // Unsupported where DirectML and the host have nothing that fits.
  Status Try(uint32_t feature_level, int64_t guess, size_t guessed_rank = 0) const {
    std::unique_ptr<onnx::Program> program;
    ANYDML_RETURN_IF_ERROR(onnx::Program::Create(model_, &program));
    CheckingMaker maker(feature_level);
    const auto outside = [&](onnx::ValueId id) -> std::optional<onnx::OutsideValue> {
      const onnx::ValueProto* const declared = program->values()[id].declared;
      if (declared == nullptr || program->values()[id].producer != onnx::kNever) return std::nullopt;
      onnx::Shape shape = declared->shape;
      if (!declared->has_shape) shape.assign(guessed_rank, guess);
      std::replace(shape.begin(), shape.end(), int64_t{-1}, guess);
      return onnx::OutsideValue{declared->type, shape, nullptr};
    };
    onnx::Part part;
    ANYDML_RETURN_IF_ERROR(onnx::Tracer(*program, &maker, outside).Trace(0, &part));
    if (part.end == program->nodes().size() || !part.read_back.empty()) return {};
    return Status(Code::kUnsupported, "DirectML does not compute it for this type");
  }

 private:
  onnx::Model model_;
  std::set<std::string> names_;
  bool has_shapes_ = true;
  bool has_all_sizes_ = true;
};

std::string WhyNot(const Api& api, const Graph& graph, const GraphNode& node, const SizeArithmetic& sizes,
                   uint32_t feature_level) {
  const onnx::OperatorRow* const row = RowOf(node);
  if (row == nullptr) return "no such operator is known";
  if (!node.readable) return "it has graphs or attributes of another kind inside";
  if (row->on_host || row->random) return "its result depends on more than sizes: the host computes it";
  for (const std::vector<std::string>* const names : {&node.proto.inputs, &node.proto.outputs}) {
    for (const std::string& name : *names) {
      if (!name.empty() && !IsKnownType(graph.values.at(name)))
        return StrCat("\"", name, "\" has a type that DirectML does not have");
    }
  }
  if (sizes.Contains(node)) return "";
  const OneNode model(api, graph, node);
  if (!model.has_shapes()) return model.TryRanks(feature_level).message();
  Status status;
  for (const int64_t guess : kGuesses) {
    status = model.Try(feature_level, guess);
    if (status.ok()) return "";
    if (model.has_all_sizes()) break;
    // The guess is wrong, not the model.
    if (status.code() == Code::kInvalidArgument) return "";
  }
  return status.message();
}

// Whether it computes on what models are about: numbers, not positions.
bool IsWork(const Graph& graph, const GraphNode& node) {
  if (RowOf(node)->forwards) return false;
  const auto is_number = [&](const std::string& name) {
    if (name.empty()) return false;
    const onnx::ElementType type = graph.values.at(name).facts.type;
    return onnx::IsFloat(type) || onnx::BitsOf(type) == 8;
  };
  return std::any_of(node.proto.inputs.begin(), node.proto.inputs.end(), is_number);
}

}  // namespace

std::vector<std::string> RefusedNodes(const Api& api, const Graph& graph, uint32_t feature_level) {
  const SizeArithmetic sizes(graph);
  std::vector<std::string> refused;
  for (const GraphNode& node : graph.nodes) {
    refused.push_back(WhyNot(api, graph, node, sizes, feature_level));
  }
  return refused;
}

std::vector<std::vector<size_t>> GroupNodes(const Graph& graph, const std::vector<std::string>& refused) {
  const size_t count = graph.nodes.size();
  std::map<std::string, size_t> producers;
  std::vector<std::vector<size_t>> before(count), after(count);
  for (size_t i = 0; i < count; ++i) {
    for (const std::vector<std::string>* const names :
         {&graph.nodes[i].proto.inputs, &graph.nodes[i].captures}) {
      for (const std::string& name : *names) {
        const auto producer = producers.find(name);
        if (name.empty() || producer == producers.end()) continue;
        before[i].push_back(producer->second);
        after[producer->second].push_back(i);
      }
    }
    for (const std::string& name : graph.nodes[i].proto.outputs) producers[name] = i;
  }

  const SizeArithmetic sizes(graph);
  std::vector<bool> taken(count);
  for (size_t i = count; i-- > 0;) {
    taken[i] = refused[i].empty() &&
               (!sizes.Contains(graph.nodes[i]) ||
                std::any_of(after[i].begin(), after[i].end(), [&](size_t reader) { return taken[reader]; }));
  }
  // Ours and others take turns; a node's turn comes as soon as all that it reads is there. Nodes of one turn
  // need nothing of others in between.
  std::vector<size_t> turn(count, 0);
  std::map<size_t, std::vector<size_t>> groups;
  for (size_t i = 0; i < count; ++i) {
    for (const size_t source : before[i]) {
      turn[i] = std::max(turn[i], turn[source] + (taken[source] && !taken[i] ? 1 : 0));
    }
    if (taken[i]) groups[turn[i]].push_back(i);
  }
  std::vector<std::vector<size_t>> worthwhile;
  for (auto& [number, nodes] : groups) {
    const bool works = std::any_of(nodes.begin(), nodes.end(), [&](size_t i) {
      return !sizes.Contains(graph.nodes[i]) && IsWork(graph, graph.nodes[i]);
    });
    if (works) worthwhile.push_back(std::move(nodes));
  }
  return worthwhile;
}

}  // namespace anydml::ort
