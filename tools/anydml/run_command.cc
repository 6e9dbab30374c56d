#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "anydml/c_desc.h"
#include "anydml/commands.h"
#include "anydml/element_number.h"
#include "anydml/exit_status.h"
#include "anydml/model.h"
#include "anydml/options.h"
#include "anydml/output_files.h"
#include "common/session.h"
#include "common/tensor_text.h"

namespace anydml::tools {

const char* const kRunHelp =
    R"(usage: anydml run MODEL.json [options]

Runs a model in the JSON format of Microsoft's DxDispatch tool: buffers ("resources"),
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
{ valueCount, valueStart, valueDelta }, or { sourcePath } of a .npy, .bin or .dat file.
Relative paths start at the model's folder. Comments and trailing commas are allowed.
Array lengths (AxisCount) need not be given.

Beyond that format: initial values { valueCount, randomSeed, valueMin, valueMax } are
uniformly random between the two (0 and 1 unless given), the same on every machine;
"expect" compares with values or with the .npy file sourcePath, to relativeTolerance and
absoluteTolerance; a print with "dimensions" is shaped, and shortened when it is long.

options:
)";

namespace {

// The same bits always match; so do two NaNs.
bool Matches(const ExpectCommand& command, DataType type, const std::byte* found, const std::byte* expected) {
  if (std::memcmp(found, expected, BitSize(type) / 8) == 0) return true;
  const double a = ElementToDouble(type, found), b = ElementToDouble(type, expected);
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return BitSize(type) < 64 || type == DataType::kFloat64;  // 64-bit integers may round alike
  if (std::isinf(a) || std::isinf(b)) return false;
  return std::abs(a - b) <= command.absolute_tolerance + command.relative_tolerance * std::abs(b);
}

class ModelRunner {
 public:
  ModelRunner(const Model& model, const ExecutionOptions& options) : model_(model), options_(options) {}

  Status Run() {
    ANYDML_RETURN_IF_ERROR(Session::Create(options_.session, &session_));
    for (const ModelBuffer& buffer : model_.buffers) {
      ANYDML_RETURN_IF_ERROR(session_->Upload(buffer.bytes, &buffers_.emplace_back()));
    }
    for (const ModelOperator& op : model_.operators) ANYDML_RETURN_IF_ERROR(At(op.where, Compile(op)));
    for (const ModelCommand& command : model_.commands) {
      ANYDML_RETURN_IF_ERROR(
          At(command.where, std::visit([this](const auto& action) { return Do(action); }, command.action)));
    }
    return {};
  }

 private:
  static Status At(const std::string& where, const Status& status) {
    return status.ok() ? status : Status(status.code(), where + status.message());
  }

  std::vector<DML_BUFFER_BINDING> Bind(const std::vector<ModelBinding>& bindings) const {
    std::vector<DML_BUFFER_BINDING> bound;
    for (const ModelBinding& binding : bindings) {
      DML_BUFFER_BINDING& result = bound.emplace_back();
      if (binding.buffer == ModelBinding::kAbsent) continue;
      result.Buffer = buffers_[binding.buffer].Get();
      result.Offset = binding.offset;
      result.SizeInBytes = model_.buffers[binding.buffer].bytes.size() - binding.offset;
    }
    return bound;
  }

  Status Compile(const ModelOperator& op) {
    const CDesc desc(op.desc);
    CompiledOperator& compiled = operators_.emplace_back();
    const auto flags = static_cast<DML_EXECUTION_FLAGS>(op.execution_flags);
    ANYDML_RETURN_IF_ERROR(session_->Compile(desc.get(), flags, Bind(op.owned), &compiled));
    if (options_.why) std::printf("%s: %s\n", op.name.c_str(), compiled.explanation.c_str());
    return {};
  }

  Status Do(const DispatchCommand& command) {
    ANYDML_RETURN_IF_ERROR(
        session_->Record(operators_[command.op], Bind(command.inputs), Bind(command.outputs)));
    std::string data_error;
    ANYDML_RETURN_IF_ERROR(session_->Execute(&data_error));
    if (data_error.empty()) return {};
    if (!options_.allow_out_of_range) return Status(Code::kInvalidArgument, data_error);
    std::fprintf(stderr, "anydml: note: %s\n", data_error.c_str());
    return {};
  }

