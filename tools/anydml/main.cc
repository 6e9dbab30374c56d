#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <anydml.h>

#include "anydml/commands.h"
#include "anydml/exit_status.h"
#include "anydml/options.h"
#include "anydml/suggest.h"

namespace anydml::tools {
namespace {

constexpr const char* kHelp =
    R"(usage: anydml COMMAND ...

  run MODEL.json               run a model in DxDispatch's JSON format
  op OPERATOR Field=value...   run one operator on .npy files
  operators [NAME]             list the operators, or describe one
  adapters                     list the adapters

`anydml COMMAND --help` explains a command; `anydml --version` prints the version.
Exit codes: 0 done, 1 failed, 2 bad usage, 3 not supported.
)";

struct Command {
  std::string_view name;
  Status (*run)(std::span<const std::string> arguments);
  const char* help;
  bool executes;  // and so takes the ExecutionOptions
};

Status RunCommand(const std::vector<std::string>& arguments) {
  const Command commands[] = {{"run", RunModelCommand, kRunHelp, true},
                              {"op", OpCommand, kOpHelp, true},
                              {"operators", OperatorsCommand, kOperatorsHelp, false},
                              {"adapters", AdaptersCommand, kAdaptersHelp, false}};
  const bool help = std::any_of(arguments.begin(), arguments.end(), [](const std::string& argument) {
    return argument == "--help" || argument == "-h";
  });
  if (arguments.empty()) return UsageError("no command was given; `anydml --help` lists them");
  std::vector<std::string_view> names;
  for (const Command& command : commands) {
    names.push_back(command.name);
    if (arguments[0] != command.name) continue;
    if (!help) return command.run(std::span(arguments).subspan(1));
    std::fputs(command.help, stdout);
    if (command.executes) std::fputs(kExecutionOptionsHelp, stdout);
    return {};
  }
  if (arguments[0] == "--version") {
    std::printf("anydml %s\n", AnyDmlGetVersion());
    return {};
  }
  if (!help && arguments[0] != "help") {
    return UsageError("unknown command ", arguments[0], DidYouMean(arguments[0], names));
  }
  std::fputs(kHelp, stdout);
  return {};
}

Status RunAndFlush(const std::vector<std::string>& arguments) {
  try {
    ANYDML_RETURN_IF_ERROR(RunCommand(arguments));
  } catch (const std::exception& error) {  // a file too large for this machine's memory, in practice
    return Status(Code::kOutOfMemory, StrCat("out of memory (", error.what(), ")"));
  }
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return Status(Code::kFail, "standard output cannot be written");
}

}  // namespace
}  // namespace anydml::tools

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const anydml::Status status = anydml::tools::RunAndFlush(arguments);
  if (!status.ok()) std::fprintf(stderr, "anydml: %s\n", status.message().c_str());
  return anydml::tools::ExitCode(status);
}
