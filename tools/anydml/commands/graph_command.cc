// A model's dispatches as one DirectML graph, before and after it is compiled.
#include <anydml.h>

#include <algorithm>

#include "anydml/commands/commands.h"
#include "anydml/describe/why.h"
#include "anydml/model/graph_drawing.h"
#include "anydml/model/model_graph.h"
#include "anydml/onnx/onnx_model.h"
#include "client/exit_status.h"
#include "client/text.h"

namespace anydml::client {
namespace {

constexpr Option kOptions[] = {
    {"--dot", "", ValueKind::kText, "print both graphs in Graphviz's language (`| dot -Tsvg -o graph.svg`)"},
    {"--why", "", ValueKind::kText, "print what was folded and fused, too"},
    kAllowOutsideOption,
    kAdapterOption,
    kFeatureLevelOption,
    kImplementationOption,
};

using Kind = DrawnTensor::Kind;

std::string Shape(const TensorDesc& tensor) {
  std::string text = StrCat(Name(tensor.type), " [");
  for (uint32_t d = 0; d < tensor.rank; ++d) text += StrCat(d == 0 ? "" : ",", tensor.sizes[d]);
  return text + "]";
}

std::string Plural(size_t count, const char* what) { return StrCat(count, " ", what, count == 1 ? "" : "s"); }

class GraphPictures {
 public:
  GraphPictures(const Model& model, const ModelGraph& graph) : model_(model), graph_(graph) {}

  DrawnGraph Before(const std::string& path) const {
    DrawnGraph drawn;
    drawn.title =
        StrCat(ForTerminal(path), " as one graph: ", Plural(graph_.nodes.size(), "node"), ", ",
               Plural(graph_.inputs.size(), "input"), ", ", Plural(graph_.outputs.size(), "output"));
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const ModelGraph::Node& node = graph_.nodes[i];
      const ModelOperator& op = model_.operators[node.op];
      DrawnStep& step = drawn.steps.emplace_back();
      step.name = StrCat("node ", i, " \"", op.name, "\" (", op.desc.schema->name, ")");
      const auto inputs = op.desc.inputs(), outputs = op.desc.outputs();
      for (size_t t = 0; t < inputs.size(); ++t) step.inputs.push_back(Draw(node.inputs[t], inputs[t]));
      for (size_t t = 0; t < outputs.size(); ++t) step.outputs.push_back(Draw(node.outputs[t], outputs[t]));
    }
    return drawn;
  }

  DrawnGraph After(const Adapter& adapter, IDMLCompiledOperator* compiled) const {
    const DML_BINDING_PROPERTIES properties = compiled->GetBindingProperties();
    const uint32_t count = AnyDmlGetStepCount(compiled);
    DrawnGraph drawn;
    drawn.title = StrCat("compiled for ", adapter.id, ": ", Plural(count, "step"), ", ",
                         properties.TemporaryResourceSize, " bytes of temporary and ",
                         properties.PersistentResourceSize, " of persistent memory");
    for (uint32_t i = 0; i < count; ++i) {
      AnyDmlStep described;
      AnyDmlGetStep(compiled, i, &described);
      DrawnStep& step = drawn.steps.emplace_back();
      step.name = described.Name;
      step.implementation = described.Implementation;
      for (uint32_t t = 0; t < described.InputCount + described.OutputCount; ++t) {
        AnyDmlStepTensor tensor;
        AnyDmlGetStepTensor(compiled, i, t, &tensor);
        (t < described.InputCount ? step.inputs : step.outputs).push_back(Draw(tensor));
      }
    }
    return drawn;
  }

