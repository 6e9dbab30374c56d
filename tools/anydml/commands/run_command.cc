#include "anydml/commands/commands.h"
#include "anydml/model/model_runner.h"
#include "anydml/onnx/onnx_model.h"
#include "client/exit_status.h"

namespace anydml::client {
namespace {

constexpr Option kOptions[] = {kAllowOutsideOption, kOnnxOutputOption, kOnnxShapesOption, kOnnxRepeatOption,
                               kOnnxProfileOption};

Status Run(const Arguments& arguments, Output* output) {
  if (!arguments.operands().empty() && IsOnnxPath(arguments.operands()[0])) {
    output->document().Key("model").String(arguments.operands()[0]);
    return RunOnnxModel(arguments.operands()[0], arguments, output);
  }
  ExecutionOptions options;
  ANYDML_RETURN_IF_ERROR(ReadExecutionOptions(arguments, &options));
  std::string path;
  ANYDML_RETURN_IF_ERROR(ReadModelPath(arguments, kRunCommand, &path));
  output->document().Key("model").String(path);
  Model model;
  ANYDML_RETURN_IF_ERROR(LoadModel(path, arguments.Has(kAllowOutsideOption.name), &model));
  return RunModel(std::move(model), options, output);
}

}  // namespace

Status ReadModelPath(const Arguments& arguments, const Command& command, std::string* path) {
  const std::vector<std::string>& operands = arguments.operands();
  if (operands.empty()) {
    return UsageError("no model was given; `anydml ", command.name, " --help` explains");
  }
  if (operands.size() > 1) {
    return UsageError("one model at a time; '", operands[1], "' follows '", operands[0], "'");
  }
  *path = operands[0];
  return {};
}

const Command kRunCommand = {
    .name = "run",
    .operands = "MODEL.json | MODEL.onnx [NAME=VALUE...]",
    .summary = "run an ONNX model, or one in DxDispatch's JSON format",
    .description =
        R"(Runs an ONNX model. An input is a .npy file, a literal or random: as in `anydml op`, of the model's
type without another; it may be empty ([], random:0x3). One that is not given is random, if its
sizes are known. Outputs are printed, or written with -o:

  anydml run model.onnx x=image.npy -o scores=scores.npy
  anydml run model.onnx --shapes x=1x3x224x224 --repeat 100
  anydml run model.onnx --repeat 10 --profile trace.json

Or runs a model in the JSON format of Microsoft's DxDispatch tool: buffers ("resources"),
DirectML operators ("dispatchables"), and "commands" in their order.

  {
    "resources": {
      "in":  { "initialValuesDataType": "FLOAT32", "initialValues": [3, 1, 2] },
      "out": { "initialValuesDataType": "FLOAT32", "initialValues": { "valueCount": 3, "value": 0 } }
    },
    "dispatchables": {
      "double": {
        "type": "DML_OPERATOR_ELEMENT_WISE_IDENTITY",
        "desc": { "InputTensor":  { "DataType": "FLOAT32", "Sizes": [3] },
                  "OutputTensor": { "DataType": "FLOAT32", "Sizes": [3] },
                  "ScaleBias": { "Scale": 2, "Bias": 0 } }
      }
    },
    "commands": [
      { "type": "dispatch", "dispatchable": "double",
        "bindings": { "InputTensor": "in", "OutputTensor": "out" } },
      { "type": "print", "resource": "out" },
      { "type": "writeFile", "resource": "out", "targetPath": "out.npy" },
      { "type": "expect", "resource": "out", "values": [6, 2, 4], "absoluteTolerance": 0 }
    ]
  }

Initial values: a list ("nan", "inf", "-inf" as strings), { valueCount, value },
{ valueCount, valueStart, valueDelta }, or { sourcePath } of a .npy file or one of raw
elements (.bin, .dat). UINT4 and INT4 have two elements in a byte, the first in its lower
half; in .npy files they are uint8 and int8 values.
Paths start at the model's folder, and files outside of it are neither read nor written
unless --allow-outside is given. Comments, trailing commas, NaN and Infinity are allowed.
Array lengths (AxisCount) need not be given.

Beyond that format: initial values { valueCount, randomSeed, valueMin, valueMax } are
uniformly random between the two (0 and 1 unless given), the same on every machine;
"expect" compares with values or with the .npy file sourcePath, to relativeTolerance and
absoluteTolerance; a print with "dimensions" is shaped, and shortened when it is long.
)",
    .operand_kind = ValueKind::kFile,
    .executes = true,
    .options = kOptions,
    .run = Run,
};

}  // namespace anydml::client
