// Tests this DirectML with a conformance pack.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <regex>
#include <set>

#include "anydml/cli/output_files.h"
#include "anydml/commands/commands.h"
#include "anydml/json/junit.h"
#include "anydml/model/conformance_pack.h"
#include "anydml/model/model_runner.h"
#include "client/exit_status.h"
#include "client/text.h"

namespace anydml::client {
namespace {

using Outcome = JunitCase::Outcome;

constexpr Option kOptions[] = {
    kAdapterOption,
    kFeatureLevelOption,
    kImplementationOption,
    {"--filter", "REGEX", ValueKind::kText, "only the models in whose name (GROUP/MODEL) REGEX is found"},
    {"--junit", "FILE", ValueKind::kFile, "write the results as JUnit XML, too"},
    {"--list", "", ValueKind::kText, "list the models and what each shows, without running them"},
};

// The place of this program's own pack: installed, or in its build folder.
Status FindPack(std::string* folder) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  for (const char* from_program : {ANYDML_INSTALLED_CONFORMANCE, ANYDML_BUILT_CONFORMANCE}) {
    const std::filesystem::path candidate = (program.parent_path() / from_program).lexically_normal();
    *folder = candidate.string();
    if (std::filesystem::is_directory(candidate, error)) return {};
  }
  return UsageError("no conformance pack was found; give its folder");
}

Status KeepMatching(const std::string& pattern, std::vector<ConformanceCase>* cases) {
  std::regex regex;
  try {
    regex = std::regex(pattern);
  } catch (const std::regex_error& error) {
    return UsageError("--filter ", pattern, ": not a regular expression (", error.what(), ")");
  }
  std::erase_if(*cases,
                [&](const ConformanceCase& test) { return !std::regex_search(test.FullName(), regex); });
  return cases->empty() ? UsageError("--filter ", pattern, ": no model has such a name") : Status();
}

// Why the device cannot be tested with a case; empty if it can.
std::string WhyNot(const ConformanceCase& test, FeatureLevel device) {
  const FeatureLevel needed = std::max(test.since, test.feature_level);
  if (needed <= device) return "";
  return StrCat("needs feature level ", FeatureLevelName(needed), "; the device has ",
                FeatureLevelName(device));
}

bool IsDispatch(const ModelCommand& command) {
  return std::holds_alternative<DispatchCommand>(command.action);
}

// Several dispatches run twice: one by one, and as one graph.
Status RunCase(const ConformanceCase& test, ExecutionOptions options, FeatureLevel device) {
  Model model;
  if (const Status status = LoadConformanceModel(test, &model); !status.ok()) {
    return Status(Code::kFail, status.message());
  }
  // Always set, because the limit of one session would remain for a later session without one.
  options.session.feature_level = FeatureLevelName(test.feature_level != 0 ? test.feature_level : device);
  options.allow_out_of_range = true;  // such an update is expected to be dropped
  Output quiet(/*json=*/true, /*quiet=*/true);
  const bool is_graph = std::count_if(model.commands.begin(), model.commands.end(), IsDispatch) > 1;
  Status status = RunModel(std::move(model), options, &quiet);
  if (is_graph && status.ok()) {
    Model again;
    ANYDML_RETURN_IF_ERROR(LoadConformanceModel(test, &again));
    status = RunModelAsGraph(std::move(again), options);
  }
  if (!test.refused || status.code() == Code::kUnsupported) return status;
  if (status.code() == Code::kInvalidArgument) return {};
  return Status(Code::kFail, StrCat(test.model_path, ": E_INVALIDARG was expected, but ",
                                    status.ok() ? "the operator was accepted" : status.message()));
}

JunitCase Judge(const ConformanceCase& test, const ExecutionOptions& options, FeatureLevel device) {
  JunitCase result{.suite = test.group, .name = test.name, .message = WhyNot(test, device)};
  if (!result.message.empty()) {
    result.outcome = Outcome::kSkipped;
    return result;
  }
  const auto start = std::chrono::steady_clock::now();
  const Status status = RunCase(test, options, device);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (status.ok()) return result;
  result.outcome = status.code() == Code::kUnsupported ? Outcome::kSkipped : Outcome::kFailed;
  result.message = StrCat(test.claim, " ", status.message());
  return result;
}

size_t Count(const std::vector<JunitCase>& results, const std::string& group, Outcome outcome) {
  return static_cast<size_t>(std::count_if(results.begin(), results.end(), [&](const JunitCase& result) {
    return result.outcome == outcome && (group.empty() || result.suite == group);
  }));
}

std::string Column(const std::string& text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

// A line of the table and an element of the document; without a group, for all.
void Summarize(const std::vector<JunitCase>& results, const std::string& group, size_t width,
               Output* output) {
  const size_t passed = Count(results, group, Outcome::kPassed);
  const size_t failed = Count(results, group, Outcome::kFailed);
  const size_t unsupported = Count(results, group, Outcome::kSkipped);
  std::string name = group.empty() ? "total" : group;
  name.resize(std::max(width, name.size()), ' ');
  std::string line =
      StrCat(name, Column(StrCat(passed), 8), Column(StrCat(failed), 8), Column(StrCat(unsupported), 13));
  if (failed > 0) line = output->Paint(Style::kRed, line);
  output->Text(line + "\n");
  JsonWriter& json = output->document();
  if (group.empty()) {
    json.Key("total").BeginObject();
  } else {
    json.BeginObject();
    json.Key("name").String(group);
  }
  json.Key("passed").Number(passed);
  json.Key("failed").Number(failed);
  json.Key("unsupported").Number(unsupported);
  json.End();
}

void SummarizeAll(const std::vector<JunitCase>& results, Output* output) {
  std::set<std::string> groups;
  size_t width = std::strlen("total");
  for (const JunitCase& result : results) {
    groups.insert(result.suite);
    width = std::max(width, result.suite.size());
  }
  std::string head = "group";
  head.resize(width, ' ');
  output->Text(output->Paint(Style::kBold, head + "  passed  failed  unsupported") + "\n");
  output->document().Key("groups").BeginArray();
  for (const std::string& group : groups) Summarize(results, group, width, output);
  output->document().End();
  Summarize(results, "", width, output);
}

Status RunAll(const std::vector<ConformanceCase>& cases, const ExecutionOptions& options, Output* output,
              std::vector<JunitCase>* results) {
  std::unique_ptr<Session> session;  // tells what the device can do, and whether there is one
  ANYDML_RETURN_IF_ERROR(Session::Create(options.session, &session));
  JsonWriter& json = output->document();
  json.Key("failures").BeginArray();
  for (const ConformanceCase& test : cases) {
    const JunitCase& result = results->emplace_back(Judge(test, options, session->feature_level()));
    if (result.outcome != Outcome::kFailed) continue;
    output->Text(StrCat(output->Paint(Style::kRed, "FAILED "), ForTerminal(test.FullName()), "\n  ",
                        ForTerminal(result.message), "\n"));
    json.BeginObject();
    json.Key("model").String(test.FullName());
    json.Key("message").String(result.message);
    json.End();
  }
  json.End();
  return {};
}

void List(const std::vector<ConformanceCase>& cases, Output* output) {
  JsonWriter& json = output->document();
  json.Key("models").BeginArray();
  for (const ConformanceCase& test : cases) {
    output->Text(StrCat(ForTerminal(test.FullName()), ": ", ForTerminal(test.claim), "\n"));
    json.BeginObject();
    json.Key("model").String(test.FullName());
    json.Key("claim").String(test.claim);
    json.End();
  }
  json.End();
}

Status WriteJunit(const std::string& path, const std::vector<JunitCase>& results) {
  const std::string xml = JunitXml(results);
  OutputFiles files;
  ANYDML_RETURN_IF_ERROR(files.AddRaw(path, std::as_bytes(std::span(xml))));
  return files.Commit();
}

Status Run(const Arguments& arguments, Output* output) {
  ExecutionOptions options;
  ANYDML_RETURN_IF_ERROR(ReadExecutionOptions(arguments, &options));
  if (arguments.operands().size() > 1) return UsageError("one folder at a time");
  std::string folder;
  if (arguments.operands().empty()) {
    ANYDML_RETURN_IF_ERROR(FindPack(&folder));
  } else {
    folder = arguments.operands()[0];
  }
  std::vector<ConformanceCase> cases;
  ANYDML_RETURN_IF_ERROR(LoadConformancePack(folder, &cases));
  if (arguments.Has("--filter")) ANYDML_RETURN_IF_ERROR(KeepMatching(arguments.Value("--filter"), &cases));
  if (arguments.Has("--list")) {
    List(cases, output);
    return {};
  }
  std::vector<JunitCase> results;
  ANYDML_RETURN_IF_ERROR(RunAll(cases, options, output, &results));
  SummarizeAll(results, output);
  if (arguments.Has("--junit")) ANYDML_RETURN_IF_ERROR(WriteJunit(arguments.Value("--junit"), results));
  if (const size_t failed = Count(results, "", Outcome::kFailed); failed > 0) {
    return Status(Code::kFail, StrCat(failed, " of ", results.size(), " models failed"));
  }
  const size_t skipped = Count(results, "", Outcome::kSkipped);
  if (skipped == 0) return {};
  return Status(Code::kUnsupported, StrCat(skipped, " of ", results.size(), " models are not supported"));
}

}  // namespace

const Command kConformanceCommand = {
    .name = "conformance",
    .operands = "[FOLDER]",
    .summary = "judge this DirectML by a pack of models and expected results",
    .description = R"(Runs the models of a conformance pack and compares what they compute with what the
documents say, exactly or within what they allow. Without FOLDER it is the pack that came
with this program; its README.md says what each group proves, and how another DirectML is
judged by it.

  anydml conformance
  anydml conformance --adapter cpu --filter 'top_k1/(nan|ties)'
  anydml conformance --implementation cpu.reference --filter '^scatter'
  anydml conformance --junit results.xml

Exit code 0: all passed, 1: some failed, 3: none failed, but some need a higher feature
level or what the implementation does not do.
)",
    .operand_kind = ValueKind::kFile,
    .executes = false,
    .options = kOptions,
    .run = Run,
};

}  // namespace anydml::client
