// Checks whether a model is valid by the schema's and the operators' rules, without a device.
#include <vector>

#include "anydml/commands/commands.h"
#include "anydml/model/model.h"
#include "anydml/onnx/onnx_model.h"
#include "client/c_desc.h"
#include "client/describe/operator_facts.h"
#include "client/exit_status.h"
#include "client/text.h"

namespace anydml::client {
namespace {

constexpr Option kOptions[] = {
    {"--feature-level", "LEVEL", ValueKind::kFeatureLevel,
     "the feature level to check for (6.4, the highest, unless given)"},
    kAllowOutsideOption,
    kOnnxShapesOption,
};

// The lowest feature level that accepts it; 0 if none does.
FeatureLevel LowestLevel(const DML_OPERATOR_DESC& desc) {
  for (const EnumMember& level : FindEnum("DML_FEATURE_LEVEL")->members) {
    if (CheckOperator(desc, level.value).ok()) return level.value;
  }
  return 0;
}

class ModelChecker {
 public:
  ModelChecker(FeatureLevel level, Output* output) : level_(level), output_(*output) {}

  void Check(const ModelOperator& op) {
    const CDesc c_desc(op.desc);
    const Status status = CheckOperator(c_desc.get(), level_);
    const FeatureLevel lowest = LowestLevel(c_desc.get());
    if (!status.ok()) ++invalid_;

    std::string line = StrCat("  ", ForTerminal(op.name), " (", op.desc.schema->name, "): ");
    line += status.ok() ? output_.Paint(Style::kGreen, "valid") : output_.Paint(Style::kRed, "not valid");
    if (lowest != 0) line += StrCat(", accepted from feature level ", FeatureLevelName(lowest), " on");
    if (!status.ok()) line += StrCat("\n    ", ForTerminal(op.where + status.message()));
    output_.Text(line + "\n");

    JsonWriter& json = output_.document();
    json.BeginObject();
    json.Key("name").String(op.name);
    json.Key("operator").String(op.desc.schema->name);
    json.Key("valid").Bool(status.ok());
    json.Key("lowestFeatureLevel");
    lowest != 0 ? json.String(FeatureLevelName(lowest)) : json.Null();
    if (!status.ok()) json.Key("reason").String(op.where + status.message());
    json.End();
  }

  size_t invalid() const { return invalid_; }

 private:
  const FeatureLevel level_;
  Output& output_;
  size_t invalid_ = 0;
};

Status Run(const Arguments& arguments, Output* output) {
  FeatureLevel level = 0;
  ANYDML_RETURN_IF_ERROR(ReadFeatureLevel(arguments, &level));
  if (level == 0) level = kLatestFeatureLevel;
  std::string path;
  ANYDML_RETURN_IF_ERROR(ReadModelPath(arguments, kCheckCommand, &path));
  JsonWriter& json = output->document();
  json.Key("model").String(path);
  if (IsOnnxPath(path)) return CheckOnnxModel(path, arguments, output);
  json.Key("featureLevel").String(FeatureLevelName(level));
  Model model;
  if (Status status = LoadModel(path, arguments.Has(kAllowOutsideOption.name), &model); !status.ok()) {
    json.Key("valid").Bool(false);
    return status;
  }
  ModelChecker checker(level, output);
  output->Text(StrCat(path, ", at feature level ", FeatureLevelName(level), ":\n"));
  json.Key("dispatchables").BeginArray();
  for (const ModelOperator& op : model.operators) checker.Check(op);
  json.End();
  json.Key("valid").Bool(checker.invalid() == 0);
  if (checker.invalid() == 0) {
    output->Text(StrCat("the model is ", output->Paint(Style::kGreen, "valid"), "\n"));
    return {};
  }
  return InvalidArgument(path, ": ", checker.invalid(), " of ", model.operators.size(),
                         " operators are not valid at feature level ", FeatureLevelName(level));
}

}  // namespace

const Command kCheckCommand = {
    .name = "check",
    .operands = "MODEL.json | MODEL.onnx",
    .summary = "tell whether a model is valid, and from which feature level on",
    .description = R"(Of an ONNX model: its operators, those that are not supported with the reason, the
feature level that it needs, its parameters and their bytes.

Otherwise reads a model as `anydml run` does, with the files that it names, and checks every
operator's description. Says whether it is valid, why not, and the lowest feature level
that accepts each operator as it is written. Nothing is executed and no device is
needed.

  anydml check model.json --feature-level 2.1
  anydml check model.json --json | jq -r '.dispatchables[] | .name, .lowestFeatureLevel'

Exit code 0: valid, 1: not valid, 3: the model needs what is not supported (shaders,
serialized graphs, images; of an ONNX model an operator).
)",
    .operand_kind = ValueKind::kFile,
    .executes = false,
    .options = kOptions,
    .run = Run,
};

}  // namespace anydml::client
