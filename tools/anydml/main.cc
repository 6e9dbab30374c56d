#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <anydml.h>

#include "anydml/cli/help.h"
#include "anydml/cli/output_files.h"
#include "anydml/commands/commands.h"
#include "client/exit_status.h"
#include "client/suggest.h"

namespace anydml::client {
namespace {

Status RunCommand(std::span<const std::string> words, bool help, Output* output) {
  if (words.empty()) return UsageError("no command was given; `anydml --help` lists them");
  if (words[0] == "--version") {
    output->Page(StrCat("anydml ", AnyDmlGetVersion(), "\n"));
    return {};
  }
  const Command* command = FindCommand(words[0]);
  if (command == nullptr && (help || words[0] == "help")) {
    output->Page(Overview());
    return {};
  }
  if (command == nullptr) {
    std::vector<std::string_view> names;
    for (const Command* candidate : AllCommands()) names.push_back(candidate->name);
    return UsageError("unknown command ", words[0], DidYouMean(words[0], names));
  }
  output->document().Key("command").String(command->name);
  if (help) {
    output->Page(HelpText(*command));
    return {};
  }
  Arguments arguments;
  ANYDML_RETURN_IF_ERROR(arguments.Parse(OptionsOf(*command), words.subspan(1)));
  return command->run(arguments, output);
}

Status RunWithoutExceptions(std::span<const std::string> words, bool help, Output* output) {
  try {
    return RunCommand(words, help, output);
  } catch (const std::exception& error) {  // in practice, a file too large for this machine's memory
    return Status(Code::kOutOfMemory, StrCat("out of memory (", error.what(), ")"));
  }
}

int Main(const std::vector<std::string>& words) {
  // A closed pipe and a limit on the size of files become failed writes, with a message.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  // Determined before anything is parsed, because a wrong option must be reported in JSON, too.
  const auto options_end = std::find(words.begin(), words.end(), "--");
  const auto given = [&](const char* word) {
    return std::find(words.begin(), options_end, word) != options_end;
  };
  const Command* const command = words.empty() ? nullptr : FindCommand(words[0]);
  Output output(given("--json") && (command == nullptr || !HasOwnOption(*command, "--json")));
  Status status = RemoveTemporaryFilesOnSignals();
  if (status.ok()) status = RunWithoutExceptions(words, given("--help") || given("-h"), &output);
  return ExitCode(output.Finish(status));
}

}  // namespace
}  // namespace anydml::client

int main(int argc, char** argv) {
  try {
    return anydml::client::Main(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  } catch (const std::exception& error) {  // no memory for the words or for a sentence
    std::fprintf(stderr, "anydml: out of memory (%s)\n", error.what());
    return anydml::client::ExitCode(anydml::Status(anydml::Code::kOutOfMemory, ""));
  }
}
