#include <anydml.h>
#include <sched.h>

#include <charconv>
#include <cstdlib>
#include <ctime>

#include "anydml/bench/bench_runner.h"
#include "anydml/bench/html_report.h"
#include "anydml/cli/output_files.h"
#include "anydml/cli/quantity.h"
#include "anydml/commands/commands.h"
#include "anydml/onnx/onnx_model.h"
#include "client/describe/desc_fields.h"
#include "client/describe/field_values.h"
#include "client/exit_status.h"

namespace anydml::client {
namespace {

constexpr Option kOptions[] = {
    {"--iterations", "N", ValueKind::kText, "time N executions (default: as many as --seconds allows)"},
    {"--seconds", "S", ValueKind::kText, "stop after S seconds of each case (default: 1)"},
    {"--warm-up", "N", ValueKind::kText, "first execute it N times untimed (default: 5)"},
    {"--compare", "ADAPTERS", ValueKind::kAdapter, "time on several adapters: cpu,cuda"},
    {"--index-type", "TYPE", ValueKind::kDataType, "data type of index outputs (uint32, uint64)"},
    {"--csv", "", ValueKind::kText, "print comma-separated values instead of a table"},
    {"--report", "FILE", ValueKind::kFile, "also write an HTML page with charts"},
    {"--peers", "FILE", ValueKind::kFile, "add the records of `./dev bench --json FILE` to the page"},
    kAllowOutsideOption,
};

// With more iterations, the samples would fill the memory.
constexpr uint64_t kMaxIterations = 10'000'000;
constexpr double kMaxSeconds = 86400;

// Reads an option's number between two bounds; leaves it unchanged if the option is not given.
template <typename T>
Status ReadNumber(const Arguments& arguments, const char* option, T low, T high, T* out) {
  if (!arguments.Has(option)) return {};
  const std::string text = arguments.Value(option);
  const char* const end = text.data() + text.size();
  T value{};
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && value >= low && value <= high) {
    *out = value;
    return {};
  }
  return UsageError(option, " is ", text, "; it must be a number from ", low, " to ", high);
}

Status ReadWhat(const Arguments& arguments, BenchOptions* out) {
  std::string name;
  FieldArguments fields;
  for (const std::string& operand : arguments.operands()) {
    const size_t equals = operand.find('=');
    if (name.empty()) {
      name = operand;
    } else if (equals != std::string::npos) {
      fields.emplace_back(operand.substr(0, equals), operand.substr(equals + 1));
    } else {
      return UsageError("'", operand, "' is not of the form Field=value");
    }
  }
  if (name.empty()) {
    if (!out->peers.empty()) return {};
    return UsageError("no operator and no model was given; `anydml bench --help` explains");
  }
  ANYDML_RETURN_IF_ERROR(ExpandSweep(fields, &out->sweep));
  if (name.ends_with(".json")) {
    if (!fields.empty()) return UsageError("a model has no fields; ", fields[0].first, "= follows ", name);
    out->model = name;
    out->allow_outside = arguments.Has(kAllowOutsideOption.name);
    return {};
  }
  if (IsOnnxPath(name)) {
    return UsageError(name, ": bench takes operators and models in JSON; `anydml run ", name,
                      " --repeat 100` times an ONNX model");
  }
  ANYDML_RETURN_IF_ERROR(FindSchemaInAnyCase(name, &out->schema));
  // Checks the names of all cases before the first is timed.
  for (const FieldArguments& combination : out->sweep) {
    ANYDML_RETURN_IF_ERROR(Operation(*out->schema).MatchFields(combination));
  }
  return {};
}

Status ReadOptions(const Arguments& arguments, bool json, BenchOptions* out) {
  ANYDML_RETURN_IF_ERROR(ReadExecutionOptions(arguments, &out->execution));
  ANYDML_RETURN_IF_ERROR(
      ReadNumber<uint64_t>(arguments, "--iterations", 1, kMaxIterations, &out->limits.iterations));
  // A requested number of iterations is not limited by time.
  if (out->limits.iterations > 0) out->limits.seconds = kMaxSeconds;
  ANYDML_RETURN_IF_ERROR(ReadNumber(arguments, "--seconds", 0.001, kMaxSeconds, &out->limits.seconds));
  ANYDML_RETURN_IF_ERROR(ReadNumber<uint32_t>(arguments, "--warm-up", 0, 1'000'000, &out->limits.warm_up));
  const std::string index_type = arguments.Value("--index-type");
  out->index_type = ParseDataType(index_type);
  if (!index_type.empty() && out->index_type == DataType::kUnknown) {
    return UsageError("--index-type ", index_type, ": not a data type");
  }
  out->csv = arguments.Has("--csv");
  if (out->csv && json) return UsageError("--csv and --json exclude each other");
  if (arguments.Has("--compare") && arguments.Has("--adapter")) {
    return UsageError("--compare and --adapter exclude each other");
  }
  out->report = arguments.Value("--report");
  out->command = StrCat("anydml bench ", arguments.AsGiven());
  if (arguments.Has("--report") && out->report.empty()) return UsageError("--report needs a file");
  if (arguments.Has("--peers")) {
    if (out->report.empty()) return UsageError("--peers is for the page of --report, which is missing");
    ANYDML_RETURN_IF_ERROR(ReadPeers(arguments.Value("--peers"), &out->peers));
  }
  return ReadWhat(arguments, out);
}

std::string Now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M UTC", &utc);
  return text;
}

