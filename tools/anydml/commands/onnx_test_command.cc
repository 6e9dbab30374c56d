// ONNX's backend tests: folders with a model and data sets of inputs and expected outputs.
#include <algorithm>
#include <filesystem>

#include "anydml/cli/output_files.h"
#include "anydml/cli/progress.h"
#include "anydml/commands/commands.h"
#include "anydml/onnx/onnx_values.h"
#include "client/exit_status.h"
#include "client/text.h"
#include "onnx/host/random.h"

namespace anydml::client {
namespace {

namespace fs = std::filesystem;

constexpr Option kOptions[] = {
    {"--json", "FILE", ValueKind::kFile, "also write every test's result to a file, as JSON"},
};

struct Counts {
  size_t passed = 0, failed = 0, skipped = 0;
};

// A folder with a model, or those in it, in order.
std::vector<fs::path> FindTests(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "model.onnx", error)) return {folder};
  std::vector<fs::path> tests;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (fs::exists(entry.path() / "model.onnx", error)) tests.push_back(entry.path());
  }
  std::sort(tests.begin(), tests.end());
  return tests;
}

class Tester {
 public:
  Tester(const SessionOptions& options, Output* output) : options_(options), output_(*output) {
    json_.BeginObject();
    json_.Key("tests").BeginArray();
  }

  Status Run(const fs::path& folder, Progress* progress) {
    // A removed device is of no use to the tests after it.
    if (!device_ || device_->removed()) ANYDML_RETURN_IF_ERROR(Session::Create(options_, &device_));
    const Status status = RunTest(folder);
    if (!status.ok()) progress->Clear();
    if (!status.ok()) device_->Discard();
    const bool skipped = status.code() == Code::kUnsupported;
    status.ok() ? ++counts_.passed : skipped ? ++counts_.skipped : ++counts_.failed;
    const char* const word = status.ok() ? "passed" : skipped ? "skipped" : "failed";
    json_.BeginObject();
    json_.Key("test").String(folder.filename().string());
    json_.Key("result").String(word);
    if (!status.ok()) {
      json_.Key("reason").String(status.message());
      const std::string painted = output_.Paint(skipped ? Style::kYellow : Style::kRed, word);
      output_.Text(
          StrCat(painted, " ", folder.filename().string(), ": ", ForTerminal(status.message()), "\n"));
    }
    json_.End();
    return {};
  }

  const Counts& counts() const { return counts_; }

  // After the last test.
  std::string TakeJson() {
    json_.End();
    json_.Key("passed").Number(counts_.passed);
    json_.Key("failed").Number(counts_.failed);
    json_.Key("skipped").Number(counts_.skipped);
    json_.End();
    return json_.text() + "\n";
  }

 private:
  Status RunTest(const fs::path& folder) {
    auto model = std::make_unique<onnx::Model>();
    ANYDML_RETURN_IF_ERROR(onnx::LoadModel((folder / "model.onnx").string(), model.get()));
    for (const auto* values : {&model->graph.inputs, &model->graph.outputs}) {
      for (const onnx::ValueProto& value : *values) {
        if (value.kind == onnx::ValueKind::kTensor && onnx::DmlType(value.type) == DataType::kUnknown) {
          return onnx::Unsupported("unsupported: \"", value.name, "\" is of ", onnx::Name(value.type));
        }
      }
    }
    if (onnx::DrawsNumbers(model->graph)) return onnx::Unsupported("unsupported: what it gives is random");
    std::unique_ptr<onnx::ModelSession> session;
    ANYDML_RETURN_IF_ERROR(onnx::ModelSession::Create(std::move(model), device_.get(), &session));
    for (size_t set = 0;; ++set) {
      const fs::path data = folder / StrCat("test_data_set_", set);
      std::error_code error;
      if (!fs::is_directory(data, error)) return set > 0 ? Status() : InvalidArgument("it has no data");
      ANYDML_RETURN_IF_ERROR(RunSet(data, session.get()));
    }
  }

  // Files are in the order of the graph's inputs (outputs), which say what is in them.
  static Status ReadValues(const fs::path& data, const char* prefix,
                           const std::vector<onnx::ValueProto>& declared,
                           std::vector<onnx::RuntimeValue>* out) {
    for (size_t i = 0; i < declared.size(); ++i) {
      const fs::path file = data / StrCat(prefix, i, ".pb");
      std::error_code error;
      if (!fs::exists(file, error)) break;
      onnx::RuntimeValue& value = out->emplace_back();
      value.kind = onnx::RuntimeValue::Kind::kNothing;
      if (fs::file_size(file, error) == 0) continue;  // all defaults: nothing
      onnx::Blob blob;
      ANYDML_RETURN_IF_ERROR(onnx::MapFile(file.string(), &blob));
      ANYDML_RETURN_IF_ERROR(onnx::ReadValue(blob, declared[i].kind, &value));
    }
    return {};
  }

