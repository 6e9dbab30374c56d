#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <vector>

#include "anydml/c_desc.h"
#include "anydml/commands.h"
#include "anydml/exit_status.h"
#include "anydml/field_values.h"
#include "anydml/operation.h"
#include "anydml/output_files.h"
#include "anydml/suggest.h"
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
  --adapter ADAPTER       number, id or part of the name of an adapter (`anydml adapters`)
  --feature-level LEVEL   hold the device to a lower feature level, for example 2.1
  --implementation NAME   force one implementation (`anydml operators NAME`)
  --allow-out-of-range    an index out of range is not an error: that update is dropped
  --why                   print which implementation was chosen, and why not the others
)";

namespace {

struct OpArguments {
  const OperatorSchema* schema = nullptr;
  std::vector<FieldArgument> fields;
  SessionOptions session;
  DataType index_type = DataType::kUnknown;
  bool allow_out_of_range = false;
  bool why = false;
};

Status SetOption(const std::string& name, const std::string& value, OpArguments* out) {
  if (name == "--adapter") {
    out->session.adapter = value;
  } else if (name == "--implementation") {
    out->session.implementation = value;
  } else if (name == "--feature-level") {
    const FeatureLevel level = ParseFeatureLevel(value);
    if (level == 0)
      return UsageError("--feature-level ", value, ": not a feature level (1.0, 2.0, 2.1 ... 6.4)");
    out->session.feature_level = FeatureLevelName(level);
  } else {
    out->index_type = ParseDataType(value);
    if (out->index_type == DataType::kUnknown) return UsageError("--index-type ", value, ": not a data type");
  }
  return {};
}

Status ParseOption(std::span<const std::string> arguments, size_t* i, OpArguments* out) {
  constexpr std::string_view kFlags[] = {"--why", "--allow-out-of-range"};
  constexpr std::string_view kValues[] = {"--index-type", "--adapter", "--feature-level", "--implementation"};
  const std::string& argument = arguments[*i];
  if (argument == kFlags[0] || argument == kFlags[1]) {
    (argument == kFlags[0] ? out->why : out->allow_out_of_range) = true;
    return {};
  }
  const size_t equals = argument.find('=');
  const std::string name = argument.substr(0, equals);
  if (std::find(std::begin(kValues), std::end(kValues), std::string_view(name)) == std::end(kValues)) {
    std::vector<std::string_view> names(std::begin(kFlags), std::end(kFlags));
    names.insert(names.end(), std::begin(kValues), std::end(kValues));
    return UsageError("unknown option ", name, DidYouMean(name, names));
  }
  if (equals != std::string::npos) return SetOption(name, argument.substr(equals + 1), out);
  if (*i + 1 >= arguments.size()) return UsageError(name, " needs a value");
  return SetOption(name, arguments[++*i], out);
}

Status FindSchema(const std::string& name, const OperatorSchema** schema) {
  *schema = FindOperator(name);
  if (*schema != nullptr) return {};
  std::vector<std::string_view> names;
  for (const OperatorSchema& candidate : AllOperators()) names.push_back(candidate.name);
  return UsageError("there is no operator ", name, DidYouMean(name, names));
}

Status ParseArguments(std::span<const std::string> arguments, OpArguments* out) {
  std::string operator_name;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const size_t equals = argument.find('=');
    if (argument.starts_with("-")) {
      ANYDML_RETURN_IF_ERROR(ParseOption(arguments, &i, out));
    } else if (equals != std::string::npos) {
      out->fields.emplace_back(argument.substr(0, equals), argument.substr(equals + 1));
    } else if (operator_name.empty()) {
      operator_name = argument;
    } else {
      return UsageError("'", argument, "' is not of the form Field=value");
    }
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
        files.Add(outputs[i].path, operation.AsInFile(outputs[i].tensor), result.outputs[i]));
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
  ANYDML_RETURN_IF_ERROR(Session::Create(options.session, &session));
  ANYDML_RETURN_IF_ERROR(operation.Describe(session->feature_level(), options.index_type));

  const std::vector<OutputSlot> outputs = operation.Outputs();
  ANYDML_RETURN_IF_ERROR(CheckDistinct(outputs));
  std::vector<uint64_t> output_sizes;
  for (const OutputSlot& output : outputs) output_sizes.push_back(output.tensor.total_bytes);
  const CDesc desc(operation.desc());
  RunResult result;
  ANYDML_RETURN_IF_ERROR(session->Run(desc.get(), operation.TakeInputData(), output_sizes, &result));
  if (!result.data_error.empty()) {
    if (!options.allow_out_of_range) return Status(Code::kInvalidArgument, result.data_error);
    std::fprintf(stderr, "anydml: note: %s\n", result.data_error.c_str());
  }
  if (options.why) std::printf("%s\n", result.explanation.c_str());
  return Deliver(operation, outputs, result);
}

}  // namespace anydml::tools
