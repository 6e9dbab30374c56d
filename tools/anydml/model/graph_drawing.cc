#include "anydml/model/graph_drawing.h"

#include <map>
#include <set>
#include <utility>

#include "base/status.h"
#include "client/text.h"

namespace anydml::client {
namespace {

using Kind = DrawnTensor::Kind;
using Key = std::pair<Kind, uint32_t>;

std::string ListTensors(const std::vector<DrawnTensor>& tensors) {
  std::string text;
  for (const DrawnTensor& tensor : tensors) {
    if (tensor.kind == Kind::kNone) continue;
    text += StrCat(text.empty() ? "" : ", ", ForTerminal(tensor.name), " (", tensor.what, ")");
  }
  return text.empty() ? "nothing" : text;
}

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : ForTerminal(text)) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

// A label of several lines.
std::string Label(std::span<const std::string> lines) {
  std::string text;
  for (const std::string& line : lines) {
    const std::string quoted = Quoted(line);
    text += StrCat(text.empty() ? "" : "\\n", std::string_view(quoted).substr(1, quoted.size() - 2));
  }
  return StrCat("\"", text, "\"");
}

// "node 0 ... + node 1 ...", one node per line.
std::vector<std::string> Lines(const DrawnStep& step) {
  std::vector<std::string> lines;
  std::string_view rest = step.name;
  constexpr std::string_view kAnd = " + node ";
  for (size_t at = rest.find(kAnd); at != std::string_view::npos; at = rest.find(kAnd)) {
    lines.emplace_back(rest.substr(0, at));
    rest.remove_prefix(at + 3);
  }
  lines.emplace_back(rest);
  if (!step.implementation.empty()) lines.push_back(step.implementation);
  return lines;
}

// Draws one graph; `prefix` distinguishes its names from those of others.
class DotWriter {
 public:
  DotWriter(std::string prefix, std::string* text) : prefix_(std::move(prefix)), text_(*text) {}

  void Write(const DrawnGraph& graph) {
    text_ += StrCat("  subgraph cluster_", prefix_, " {\n    label=", Quoted(graph.title), ";\n");
    for (size_t i = 0; i < graph.steps.size(); ++i) {
      const std::string box = StrCat(prefix_, "_step", i);
      const std::vector<std::string> lines = Lines(graph.steps[i]);
      text_ += StrCat("    ", box, " [shape=box, label=", Label(lines), "];\n");
      for (const DrawnTensor& input : graph.steps[i].inputs) Read(input, box);
      for (const DrawnTensor& output : graph.steps[i].outputs) Wrote(output, box);
    }
    text_ += "  }\n";
  }

 private:
  void Read(const DrawnTensor& tensor, const std::string& box) {
    if (tensor.kind == Kind::kNone) return;
    const auto writers = writers_.find({tensor.kind, tensor.index});
    if (writers == writers_.end()) return Arrow(Ellipse(tensor), box, tensor);
    for (const std::string& writer : writers->second) Arrow(writer, box, tensor);
  }
  void Wrote(const DrawnTensor& tensor, const std::string& box) {
    if (tensor.kind == Kind::kNone) return;
    writers_[{tensor.kind, tensor.index}].push_back(box);
    if (tensor.kind == Kind::kOutput) Arrow(box, Ellipse(tensor), tensor);
  }

  // For tensors that no step writes, and for graph outputs.
  std::string Ellipse(const DrawnTensor& tensor) {
    constexpr const char* kNames[] = {"none", "input", "output", "between", "constant"};
    std::string name = StrCat(prefix_, "_", kNames[static_cast<size_t>(tensor.kind)], tensor.index);
    if (ellipses_.emplace(tensor.kind, tensor.index).second) {
      text_ += StrCat("    ", name, " [shape=ellipse, label=", Quoted(tensor.name), "];\n");
    }
    return name;
  }
  void Arrow(const std::string& from, const std::string& to, const DrawnTensor& tensor) {
    text_ += StrCat("    ", from, " -> ", to, " [label=", Quoted(tensor.what), "];\n");
  }

  const std::string prefix_;
  std::string& text_;
  std::map<Key, std::vector<std::string>> writers_;
  std::set<Key> ellipses_;
};

void WriteNames(const std::vector<DrawnTensor>& tensors, JsonWriter* json) {
  json->BeginArray();
  for (const DrawnTensor& tensor : tensors) {
    tensor.kind == Kind::kNone ? json->Null() : json->String(tensor.name);
  }
  json->End();
}

}  // namespace

std::string ListGraph(const DrawnGraph& graph) {
  std::string text = graph.title + "\n";
  for (size_t i = 0; i < graph.steps.size(); ++i) {
    const DrawnStep& step = graph.steps[i];
    text += StrCat("  ", ForTerminal(step.name));
    if (!step.implementation.empty()) text += StrCat(", ", step.implementation);
    text += StrCat(": ", ListTensors(step.inputs), " -> ", ListTensors(step.outputs), "\n");
  }
  return text;
}

std::string GraphsToDot(std::span<const DrawnGraph> graphs) {
  std::string text =
      "digraph graphs {\n  fontname=\"sans-serif\";\n  node [fontname=\"sans-serif\"];\n"
      "  edge [fontname=\"sans-serif\", fontsize=10];\n";
  for (size_t i = 0; i < graphs.size(); ++i) DotWriter(StrCat("g", i), &text).Write(graphs[i]);
  return text + "}\n";
}

void WriteGraph(const DrawnGraph& graph, JsonWriter* json) {
  json->BeginArray();
  for (const DrawnStep& step : graph.steps) {
    json->BeginObject();
    json->Key("name").String(step.name);
    if (!step.implementation.empty()) json->Key("implementation").String(step.implementation);
    json->Key("inputs");
    WriteNames(step.inputs, json);
    json->Key("outputs");
    WriteNames(step.outputs, json);
    json->End();
  }
  json->End();
}

}  // namespace anydml::client