  static std::string Compare(const onnx::RuntimeValue& actual, const onnx::RuntimeValue& expected) {
    if (actual.kind != expected.kind || actual.elements.size() != expected.elements.size())
      return "it is of another kind";
    if (expected.host) return Difference(*actual.host, *expected.host, Tolerance());
    for (size_t i = 0; i < expected.elements.size(); ++i) {
      const std::string wrong = Compare(actual.elements[i], expected.elements[i]);
      if (!wrong.empty()) return StrCat("number ", i, " of the sequence: ", wrong);
    }
    return "";
  }

  static Status RunSet(const fs::path& data, onnx::ModelSession* session) {
    const onnx::GraphProto& graph = session->model().graph;
    std::vector<onnx::RuntimeValue> inputs, expected;
    ANYDML_RETURN_IF_ERROR(ReadValues(data, "input_", graph.inputs, &inputs));
    ANYDML_RETURN_IF_ERROR(ReadValues(data, "output_", graph.outputs, &expected));
    std::map<std::string, onnx::RuntimeValue> given;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!graph.initializers.contains(graph.inputs[i].name)) given[graph.inputs[i].name] = inputs[i];
    }
    std::vector<onnx::NamedValue> results;
    ANYDML_RETURN_IF_ERROR(session->Run(given, &results));
    if (results.size() < expected.size()) return InvalidArgument("it has ", results.size(), " outputs");
    for (size_t i = 0; i < expected.size(); ++i) {
      const std::string wrong = Compare(results[i].value, expected[i]);
      if (!wrong.empty()) return InvalidArgument("output \"", results[i].name, "\": ", wrong);
    }
    return {};
  }

  const SessionOptions options_;
  Output& output_;
  std::unique_ptr<Session> device_;
  Counts counts_;
  JsonWriter json_;
};

Status Run(const Arguments& arguments, Output* output) {
  ExecutionOptions options;
  ANYDML_RETURN_IF_ERROR(ReadExecutionOptions(arguments, &options));
  std::vector<fs::path> tests;
  for (const std::string& folder : arguments.operands()) {
    const std::vector<fs::path> found = FindTests(folder);
    if (found.empty()) return UsageError(folder, ": there is no folder with a model.onnx");
    tests.insert(tests.end(), found.begin(), found.end());
  }
  if (tests.empty()) return UsageError("no folder was given; `anydml onnx-test --help` explains");
  Tester tester(options.session, output);
  Progress progress(tests.size());
  for (size_t i = 0; i < tests.size(); ++i) {
    progress.Show(i, tests[i].filename().string());
    ANYDML_RETURN_IF_ERROR(tester.Run(tests[i], &progress));
  }
  progress.Clear();
  if (const std::string path = arguments.Value(kOptions[0].name); !path.empty()) {
    OutputFiles files;
    const std::string json = tester.TakeJson();
    ANYDML_RETURN_IF_ERROR(files.AddRaw(path, std::as_bytes(std::span(json))));
    ANYDML_RETURN_IF_ERROR(files.Commit());
  }
  const Counts& counts = tester.counts();
  const std::string summary =
      StrCat(counts.passed, " passed, ", counts.failed, " failed, ", counts.skipped, " skipped");
  output->Text(summary + "\n");
  return counts.failed == 0 ? Status() : InvalidArgument(summary);
}

}  // namespace

const Command kOnnxTestCommand = {
    .name = "onnx-test",
    .operands = "FOLDER...",
    .summary = "run ONNX's backend tests",
    .description =
        R"(Runs folders of ONNX's backend tests: model.onnx, and test_data_set_N with input_i.pb and
output_i.pb. A folder may be a test or hold many:

  anydml onnx-test /usr/share/libonnx-testdata/data/node

Prints a line for each test that is not passed, with the reason. Floating-point numbers
may differ by 1e-3 of the expected value and 1e-7. A test with an operator or type that
is not supported is skipped. Exit code 1: one failed.
)",
    .operand_kind = ValueKind::kFile,
    .executes = true,
    .options = kOptions,
    .run = Run,
};

}  // namespace anydml::client
