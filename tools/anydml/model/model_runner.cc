#include "anydml/model/model_runner.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "anydml/cli/output_files.h"
#include "anydml/describe/why.h"
#include "anydml/model/model_device.h"
#include "client/packed_elements.h"
#include "client/session.h"
#include "client/tensor_text.h"
#include "client/text.h"
#include "client/values/element_number.h"

namespace anydml::client {
namespace {

// The distance of two numbers in steps to the next representable one.
template <typename Bits>
uint64_t UlpsApart(const std::byte* a, const std::byte* b) {
  const auto place = [](const std::byte* element) {
    Bits bits;
    std::memcpy(&bits, element, sizeof(bits));
    constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
    const auto magnitude = static_cast<int64_t>(bits & static_cast<Bits>(kSign - 1));
    return (bits & kSign) != 0 ? -magnitude : magnitude;
  };
  return static_cast<uint64_t>(std::abs(place(a) - place(b)));
}

bool WithinUlps(DataType type, const std::byte* a, const std::byte* b, uint32_t ulps) {
  if (type == DataType::kFloat32) return UlpsApart<uint32_t>(a, b) <= ulps;
  return type == DataType::kFloat16 && UlpsApart<uint16_t>(a, b) <= ulps;
}

// Equal bits always match, and so do two NaNs.
bool Matches(const ExpectCommand& command, DataType type, const std::byte* found, uint64_t index) {
  const std::byte* const expected = command.values.data();
  const uint64_t bytes = BitSize(type) / 8;  // 0 for 4-bit types, which are compared as numbers
  if (bytes > 0 && std::memcmp(found + index * bytes, expected + index * bytes, bytes) == 0) return true;
  const double a = ElementToDouble(type, found, index), b = ElementToDouble(type, expected, index);
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b)
    return BitSize(type) < 64 || type == DataType::kFloat64;  // for 64-bit integers the conversion
                                                              // may have rounded
  if (!command.exact.empty() && command.exact[index]) return false;
  // The largest number is one unit from infinity.
  if (WithinUlps(type, found + index * bytes, expected + index * bytes, command.ulps)) return true;
  if (std::isinf(a) || std::isinf(b)) return false;
  return std::abs(a - b) <= command.absolute_tolerance + command.relative_tolerance * std::abs(b);
}

class ModelRunner {
 public:
  ModelRunner(Session* session, ModelOnDevice* on_device, const ExecutionOptions& options, Output* output)
      : session_(session),
        on_device_(on_device),
        model_(on_device->model()),
        options_(options),
        output_(*output),
        json_(output->document()) {}

  Status Run() {
    ANYDML_RETURN_IF_ERROR(on_device_->Prepare());
    json_.Key("dispatchables").BeginArray();
    for (size_t i = 0; i < model_.operators.size(); ++i) Describe(i);
    json_.End();
    json_.Key("commands").BeginArray();
    for (const ModelCommand& command : model_.commands) {
      json_.BeginObject();
      ANYDML_RETURN_IF_ERROR(
          At(command.where, std::visit([this](const auto& action) { return Do(action); }, command.action)));
      json_.End();
    }
    json_.End();
    return {};
  }

  // The commands that are not dispatches.
  Status RunAsGraph() {
    ANYDML_RETURN_IF_ERROR(on_device_->PrepareAsGraph());
    ANYDML_RETURN_IF_ERROR(on_device_->RecordGraph());
    ANYDML_RETURN_IF_ERROR(ExecuteRecorded());
    json_.Key("commands").BeginArray();
    for (const ModelCommand& command : model_.commands) {
      if (std::holds_alternative<DispatchCommand>(command.action)) continue;
      json_.BeginObject();
      ANYDML_RETURN_IF_ERROR(
          At(command.where, std::visit([this](const auto& action) { return Do(action); }, command.action)));
      json_.End();
    }
    json_.End();
    return {};
  }

 private:
  void Describe(size_t index) {
    const ModelOperator& op = model_.operators[index];
    const std::string& explanation = on_device_->op(index).explanation;
    json_.BeginObject();
    json_.Key("name").String(op.name);
    json_.Key("operator").String(op.desc.schema->name);
    if (options_.why) {
      output_.Text(StrCat(ForTerminal(op.name), ": ", explanation, "\n"));
      WriteWhy(explanation, &json_);
    }
    json_.End();
  }

  Status Do(const DispatchCommand& command) {
    json_.Key("type").String("dispatch");
    json_.Key("dispatchable").String(model_.operators[command.op].name);
    ANYDML_RETURN_IF_ERROR(on_device_->Record(command));
    return ExecuteRecorded();
  }

  Status ExecuteRecorded() {
    std::string data_error;
    ANYDML_RETURN_IF_ERROR(session_->Execute(&data_error));
    if (data_error.empty()) return {};
    if (!options_.allow_out_of_range) return Status(Code::kInvalidArgument, data_error);
    output_.Note(data_error);
    json_.Key("note").String(data_error);
    return {};
  }

