#include "onnx/file/check_model.h"

#include <algorithm>
#include <set>

namespace anydml::onnx {
namespace {

// More than there will be for long. Newer versions than were known when this was written are read as far as
// they can be; these are no versions.
constexpr int64_t kMostIrVersion = 1000;
constexpr int64_t kMostOpset = 1000;

bool Fits(const ValueProto& input, const Tensor& tensor) {
  if (input.kind != ValueKind::kTensor) return false;
  if (input.type != ElementType::kUndefined && input.type != tensor.type) return false;
  return !input.has_shape ||
         std::equal(input.shape.begin(), input.shape.end(), tensor.shape.begin(), tensor.shape.end(),
                    [](int64_t declared, int64_t size) { return declared < 0 || declared == size; });
}

std::string Describe(const ValueProto& input) {
  if (input.kind != ValueKind::kTensor) return "no tensor";
  return StrCat(input.has_shape ? ShapeToString(input.shape) : "any sizes", " of ", Name(input.type));
}

}  // namespace

Status CheckIrVersion(int64_t version) {
  if (version >= 0 && version <= kMostIrVersion) return {};
  return InvalidArgument("ir_version is ", version, "; 1 to ", kMostIrVersion, " are allowed");
}

Status CheckOpset(const std::string& domain, int64_t version) {
  // Others count as they like.
  const bool own = domain.empty() || domain.starts_with("ai.onnx");
  const int64_t least = own ? 1 : 0, most = own ? kMostOpset : int64_t{INT32_MAX};
  if (version >= least && version <= most) return {};
  return InvalidArgument("opset_import: version ", version, " of ",
                         domain.empty() ? "ai.onnx" : domain.substr(0, 80), "; ", least, " to ", most,
                         " are allowed");
}

Status CheckElementType(int64_t number, ElementType* out) {
  *out = static_cast<ElementType>(number);
  if (number == 0 || (static_cast<int32_t>(number) == number && IsKnown(*out))) return {};
  return InvalidArgument("element type ", number, ", which ONNX does not have");
}

void KeepLastConstants(GraphProto* graph, std::vector<std::string>* names) {
  std::set<std::string_view> known;
  std::vector<bool> replaced(graph->nodes.size());
  for (size_t i = graph->nodes.size(); i-- > 0;) {
    const NodeProto& node = graph->nodes[i];
    if (!node.domain.empty() || node.type != "Constant" || node.outputs.size() != 1) continue;
    const std::string& name = node.outputs[0];
    if (name.empty()) continue;
    replaced[i] = !known.insert(name).second;
    if (replaced[i] || graph->initializers.erase(name) > 0) names->push_back(name);
  }
  size_t index = 0;
  std::erase_if(graph->nodes, [&](const NodeProto&) { return replaced[index++]; });
}

Status CheckInitializers(const GraphProto& graph) {
  for (const ValueProto& input : graph.inputs) {
    const auto found = graph.initializers.find(input.name);
    if (found == graph.initializers.end() || Fits(input, found->second)) continue;
    return InvalidArgument("initializer \"", input.name.substr(0, 80), "\" is ",
                           ShapeToString(found->second.shape), " of ", Name(found->second.type),
                           "; the input of its name is declared as ", Describe(input));
  }
  return {};
}

}  // namespace anydml::onnx
