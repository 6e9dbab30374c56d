#include <filesystem>
#include <set>
#include <vector>

#include "anydml/cli/output_files.h"
#include "anydml/commands/commands.h"
#include "anydml/describe/operation.h"
#include "anydml/describe/why.h"
#include "client/c_desc.h"
#include "client/describe/desc_fields.h"
#include "client/describe/field_values.h"
#include "client/exit_status.h"
#include "client/session.h"
#include "client/tensor_text.h"

namespace anydml::client {

namespace {

constexpr Option kOptions[] = {
    {"--index-type", "TYPE", ValueKind::kDataType, "data type of index outputs (uint32, uint64)"},
};

struct OpArguments {
  const OperatorSchema* schema = nullptr;
  std::vector<FieldArgument> fields;
  ExecutionOptions execution;
  DataType index_type = DataType::kUnknown;
};

Status ReadArguments(const Arguments& arguments, OpArguments* out) {
  ANYDML_RETURN_IF_ERROR(ReadExecutionOptions(arguments, &out->execution));
  const std::string index_type = arguments.Value("--index-type");
  out->index_type = ParseDataType(index_type);
  if (!index_type.empty() && out->index_type == DataType::kUnknown) {
    return UsageError("--index-type ", index_type, ": not a data type");
  }
  std::string operator_name;
  for (const std::string& operand : arguments.operands()) {
    const size_t equals = operand.find('=');
    if (equals != std::string::npos) {
      out->fields.emplace_back(operand.substr(0, equals), operand.substr(equals + 1));
    } else if (operator_name.empty()) {
      operator_name = operand;
    } else {
      return UsageError("'", operand, "' is not of the form Field=value");
    }
  }
  if (operator_name.empty()) return UsageError("no operator was given; `anydml op --help` explains");
  return FindSchemaInAnyCase(operator_name, &out->schema);
}

Status CheckDistinct(const std::vector<OutputSlot>& outputs) {
  std::set<std::filesystem::path> paths;
  for (const OutputSlot& output : outputs) {
    if (output.path.empty()) continue;
    std::error_code error;
    // Made absolute first, because a relative path that does not exist yet would not be normalised.
    std::filesystem::path path =
        std::filesystem::weakly_canonical(std::filesystem::absolute(output.path, error), error);
    if (error) path = output.path;
    if (!paths.insert(path).second) {
      return UsageError("two outputs go to the same file ", output.path);
    }
  }
  return {};
}

// Writes files first, so that nothing is printed about a run whose files failed.
Status Deliver(const Operation& operation, const std::vector<OutputSlot>& outputs, const RunResult& result,
               Output* output) {
  OutputFiles files;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].path.empty()) continue;
    ANYDML_RETURN_IF_ERROR(
        files.AddNpy(outputs[i].path, operation.AsInFile(outputs[i].tensor), result.outputs[i]));
  }
  ANYDML_RETURN_IF_ERROR(files.Commit());
  JsonWriter& json = output->document();
  json.Key("outputs").BeginArray();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].tensor.rank == 0) continue;
    const TensorDesc tensor = operation.AsInFile(outputs[i].tensor);
    json.BeginObject();
    json.Key("name").String(outputs[i].name);
    json.TensorShape(tensor);
    if (!outputs[i].path.empty()) {
      json.Key("file").String(outputs[i].path);
    } else if (output->json()) {
      json.TensorValues(tensor, result.outputs[i]);
    } else {
      output->Text(DescribeTensor(outputs[i].name, tensor, result.outputs[i]));
    }
    json.End();
  }
  json.End();
  return {};
}

