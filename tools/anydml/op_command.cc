#include <cstdio>
#include <filesystem>
#include <set>
#include <vector>

#include "anydml/c_desc.h"
#include "anydml/commands.h"
#include "anydml/desc_fields.h"
#include "anydml/exit_status.h"
#include "anydml/field_values.h"
#include "anydml/operation.h"
#include "anydml/options.h"
#include "anydml/output_files.h"
#include "common/session.h"
#include "common/tensor_text.h"

namespace anydml::tools {

const char* const kOpHelp =
    R"(usage: anydml op OPERATOR Field=value... [options]

Runs one operator on .npy files. OPERATOR and the fields are named as in DirectML
(`anydml operators NAME` lists them):

  anydml op TOP_K1 InputTensor=in.npy Axis=1 K=5 AxisDirection=DECREASING \
      OutputValueTensor=values.npy OutputIndexTensor=indices.npy

Tensors are files. An output without a file is printed. Numbers are written as they
are, arrays as 1,2 or [1,2], ScaleBias as scale,bias, enumerations by their full or
short name, BOOL as true or false. Array lengths (AxisCount) need not be given.

Files keep their own number of dimensions:
  - Where the feature level needs more dimensions than a file has, leading 1s are
    added, and taken off the outputs again. For operators that say how many
    dimensions are meant (SCATTER_ND), files of different ranks are right-aligned
    with leading 1s in the same way.
  - Axis counts the dimensions of the first input's file.
  - InputDimensionCount and IndicesDimensionCount are the files' own unless given.
  - A 0-d array is the tensor {1}. Fortran order is read with strides, without copying.

options:
  --index-type TYPE       data type of index outputs (uint32, uint64)
)";

namespace {

struct OpArguments {
  const OperatorSchema* schema = nullptr;
  std::vector<FieldArgument> fields;
  ExecutionOptions execution;
  DataType index_type = DataType::kUnknown;
};

Status ParseArguments(std::span<const std::string> arguments, OpArguments* out) {
  std::string operator_name, index_type;
  std::vector<Option> options = out->execution.Table();
  options.push_back({"--index-type", nullptr, &index_type});
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const size_t equals = argument.find('=');
    if (argument.starts_with("-")) {
      ANYDML_RETURN_IF_ERROR(ParseOption(options, arguments, &i));
    } else if (equals != std::string::npos) {
      out->fields.emplace_back(argument.substr(0, equals), argument.substr(equals + 1));
    } else if (operator_name.empty()) {
      operator_name = argument;
    } else {
      return UsageError("'", argument, "' is not of the form Field=value");
    }
  }
  ANYDML_RETURN_IF_ERROR(out->execution.Check());
  out->index_type = ParseDataType(index_type);
  if (!index_type.empty() && out->index_type == DataType::kUnknown) {
    return UsageError("--index-type ", index_type, ": not a data type");
  }
  if (operator_name.empty()) return UsageError("no operator was given; `anydml op --help` explains");
  return FindSchema(operator_name, &out->schema);
}

Status CheckDistinct(const std::vector<OutputSlot>& outputs) {
  std::set<std::filesystem::path> paths;
  for (const OutputSlot& output : outputs) {
    if (output.path.empty()) continue;
    std::error_code error;
    // Absolute first: a relative path that does not exist yet would stay as it is.
    std::filesystem::path path =
        std::filesystem::weakly_canonical(std::filesystem::absolute(output.path, error), error);
    if (error) path = output.path;
    if (!paths.insert(path).second) {
      return UsageError("two outputs go to the same file ", output.path);
    }
  }
  return {};
}

// Files first, so that nothing is printed about a run whose files failed.
Status Deliver(const Operation& operation, const std::vector<OutputSlot>& outputs, const RunResult& result) {
  OutputFiles files;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].path.empty()) continue;
    ANYDML_RETURN_IF_ERROR(
        files.AddNpy(outputs[i].path, operation.AsInFile(outputs[i].tensor), result.outputs[i]));
  }
  ANYDML_RETURN_IF_ERROR(files.Commit());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].path.empty() || outputs[i].tensor.rank == 0) continue;
    const TensorDesc tensor = operation.AsInFile(outputs[i].tensor);
    std::fputs(DescribeTensor(outputs[i].name, tensor, result.outputs[i]).c_str(), stdout);
  }
  return {};
}

}  // namespace

Status OpCommand(std::span<const std::string> arguments) {
  OpArguments options;
  ANYDML_RETURN_IF_ERROR(ParseArguments(arguments, &options));
  Operation operation(*options.schema);
  ANYDML_RETURN_IF_ERROR(operation.MatchFields(options.fields));
  ANYDML_RETURN_IF_ERROR(operation.LoadInputs());
  std::unique_ptr<Session> session;
  ANYDML_RETURN_IF_ERROR(Session::Create(options.execution.session, &session));
  ANYDML_RETURN_IF_ERROR(operation.Describe(session->feature_level(), options.index_type));

  const std::vector<OutputSlot> outputs = operation.Outputs();
  ANYDML_RETURN_IF_ERROR(CheckDistinct(outputs));
  std::vector<uint64_t> output_sizes;
  for (const OutputSlot& output : outputs) output_sizes.push_back(output.tensor.total_bytes);
  const CDesc desc(operation.desc());
  RunResult result;
  ANYDML_RETURN_IF_ERROR(session->Run(desc.get(), operation.TakeInputData(), output_sizes, &result));
  if (!result.data_error.empty()) {
    if (!options.execution.allow_out_of_range) return Status(Code::kInvalidArgument, result.data_error);
    std::fprintf(stderr, "anydml: note: %s\n", result.data_error.c_str());
  }
  if (options.execution.why) std::printf("%s\n", result.explanation.c_str());
  return Deliver(operation, outputs, result);
}

}  // namespace anydml::tools
