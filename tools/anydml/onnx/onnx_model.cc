#include "anydml/onnx/onnx_model.h"

#include "anydml/cli/quantity.h"
#include "anydml/onnx/onnx_values.h"
#include "client/exit_status.h"
#include "client/text.h"

namespace anydml::client {
namespace {

void WriteReport(const onnx::Model& model, const onnx::ModelReport& report, Output* output) {
  JsonWriter& json = output->document();
  json.Key("producer").String(model.producer);
  json.Key("operators").BeginObject();
  for (const auto& [name, count] : report.operators) {
    output->Text(StrCat("  ", ForTerminal(name), ": ", count, "\n"));
    json.Key(name).Number(count);
  }
  json.End();
  output->Text(StrCat("parameters: ", FormatCount(static_cast<double>(report.parameters)), ", ",
                      FormatBytes(static_cast<double>(report.weight_bytes)), "\n"));
  json.Key("parameters").Number(report.parameters);
  json.Key("weightBytes").Number(report.weight_bytes);
  if (!report.names_only.empty()) {
    output->Text(StrCat("only operators' names were checked: ", ForTerminal(report.names_only), "\n"));
    json.Key("namesOnly").String(report.names_only);
  } else if (report.unsupported.empty()) {
    output->Text(StrCat("accepted from feature level ", FeatureLevelName(report.feature_level), " on\n"));
    json.Key("lowestFeatureLevel").String(FeatureLevelName(report.feature_level));
    const uint64_t bytes = report.weight_bytes + report.intermediate_bytes;
    output->Text(StrCat("memory: ", FormatBytes(static_cast<double>(bytes)), ", of which ",
                        FormatBytes(static_cast<double>(report.intermediate_bytes)),
                        " are intermediate tensors, at most\n"));
    json.Key("intermediateBytes").Number(report.intermediate_bytes);
  }
  json.Key("unsupported").BeginArray();
  for (const std::string& sentence : report.unsupported) {
    output->Text(StrCat(output->Paint(Style::kRed, ForTerminal(sentence)), "\n"));
    json.String(sentence);
  }
  json.End();
}

}  // namespace

void WriteWarnings(const onnx::Model& model, Output* output) {
  output->document().Key("warnings").BeginArray();
  for (const std::string& warning : model.warnings) {
    if (!output->json()) output->Note(ForTerminal(warning));
    output->document().String(warning);
  }
  output->document().End();
}

bool IsOnnxPath(const std::string& path) { return path.ends_with(".onnx"); }

Status CheckOnnxModel(const std::string& path, const Arguments& arguments, Output* output) {
  std::map<std::string, onnx::Shape> shapes;
  ANYDML_RETURN_IF_ERROR(ParseShapes(arguments.Value(kOnnxShapesOption.name), &shapes));
  onnx::Model model;
  ANYDML_RETURN_IF_ERROR(onnx::LoadModel(path, &model));
  onnx::ModelReport report;
  ANYDML_RETURN_IF_ERROR(onnx::InspectModel(model, shapes, &report));
  output->Text(StrCat(path, ", IR version ", model.ir_version, ", by ", ForTerminal(model.producer), ":\n"));
  WriteWarnings(model, output);
  WriteReport(model, report, output);
  output->document().Key("valid").Bool(report.unsupported.empty());
  if (report.unsupported.empty()) return {};
  return Status(Code::kUnsupported,
                StrCat(path, ": ", report.unsupported.size(), " operators are not supported"));
}

}  // namespace anydml::client
