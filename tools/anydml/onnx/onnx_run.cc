#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>

#include "anydml/cli/output_files.h"
#include "anydml/cli/progress.h"
#include "anydml/cli/quantity.h"
#include "anydml/describe/why.h"
#include "anydml/onnx/onnx_model.h"
#include "anydml/onnx/onnx_profile.h"
#include "anydml/onnx/onnx_values.h"
#include "anydml/values/tensor_source.h"
#include "client/exit_status.h"
#include "client/tensor_text.h"
#include "client/text.h"

namespace anydml::client {
namespace {

using Assignments = std::map<std::string, std::string>;

Status ReadAssignments(std::span<const std::string> words, const char* form, Assignments* out) {
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return UsageError("'", word, "' is not of the form ", form);
    const std::string name = word.substr(0, equals);
    if (!out->emplace(name, word.substr(equals + 1)).second) return UsageError("'", name, "' is given twice");
  }
  return {};
}

Status ReadRepeat(const Arguments& arguments, uint32_t* out) {
  const std::string text = arguments.Value(kOnnxRepeatOption.name);
  if (text.empty()) return {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  if (error == std::errc() && end == text.data() + text.size() && *out > 0) return {};
  return UsageError("--repeat ", text, ": not a positive number");
}

Status ReadInputs(const onnx::ModelSession& session, const Arguments& arguments,
                  std::map<std::string, onnx::Tensor>* out) {
  Assignments given;
  std::map<std::string, onnx::Shape> shapes;
  ANYDML_RETURN_IF_ERROR(ReadAssignments(std::span(arguments.operands()).subspan(1),
                                         "NAME=FILE.npy or NAME=random:1x3x224x224", &given));
  ANYDML_RETURN_IF_ERROR(ParseShapes(arguments.Value(kOnnxShapesOption.name), &shapes));
  ANYDML_RETURN_IF_ERROR(CheckShapeNames(shapes, session.inputs()));
  uint64_t seed = 0;
  for (const onnx::Signature& signature : session.inputs()) {
    ANYDML_RETURN_IF_ERROR(CheckCanBeGiven(signature));
    const auto found = given.find(signature.name);
    onnx::Tensor& tensor = (*out)[signature.name];
    if (found == given.end()) {
      ANYDML_RETURN_IF_ERROR(RandomTensor(signature, shapes, ++seed, &tensor));
      continue;
    }
    NpyArray array;
    const TensorUse use = {.type = onnx::DmlType(signature.type), .emptiness = Emptiness::kAllowed};
    ANYDML_RETURN_IF_ERROR(ReadTensorSource(signature.name, found->second, &array, use));
    ANYDML_RETURN_IF_ERROR(ToOnnxTensor(array, signature, &tensor));
    given.erase(found);
  }
  if (given.empty()) return {};
  return UnknownName("input", given.begin()->first, session.inputs());
}

// Checked before anything is computed.
Status CheckOutputNames(const onnx::ModelSession& session, const Assignments& files) {
  const std::vector<onnx::Signature> outputs = session.outputs();
  for (const auto& [name, file] : files) {
    const bool known = std::any_of(outputs.begin(), outputs.end(),
                                   [&wanted = name](const auto& output) { return output.name == wanted; });
    if (!known) return UnknownName("output", name, outputs);
  }
  return {};
}

Status Deliver(const std::vector<onnx::NamedResult>& results, const Assignments& files, Output* output) {
  OutputFiles written;
  JsonWriter& json = output->document();
  json.Key("outputs").BeginArray();
  for (const onnx::NamedResult& result : results) {
    const TensorDesc desc = DescOf(result.tensor);
    const auto file = files.find(result.name);
    json.BeginObject();
    json.Key("name").String(result.name);
    if (desc.rank > 0) json.TensorShape(desc);
    if (file != files.end()) {
      const DataType type = onnx::DmlType(result.tensor.type);
      if (BitSize(type) < 8)
        return InvalidArgument("output \"", result.name, "\" cannot be written: ", Describe(result.tensor));
      ANYDML_RETURN_IF_ERROR(written.AddNpy(file->second, type, result.tensor.shape, result.tensor.data));
      json.Key("file").String(file->second);
    } else if (desc.rank == 0) {
      output->Text(StrCat(ForTerminal(result.name), ": ", Describe(result.tensor), "\n"));
    } else if (output->json()) {
      json.TensorValues(desc, result.tensor.data);
    } else {
      output->Text(DescribeTensor(result.name, desc, result.tensor.data));
    }
    json.End();
  }
  json.End();
  return written.Commit();
}

double Median(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

void WriteTimes(std::vector<double> seconds, double first, const std::vector<double>& on_device,
                Output* output) {
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  const double p95 = seconds[std::min(seconds.size() - 1, seconds.size() * 95 / 100)];
  output->Text(StrCat("first run ", FormatSeconds(first), "; ", seconds.size(), " runs: median ",
                      FormatSeconds(median), ", p95 ", FormatSeconds(p95), ", ", FormatNumber(1 / median),
                      " per second\n"));
  if (!on_device.empty())
    output->Text(
        StrCat("by the device's clock, without copies: median ", FormatSeconds(Median(on_device)), "\n"));
  JsonWriter& json = output->document();
  json.Key("times").BeginObject();
  json.Key("first").Real(first);
  json.Key("median").Real(median);
  json.Key("p95").Real(p95);
  json.Key("runs").Number(seconds.size());
  if (!on_device.empty()) json.Key("device").Real(Median(on_device));
  json.End();
}

// Progress of compilation; small models compile too fast for it to be shown.
class CompileLine {
 public:
  CompileLine(const std::string& path, size_t nodes) : path_(path), nodes_(nodes), progress_(nodes) {}
  void Show(size_t done) {
    if (nodes_ < kLarge || (done % kStep != 0 && done != nodes_)) return;
    progress_.Show(done, (done == nodes_ ? "compiling " : "reading ") + path_);
  }
  void Clear() { progress_.Clear(); }

 private:
  static constexpr size_t kLarge = 100, kStep = 16;
  const std::string path_;
  const size_t nodes_;
  Progress progress_;
};

struct Runs {
  double first = 0;
  std::vector<double> seconds;  // of the other runs
  std::vector<onnx::NamedResult> results;
};

// Once, and then `repeat` times. The first run compiles and is not part of the profile.
Status RunRepeatedly(const std::map<std::string, onnx::Tensor>& inputs, uint32_t repeat, NodeProfile* profile,
                     onnx::ModelSession* session, Runs* out) {
  using Clock = std::chrono::steady_clock;
  for (uint32_t i = 0; i <= repeat; ++i) {
    out->results.clear();
    const bool counts = profile != nullptr && i > 0;
    const auto begin = Clock::now();
    if (counts) profile->BeginRun();
    ANYDML_RETURN_IF_ERROR(session->Run(inputs, &out->results));
    if (counts) profile->EndRun();
    const double taken = std::chrono::duration<double>(Clock::now() - begin).count();
    if (i == 0) {
      out->first = taken;
    } else {
      out->seconds.push_back(taken);
    }
  }
  return {};
}

// More runs, with the device's clock, whose two timestamps would add to the other runs' time. Measures
// nothing for models that are several graphs.
Status TimeOnDevice(const std::map<std::string, onnx::Tensor>& inputs, uint32_t repeat,
                    onnx::ModelSession* session, std::vector<double>* out) {
  constexpr uint32_t kFirst = 3, kMost = 50;  // a list is replayed after three executions
  session->set_timed();
  for (uint32_t i = 0; i < kFirst + std::min(repeat, kMost); ++i) {
    std::vector<onnx::NamedResult> results;
    ANYDML_RETURN_IF_ERROR(session->Run(inputs, &results));
    const std::optional<double> seconds = session->device_seconds();
    if (!seconds) return {};
    if (i >= kFirst) out->push_back(*seconds);
  }
  return {};
}

Status WriteProfile(const NodeProfile& profile, const std::string& path, Output* output) {
  profile.Write(output);
  if (path.empty()) return {};
  OutputFiles files;
  const std::string trace = profile.Trace();
  ANYDML_RETURN_IF_ERROR(files.AddRaw(path, std::as_bytes(std::span(trace))));
  return files.Commit();
}

}  // namespace

Status RunOnnxModel(const std::string& path, const Arguments& arguments, Output* output) {
  ExecutionOptions options;
  ANYDML_RETURN_IF_ERROR(ReadExecutionOptions(arguments, &options));
  uint32_t repeat = 0;
  ANYDML_RETURN_IF_ERROR(ReadRepeat(arguments, &repeat));
  Assignments files;
  ANYDML_RETURN_IF_ERROR(ReadAssignments(arguments.Values(kOnnxOutputOption.name), "NAME=FILE.npy", &files));
  auto model = std::make_unique<onnx::Model>();
  ANYDML_RETURN_IF_ERROR(onnx::LoadModel(path, model.get()));
  const bool profiled = arguments.Has(kOnnxProfileOption.name);
  if (profiled) repeat = std::max(repeat, 1u);
  options.session.debug = repeat == 0;
  std::unique_ptr<Session> device;
  ANYDML_RETURN_IF_ERROR(Session::Create(options.session, &device));
  std::unique_ptr<onnx::ModelSession> session;
  ANYDML_RETURN_IF_ERROR(onnx::ModelSession::Create(std::move(model), device.get(), &session));
  WriteWarnings(session->model(), output);
  ANYDML_RETURN_IF_ERROR(CheckOutputNames(*session, files));
  std::map<std::string, onnx::Tensor> inputs;
  ANYDML_RETURN_IF_ERROR(ReadInputs(*session, arguments, &inputs));

  CompileLine line(path, session->node_count());
  session->set_progress([&line](size_t done) { line.Show(done); });
  std::string explanation;
  if (options.why) session->set_explain([&explanation](const std::string& lines) { explanation += lines; });
  std::optional<NodeProfile> profile;
  if (profiled) profile.emplace();
  Runs runs;
  const Status status = RunRepeatedly(inputs, repeat, profile ? &*profile : nullptr, session.get(), &runs);
  line.Clear();
  ANYDML_RETURN_IF_ERROR(status);
  if (options.why) WriteGraphWhy(explanation, output);
  ANYDML_RETURN_IF_ERROR(Deliver(runs.results, files, output));
  std::vector<double> on_device;
  if (repeat > 0 && !profiled && device->adapter().traits.RunsOnHost == 0)
    ANYDML_RETURN_IF_ERROR(TimeOnDevice(inputs, repeat, session.get(), &on_device));
  if (repeat > 0) WriteTimes(std::move(runs.seconds), runs.first, on_device, output);
  if (profile)
    ANYDML_RETURN_IF_ERROR(WriteProfile(*profile, arguments.Value(kOnnxProfileOption.name), output));
  return {};
}

}  // namespace anydml::client