 private:
  const std::string& BufferName(uint32_t value) const {
    return model_.buffers[graph_.values[value].buffer].name;
  }
  DrawnTensor Draw(uint32_t number, const TensorDesc* tensor) const {
    if (tensor == nullptr) return {};
    const ModelGraph::Value& value = graph_.values[number];
    if (value.node == ModelGraph::kNone)
      return {Kind::kInput, value.port, BufferName(number), Shape(*tensor)};
    if (value.output == ModelGraph::kNone)
      return {Kind::kBetween, number, BufferName(number), Shape(*tensor)};
    return {Kind::kOutput, value.output, BufferName(number), Shape(*tensor)};
  }
  DrawnTensor Draw(const AnyDmlStepTensor& tensor) const {
    const std::string bytes = StrCat(tensor.Bytes, " bytes");
    switch (tensor.Place) {
      case ANYDML_PLACE_INPUT:
        return {Kind::kInput, tensor.Index, BufferName(graph_.inputs[tensor.Index]), bytes};
      case ANYDML_PLACE_OUTPUT:
        return {Kind::kOutput, tensor.Index, BufferName(graph_.outputs[tensor.Index]), bytes};
      case ANYDML_PLACE_TEMPORARY:
        return {Kind::kBetween, tensor.Index, StrCat("temporary ", tensor.Index), bytes};
      case ANYDML_PLACE_CONSTANT:
        return {Kind::kConstant, tensor.Index, StrCat("constant ", tensor.Index), bytes};
      default:
        return {};
    }
  }

  const Model& model_;
  const ModelGraph& graph_;
};

Status Run(const Arguments& arguments, Output* output) {
  ExecutionOptions options;
  ANYDML_RETURN_IF_ERROR(ReadExecutionOptions(arguments, &options));
  std::string path;
  ANYDML_RETURN_IF_ERROR(ReadModelPath(arguments, kGraphCommand, &path));
  if (IsOnnxPath(path)) {
    return UsageError(path, ": graph takes models in JSON; of an ONNX model, `anydml run ", path,
                      " --why` tells what its graphs become");
  }
  JsonWriter& json = output->document();
  json.Key("model").String(path);
  Model model;
  ModelGraph graph;
  ANYDML_RETURN_IF_ERROR(LoadModel(path, arguments.Has(kAllowOutsideOption.name), &model));
  ANYDML_RETURN_IF_ERROR(MakeModelGraph(model, /*only_shown=*/false, &graph));
  if (graph.nodes.empty()) return InvalidArgument(path, ": the model dispatches nothing");
  std::unique_ptr<Session> session;
  ANYDML_RETURN_IF_ERROR(Session::Create(options.session, &session));
  CompiledOperator compiled;
  ANYDML_RETURN_IF_ERROR(CompileModelGraph(model, graph, session.get(), &compiled));

  const GraphPictures pictures(model, graph);
  const DrawnGraph graphs[] = {pictures.Before(path),
                               pictures.After(session->adapter(), compiled.compiled.Get())};
  if (arguments.Has("--dot")) {
    output->Page(GraphsToDot(graphs));
    return {};
  }
  json.Key("adapter").String(session->adapter().id);
  json.Key("nodes");
  WriteGraph(graphs[0], &json);
  json.Key("steps");
  WriteGraph(graphs[1], &json);
  const DML_BINDING_PROPERTIES properties = compiled.compiled->GetBindingProperties();
  json.Key("temporaryBytes").Number(properties.TemporaryResourceSize);
  json.Key("persistentBytes").Number(properties.PersistentResourceSize);
  output->Text(ListGraph(graphs[0]));
  if (arguments.Has("--why")) WriteGraphWhy(compiled.explanation, output);
  output->Text(ListGraph(graphs[1]));
  return {};
}

}  // namespace

const Command kGraphCommand = {
    .name = "graph",
    .operands = "MODEL.json",
    .summary = "show what a model's dispatches become as one DirectML graph",
    .description = R"(Reads a model as `anydml run` does, makes one DirectML graph of its dispatches and
compiles it, without executing anything. Shows the nodes, and the steps that are left of
them once they are folded and fused, with their implementations and the memory that they
need.

  anydml graph model.json --why
  anydml graph model.json --dot | dot -Tsvg -o graph.svg

A tensor that one dispatch writes to a buffer and another reads there flows along an edge;
it has to be read as it was written, from the same offset and with the same size. What a
buffer holds at the beginning is a graph input. What print, writeFile or expect shows, or
no dispatch reads, is a graph output.

ANYDML_GRAPH_WITHOUT=fuse,views leaves out passes, for comparing; "all" leaves the nodes as
they are.
)",
    .operand_kind = ValueKind::kFile,
    .executes = false,
    .options = kOptions,
    .run = Run,
};

}  // namespace anydml::client
