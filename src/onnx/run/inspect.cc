// Determines a model's requirements, without a device.
#include <algorithm>
#include <set>

#include <anydml.h>

#include "onnx/run/session.h"

namespace anydml::onnx {
namespace {

constexpr uint32_t kLevels[] = {0x1000, 0x2000, 0x2100, 0x3000, 0x3100, 0x4000, 0x4100, 0x5000,
                                0x5100, 0x5200, 0x6000, 0x6100, 0x6200, 0x6300, 0x6400};
// Models run as graphs.
constexpr uint32_t kGraphLevel = 0x2100;

// Checks operators and records the feature level that all of them need.
class LevelMaker final : public OperatorMaker {
 public:
  Status Make(const DML_OPERATOR_DESC& desc, Microsoft::WRL::ComPtr<IDMLOperator>*) override {
    level_ = std::max(level_, kGraphLevel);
    for (const uint32_t level : kLevels) {
      if (level < level_) continue;
      if (AnyDmlCheckOperator(&desc, level) >= 0) {
        level_ = level;
        return {};
      }
    }
    return InvalidArgument(AnyDmlGetLastErrorMessage());
  }
  // Fallbacks for devices of a lower level are not considered.
  bool has_constant_nodes() const override { return false; }
  uint32_t level() const { return level_; }

 private:
  uint32_t level_ = kLevels[0];
};

void CountOperators(const Program& program, ModelReport* report, std::set<std::string>* unknown) {
  for (const ProgramNode& node : program.nodes()) {
    const std::string domain = node.proto->domain.empty() ? "" : node.proto->domain + ".";
    const std::string name = StrCat(domain, node.proto->type.substr(0, 80), "-", node.version);
    ++report->operators[name];
    const bool control = IsHostNode(node);
    if (!control && FindOperator(node.proto->domain, node.proto->type) == nullptr &&
        unknown->insert(name).second) {
      report->unsupported.push_back(StrCat("unsupported: ", name, ": ", WhyUnknown(node.proto->domain)));
    }
    for (const auto& [attribute, body] : node.bodies) CountOperators(*body, report, unknown);
  }
}

void CountParameters(const GraphProto& graph, ModelReport* report) {
  for (const auto& [name, tensor] : graph.initializers) {
    report->parameters += static_cast<uint64_t>(tensor.count());
    report->weight_bytes += tensor.data.size();
  }
  for (const NodeProto& node : graph.nodes) {
    for (const Attribute& attribute : node.attributes) {
      if (attribute.graph) CountParameters(*attribute.graph, report);
      if (node.type == "Constant" && !attribute.tensor.data.empty()) {
        report->parameters += static_cast<uint64_t>(attribute.tensor.count());
        report->weight_bytes += attribute.tensor.data.size();
      }
    }
  }
}

// The sizes that the model declares, or those given for an input.
std::optional<Shape> ShapeOfInput(const ProgramValue& value, const std::map<std::string, Shape>& shapes) {
  if (const auto given = shapes.find(value.name); given != shapes.end()) return given->second;
  if (value.declared == nullptr || !value.declared->has_shape) return std::nullopt;
  const Shape& shape = value.declared->shape;
  return std::find(shape.begin(), shape.end(), -1) == shape.end() ? std::optional(shape) : std::nullopt;
}

std::string WhyNoShape(const ProgramValue& value) {
  const std::string name = value.name.substr(0, 80);
  if (value.declared->kind != ValueKind::kTensor) return StrCat("input \"", name, "\" is no tensor");
  return StrCat("the sizes of input \"", name, "\" are not known (--shapes gives them)");
}

// Where a part ended before the program did.
std::string WhyItEnded(const Program& program, const Part& part) {
  const std::string node = Title(program.nodes()[part.end]);
  if (part.read_back.empty()) return StrCat("the host runs ", node, ", and what it gives is known only then");
  return StrCat(node, " needs the elements of \"", program.values()[part.read_back[0]].name.substr(0, 80),
                "\", which only a run computes");
}

}  // namespace

Status InspectModel(const Model& model, const std::map<std::string, Shape>& shapes, ModelReport* report) {
  std::unique_ptr<Program> program;
  ANYDML_RETURN_IF_ERROR(Program::Create(model, &program));
  std::set<std::string> unknown;
  CountOperators(*program, report, &unknown);
  CountParameters(model.graph, report);

  std::map<ValueId, OutsideValue> inputs;
  std::string names;
  for (const ValueId id : program->inputs())
    names += StrCat(names.empty() ? "" : ", ", program->values()[id].name);
  for (const auto& [name, shape] : shapes) {
    const bool known =
        std::any_of(program->inputs().begin(), program->inputs().end(),
                    [&, &wanted = name](ValueId id) { return program->values()[id].name == wanted; });
    if (!known)
      return InvalidArgument("the model has no input \"", name, "\"; it has ",
                             names.empty() ? "none" : names);
  }
  for (const ValueId id : program->inputs()) {
    const ProgramValue& value = program->values()[id];
    const std::optional<Shape> shape = ShapeOfInput(value, shapes);
    if (!shape || value.declared->kind != ValueKind::kTensor) {
      report->names_only = WhyNoShape(value);
      return {};
    }
    if (!ElementCount(*shape))
      return InvalidArgument("input \"", value.name.substr(0, 80), "\" of ", ShapeToString(*shape),
                             " is too large");
    inputs[id] = {value.declared->type, *shape, nullptr};
  }
  if (!report->unsupported.empty()) return {};
  LevelMaker maker;
  Part part;
  Status status = Tracer(*program, &maker, [&](ValueId id) -> std::optional<OutsideValue> {
                    const auto found = inputs.find(id);
                    return found == inputs.end() ? std::nullopt : std::optional(found->second);
                  }).Trace(0, &part);
  report->feature_level = maker.level();
  report->intermediate_bytes = part.live_bytes;
  if (status.ok() && part.end < program->nodes().size()) report->names_only = WhyItEnded(*program, part);
  if (status.code() == Code::kUnsupported) {
    report->unsupported.push_back(status.message());
    return {};
  }
  return status;
}

}  // namespace anydml::onnx
