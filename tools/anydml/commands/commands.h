// The commands of the anydml tool.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "anydml/cli/options.h"
#include "anydml/cli/output.h"
#include "base/status.h"

namespace anydml::client {

struct Command {
  std::string_view name;
  std::string_view operands;     // as in the usage line: "MODEL.json"
  std::string_view summary;      // "run a model in DxDispatch's JSON format"
  std::string_view description;  // paragraphs; lines that start with blanks are not filled
  ValueKind operand_kind;        // for completion
  bool executes;                 // takes the ExecutionOptions, too
  std::span<const Option> options;
  Status (*run)(const Arguments& arguments, Output* output);
};

extern const Command kRunCommand;
extern const Command kOpCommand;
extern const Command kCheckCommand;
extern const Command kGraphCommand;
extern const Command kConformanceCommand;
extern const Command kOnnxTestCommand;
extern const Command kBenchCommand;
extern const Command kOperatorsCommand;
extern const Command kAdaptersCommand;
extern const Command kCompletionCommand;
extern const Command kManCommand;

// In the order in which --help lists them.
std::span<const Command* const> AllCommands();
const Command* FindCommand(std::string_view name);  // null if there is none

// The only operand of `run`, `check` and `graph`.
Status ReadModelPath(const Arguments& arguments, const Command& command, std::string* path);

// The command's own options and shared ones; its own replace shared ones of the same name.
std::vector<Option> OptionsOf(const Command& command);
bool HasOwnOption(const Command& command, std::string_view name);

}  // namespace anydml::client