  // The part of a buffer with initial values.
  Status ReadValues(size_t index, HostBuffer* values) {
    const ModelBuffer& buffer = model_.buffers[index];
    ANYDML_RETURN_IF_ERROR(session_->Read(on_device_->buffer(index), values));
    values->erase(values->begin(), values->begin() + static_cast<ptrdiff_t>(buffer.values_offset));
    values->resize(buffer.values_bytes);
    return {};
  }

  void Begin(const char* type, size_t buffer) {
    json_.Key("type").String(type);
    json_.Key("resource").String(model_.buffers[buffer].name);
  }

  Status Do(const PrintCommand& command) {
    const ModelBuffer& buffer = model_.buffers[command.buffer];
    Begin("print", command.buffer);
    HostBuffer values;
    ANYDML_RETURN_IF_ERROR(ReadValues(command.buffer, &values));
    const TensorDesc tensor = Tensor(buffer, command.sizes.empty() ? buffer.sizes : command.sizes);
    const std::string title = StrCat("Resource '", ForTerminal(buffer.name), "'");
    if (output_.json()) {
      json_.TensorShape(tensor);
      json_.TensorValues(tensor, values);
    } else if (!command.sizes.empty()) {
      output_.Text(DescribeTensor(title, tensor, values));
    } else {
      output_.Text(
          StrCat(title, ":", command.verbose ? "\n" : " ", Row(buffer, values, command.verbose), "\n"));
    }
    return {};
  }

  // All values on one line; verbose: a line each, with its index and its bits.
  static std::string Row(const ModelBuffer& buffer, const HostBuffer& values, bool verbose) {
    std::string text;
    for (uint64_t i = 0; i < buffer.value_count(); ++i) {
      const std::string element = ElementToString(buffer.type, values.data(), i);
      if (!text.empty()) text += verbose ? "\n" : ", ";
      text += verbose ? StrCat("[", i, "] ", element, " (", Bits(buffer.type, values, i), ")") : element;
    }
    return text;
  }

  static std::string Bits(DataType type, const HostBuffer& values, uint64_t index) {
    std::string text = "0x";
    constexpr const char* kDigits = "0123456789ABCDEF";
    if (IsFourBits(type)) return text + kDigits[FourBits(type, values.data(), index) & 15];
    const uint64_t bytes = BitSize(type) / 8;
    for (uint64_t i = bytes; i-- > 0;) {
      const auto byte = std::to_integer<unsigned>(values[index * bytes + i]);
      text += {kDigits[byte >> 4], kDigits[byte & 15]};
    }
    return text;
  }

  static TensorDesc Tensor(const ModelBuffer& buffer, const std::vector<uint32_t>& sizes) {
    return PackedTensor(buffer.type, sizes.data(), static_cast<uint32_t>(sizes.size()));
  }

  Status Do(const WriteFileCommand& command) {
    Begin("writeFile", command.buffer);
    json_.Key("file").String(command.path);
    HostBuffer values;
    ANYDML_RETURN_IF_ERROR(ReadValues(command.buffer, &values));
    std::error_code ignored;  // opening the file reports it
    std::filesystem::create_directories(std::filesystem::path(command.path).parent_path(), ignored);
    OutputFiles files;
    ANYDML_RETURN_IF_ERROR(
        command.npy
            ? files.AddNpy(command.path, Tensor(model_.buffers[command.buffer], command.sizes), values)
            : files.AddRaw(command.path, values));
    return files.Commit();
  }

  Status Do(const ExpectCommand& command) {
    const ModelBuffer& buffer = model_.buffers[command.buffer];
    Begin("expect", command.buffer);
    HostBuffer values;
    ANYDML_RETURN_IF_ERROR(ReadValues(command.buffer, &values));
    uint64_t differences = 0, first = 0;
    for (uint64_t i = 0; i < buffer.value_count(); ++i) {
      if (Matches(command, buffer.type, values.data(), i)) continue;
      if (differences++ == 0) first = i;
    }
    json_.Key("differences").Number(differences);
    if (differences == 0) return {};
    return Status(Code::kFail,
                  StrCat("'", ForTerminal(buffer.name), "': ", differences, " of ", buffer.value_count(),
                         " elements are not as expected; element ", first, " is ",
                         ElementToString(buffer.type, values.data(), first), ", expected ",
                         ElementToString(buffer.type, command.values.data(), first)));
  }

  Session* const session_;
  ModelOnDevice* const on_device_;
  const Model& model_;
  const ExecutionOptions& options_;
  Output& output_;
  JsonWriter& json_;
};

}  // namespace

Status RunModel(Model model, const ExecutionOptions& options, Output* output) {
  std::unique_ptr<Session> session;
  ANYDML_RETURN_IF_ERROR(Session::Create(options.session, &session));
  ModelOnDevice on_device(std::move(model), session.get());
  return ModelRunner(session.get(), &on_device, options, output).Run();
}

Status RunModelAsGraph(Model model, const ExecutionOptions& options) {
  std::unique_ptr<Session> session;
  ANYDML_RETURN_IF_ERROR(Session::Create(options.session, &session));
  ModelOnDevice on_device(std::move(model), session.get());
  Output quiet(/*json=*/true, /*quiet=*/true);
  return At("as one graph: ", ModelRunner(session.get(), &on_device, options, &quiet).RunAsGraph());
}

}  // namespace anydml::client