  // The part of a buffer that was given values.
  Status ReadValues(size_t index, HostBuffer* values) {
    const ModelBuffer& buffer = model_.buffers[index];
    ANYDML_RETURN_IF_ERROR(session_->Read(buffers_[index].Get(), values));
    values->erase(values->begin(), values->begin() + static_cast<ptrdiff_t>(buffer.values_offset));
    values->resize(buffer.values_bytes);
    return {};
  }

  Status Do(const PrintCommand& command) {
    const ModelBuffer& buffer = model_.buffers[command.buffer];
    HostBuffer values;
    ANYDML_RETURN_IF_ERROR(ReadValues(command.buffer, &values));
    const std::string title = StrCat("Resource '", buffer.name, "'");
    if (!command.sizes.empty()) {
      std::fputs(DescribeTensor(title, Tensor(buffer, command.sizes), values).c_str(), stdout);
      return {};
    }
    const size_t element_bytes = BitSize(buffer.type) / 8;
    std::string text = title + ":";
    for (size_t i = 0; i < values.size(); i += element_bytes) {
      text += StrCat(command.verbose ? "\n"
                     : i > 0         ? ", "
                                     : " ",
                     ElementToString(buffer.type, values.data() + i));
      if (command.verbose) text += StrCat(" ", Bits({values.data() + i, element_bytes}));
    }
    std::printf("%s\n", text.c_str());
    return {};
  }

  static std::string Bits(std::span<const std::byte> element) {
    std::string text = "0x";
    for (size_t i = element.size(); i-- > 0;) {
      char digits[3];
      std::snprintf(digits, sizeof(digits), "%02X", std::to_integer<unsigned>(element[i]));
      text += digits;
    }
    return text;
  }

  static TensorDesc Tensor(const ModelBuffer& buffer, const std::vector<uint32_t>& sizes) {
    return PackedTensor(buffer.type, sizes.data(), static_cast<uint32_t>(sizes.size()));
  }

  Status Do(const WriteFileCommand& command) {
    HostBuffer values;
    ANYDML_RETURN_IF_ERROR(ReadValues(command.buffer, &values));
    OutputFiles files;
    ANYDML_RETURN_IF_ERROR(
        command.npy
            ? files.AddNpy(command.path, Tensor(model_.buffers[command.buffer], command.sizes), values)
            : files.AddRaw(command.path, values));
    return files.Commit();
  }

  Status Do(const ExpectCommand& command) {
    const ModelBuffer& buffer = model_.buffers[command.buffer];
    HostBuffer values;
    ANYDML_RETURN_IF_ERROR(ReadValues(command.buffer, &values));
    const size_t element_bytes = BitSize(buffer.type) / 8;
    size_t differences = 0, first = 0;
    for (size_t i = 0; i < values.size(); i += element_bytes) {
      if (Matches(command, buffer.type, values.data() + i, command.values.data() + i)) continue;
      if (differences++ == 0) first = i;
    }
    if (differences == 0) return {};
    return Status(Code::kFail,
                  StrCat("'", buffer.name, "': ", differences, " of ", values.size() / element_bytes,
                         " elements are not as expected; ", "element ", first / element_bytes, " is ",
                         ElementToString(buffer.type, values.data() + first), ", expected ",
                         ElementToString(buffer.type, command.values.data() + first)));
  }

  const Model& model_;
  const ExecutionOptions& options_;
  std::unique_ptr<Session> session_;
  std::vector<Microsoft::WRL::ComPtr<ID3D12Resource>> buffers_;  // one per Model::buffers
  std::vector<CompiledOperator> operators_;                      // one per Model::operators
};

}  // namespace

Status RunModelCommand(std::span<const std::string> arguments) {
  ExecutionOptions options;
  const std::vector<Option> table = options.Table();
  std::string path;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with("-")) {
      ANYDML_RETURN_IF_ERROR(ParseOption(table, arguments, &i));
    } else if (path.empty()) {
      path = arguments[i];
    } else {
      return UsageError("one model at a time; '", arguments[i], "' follows '", path, "'");
    }
  }
  if (path.empty()) return UsageError("no model was given; `anydml run --help` explains");
  ANYDML_RETURN_IF_ERROR(options.Check());
  Model model;
  ANYDML_RETURN_IF_ERROR(LoadModel(path, &model));
  return ModelRunner(model, options).Run();
}

}  // namespace anydml::tools
