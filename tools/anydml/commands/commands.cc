#include "anydml/commands/commands.h"

#include <algorithm>

namespace anydml::client {
namespace {

constexpr Option kCommonOptions[] = {
    {"--json", "", ValueKind::kText, "print one JSON document instead of text (errors, too)"},
    {"--help", "", ValueKind::kText, "explain the command"},
};

}  // namespace

std::span<const Command* const> AllCommands() {
  static constexpr const Command* kCommands[] = {&kRunCommand,        &kOpCommand,          &kCheckCommand,
                                                 &kGraphCommand,      &kConformanceCommand, &kOnnxTestCommand,
                                                 &kBenchCommand,      &kOperatorsCommand,   &kAdaptersCommand,
                                                 &kCompletionCommand, &kManCommand};
  return kCommands;
}

const Command* FindCommand(std::string_view name) {
  const auto commands = AllCommands();
  const auto found = std::find_if(commands.begin(), commands.end(),
                                  [name](const Command* command) { return command->name == name; });
  return found == commands.end() ? nullptr : *found;
}

std::vector<Option> OptionsOf(const Command& command) {
  std::vector<Option> options(command.options.begin(), command.options.end());
  const std::span<const Option> execution = ExecutionOptionTable();
  if (command.executes) options.insert(options.end(), execution.begin(), execution.end());
  for (const Option& common : kCommonOptions) {
    if (!HasOwnOption(command, common.name)) options.push_back(common);
  }
  return options;
}

bool HasOwnOption(const Command& command, std::string_view name) {
  return std::any_of(command.options.begin(), command.options.end(),
                     [name](const Option& option) { return option.name == name; });
}

}  // namespace anydml::client