// The number of threads of the CPU adapter.
std::string Threads() {
  const char* given = std::getenv("ANYDML_THREADS");
  if (given != nullptr && *given != '\0') return StrCat(given, " (ANYDML_THREADS)");
  cpu_set_t allowed;
  const bool known = sched_getaffinity(0, sizeof(allowed), &allowed) == 0;
  return known ? StrCat(CPU_COUNT(&allowed), ", one for each processor") : "one for each processor";
}

Status WriteReport(const BenchOptions& options, const BenchResults& results) {
  Report report;
  report.facts = {{"AnyDML", AnyDmlGetVersion()}, {"Date", Now()}, {"Command", options.command}};
  if (!results.results.empty()) report.facts.emplace_back("Threads", Threads());
  for (const BenchAdapter& adapter : results.adapters) {
    report.facts.emplace_back(adapter.id,
                              StrCat(adapter.description, ", copies ", FormatBytes(adapter.bandwidth), "/s"));
  }
  if (!results.results.empty()) report.sections.push_back(BenchSection(results));
  report.sections.insert(report.sections.end(), options.peers.begin(), options.peers.end());
  const std::string page = HtmlReport(report);
  OutputFiles files;
  ANYDML_RETURN_IF_ERROR(files.AddRaw(options.report, std::as_bytes(std::span(page))));
  return files.Commit();
}

void Print(const BenchOptions& options, const BenchResults& results, Output* output) {
  if (results.results.empty()) return;
  WriteBenchJson(results, options.execution.why, &output->document());
  output->Text(options.csv ? BenchCsv(results) : BenchTable(results));
  if (!options.execution.why || options.csv) return;
  for (const BenchResult& result : results.results) {
    output->Text(StrCat("\n", result.info.name, " on ", results.adapters[result.adapter].id, ":\n",
                        result.explanation, "\n"));
  }
}

Status Run(const Arguments& arguments, Output* output) {
  BenchOptions options;
  ANYDML_RETURN_IF_ERROR(ReadOptions(arguments, output->json(), &options));
  if (!options.report.empty()) {
    // Detects unwritable files now rather than after minutes of timing; nothing is committed.
    OutputFiles trial;
    ANYDML_RETURN_IF_ERROR(trial.AddRaw(options.report, {}));
  }
  if (options.sweep.empty()) return WriteReport(options, {});
  Bench bench(options, output);
  ANYDML_RETURN_IF_ERROR(bench.FindAdapters(arguments.Value("--compare")));
  Status status = bench.Run();
  Print(options, bench.results(), output);
  if (!status.ok() || options.report.empty()) return status;
  return WriteReport(options, bench.results());
}

}  // namespace

const Command kBenchCommand = {
    .name = "bench",
    .operands = "OPERATOR Field=value... | MODEL.json",
    .summary = "time an operator or a model",
    .description = R"(Times one operator, given as to `anydml op`, or the dispatches of a model, as of
`anydml run`:

  anydml bench TOP_K1 InputTensor=random:1x1000000 Axis=1 K=10 AxisDirection=DECREASING
  anydml bench TOP_K1 InputTensor='random:1x{1000,100000}' Axis=1 K='{1,10,100}' \
      AxisDirection=DECREASING --compare cpu,cuda --report topk.html
  anydml bench model.json --iterations 100 --json

A field with braces, or given several times, takes each value in turn; all combinations are
timed, but for those that the operator does not allow (K beyond the axis), which a note says.

Buffers are filled, the operator is compiled and its command list recorded beforehand. After
the warm-up each iteration executes the list and waits for its fence. The columns min to mean
are of that time, end to end; "device" is the median by the device's clock, of as many
executions in one list as 200 us hold, without submission and fence. All executions use the
same buffers: what fits into a cache stays there.

"moved" are the bytes of all inputs and outputs, GB/s those per second on the device, and "of
the copy" is their share of the adapter's speed at copying: the fastest of 9 copies of 128 MiB
(less on a small machine) by ELEMENT_WISE_IDENTITY, made first. Data in a cache can exceed it.

Data are looked at once before they are timed: an index out of range is an error unless
allowed. Outputs are not written to files. Ctrl-C ends the timing; cases that are complete are
printed, and the exit code is 130.

--report writes one HTML page with the charts: time against each dimension and K where those
vary, and the distance from the floor, which is moving the bytes at the copy's speed. With
--peers, and then without an operator, too, it has those of `./dev bench` besides.
)",
    .operand_kind = ValueKind::kField,
    .executes = true,
    .options = kOptions,
    .run = Run,
};

}  // namespace anydml::client