Status Run(const Arguments& arguments, Output* output) {
  OpArguments options;
  ANYDML_RETURN_IF_ERROR(ReadArguments(arguments, &options));
  output->document().Key("operator").String(options.schema->name);
  Operation operation(*options.schema);
  ANYDML_RETURN_IF_ERROR(operation.MatchFields(options.fields));
  ANYDML_RETURN_IF_ERROR(operation.LoadInputs());
  std::unique_ptr<Session> session;
  ANYDML_RETURN_IF_ERROR(Session::Create(options.execution.session, &session));
  ANYDML_RETURN_IF_ERROR(operation.Explain(operation.Describe(session->feature_level(), options.index_type)));

  const std::vector<OutputSlot> outputs = operation.Outputs();
  ANYDML_RETURN_IF_ERROR(CheckDistinct(outputs));
  std::vector<uint64_t> output_sizes;
  for (const OutputSlot& slot : outputs) output_sizes.push_back(slot.tensor.total_bytes);
  const CDesc desc(operation.desc());
  RunResult result;
  ANYDML_RETURN_IF_ERROR(
      operation.Explain(session->Run(desc.get(), operation.TakeInputData(), output_sizes, &result)));
  if (!result.data_error.empty()) {
    if (!options.execution.allow_out_of_range) return Status(Code::kInvalidArgument, result.data_error);
    output->Note(result.data_error);
    output->document().Key("note").String(result.data_error);
  }
  const std::string added = operation.description().AddedDimensions();
  if (!added.empty()) output->document().Key("addedDimensions").String(added);
  if (options.execution.why) {
    if (!added.empty()) output->Text(added + "\n");
    output->Text(result.explanation + "\n");
    WriteWhy(result.explanation, &output->document());
  }
  return Deliver(operation, outputs, result, output);
}

}  // namespace

const Command kOpCommand = {
    .name = "op",
    .operands = "OPERATOR Field=value...",
    .summary = "run one operator on files, literals or random values",
    .description = R"(Runs one operator. OPERATOR and the fields are named as in DirectML
(`anydml operators NAME` lists them):

  anydml op TOP_K1 InputTensor=in.npy Axis=1 K=5 AxisDirection=DECREASING \
      OutputValueTensor=values.npy OutputIndexTensor=indices.npy
  anydml op TOP_K1 InputTensor='[[3,1,2],[9,8,7]]:float16' Axis=1 K=2 AxisDirection=INCREASING
  anydml op TOP_K1 InputTensor=random:8x1000:float32:seed=1 Axis=1 K=3 AxisDirection=DECREASING

An input is a .npy file, a literal (nested lists, then ':' and the data type; FLOAT32
without), or random: sizes, data type, seed=, min= and max= (0 and 1 unless given;
integers include both). Several tensors of one field are separated by commas. An output
is a .npy file to write; one that is not named is printed, shortened when it is long.
After a ':' an output's data type can be given, and its sizes before that, where the
operator leaves them open (without a path it is printed):

  anydml op CAST InputTensor=in.npy OutputTensor=out.npy:float16
  anydml op CAST InputTensor='[1,2]' OutputTensor=:2:uint8

Elements of four bits (uint4, int4) are uint8 and int8 values in .npy files, one per
byte: InputTensor=in.npy:int4.

Numbers are written as they are, arrays as 1,2 or [1,2], ScaleBias as scale,bias,
enumerations by their full or short name, BOOL as true or false. Array lengths
(AxisCount) need not be given. An operator in another one is JSON, as in models, or its
name; several are a list:

  FusedActivation=ACTIVATION_RELU
  FusedActivation='{"Type": "ACTIVATION_ELU", "Alpha": 0.5}'
  ActivationDescs='[{"Type": "ACTIVATION_TANH"}, {"Type": "ACTIVATION_SIGMOID"}]'

Inputs keep their own number of dimensions:
  - Where the feature level needs more dimensions than an input has, leading 1s are
    added, and taken off the outputs again. For operators that say how many
    dimensions are meant (SCATTER_ND), inputs of different ranks are right-aligned
    with leading 1s in the same way.
  - Axis counts the dimensions of the first input; arrays such as Repeats have an element
    for each of them.
  - InputDimensionCount, IndicesDimensionCount and IndexDimensions are the inputs' own unless given.
  - A 0-d array is the tensor {1}; where all are and no axis is named, outputs are 0-d, too. Fortran order is read with strides, without copying.
)",
    .operand_kind = ValueKind::kField,
    .executes = true,
    .options = kOptions,
    .run = Run,
};

}  // namespace anydml::client
