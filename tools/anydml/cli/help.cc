#include "anydml/cli/help.h"

#include <anydml.h>

#include <algorithm>

namespace anydml::client {
namespace {

constexpr std::string_view kExitCodes = "0 done, 1 failed, 2 bad usage, 3 not supported";

struct Variable {
  const char* name;
  const char* help;
};
constexpr Variable kEnvironment[] = {
    {"ANYDML_FEATURE_LEVEL", "holds every new device to that feature level; --feature-level goes first"},
    {"ANYDML_IMPLEMENTATION", "forces one implementation; --implementation goes first"},
    {"ANYDML_ADAPTER", "puts that adapter first (cpu, cuda:0); --adapter goes first"},
    {"ANYDML_THREADS", "threads that the CPU adapter computes with"},
    {"ANYDML_DEBUG", "1: failure sentences of the library also go to standard error"},
    {"NO_COLOR", "no colours, on terminals neither"},
};

std::string OptionHead(const Option& option) {
  return StrCat(option.name, option.needs_value() ? " " : "", option.value_name);
}

std::string Usage(const Command& command) {
  return StrCat("anydml ", command.name, command.operands.empty() ? "" : " ", command.operands, " [options]");
}

std::string Padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

// Escapes text for troff.
std::string Troff(std::string_view text) {
  std::string result;
  if (text.starts_with('.') || text.starts_with('\'')) result = "\\&";
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
  }
  return result;
}

// Paragraphs are filled, indented lines kept.
std::string TroffParagraphs(std::string_view text) {
  std::string result;
  bool kept = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with(' ') != kept && !line.empty()) {
      result += kept ? ".fi\n" : ".nf\n";
      kept = !kept;
    }
    result += line.empty() ? ".PP\n" : StrCat(Troff(line), "\n");
  }
  return kept ? result + ".fi\n" : result;
}

std::string TroffItem(std::string_view head, std::string_view text) {
  return StrCat(".TP\n.B ", Troff(head), "\n", Troff(text), "\n");
}

}  // namespace

std::string Overview() {
  std::string text = "usage: anydml COMMAND ...\n\n";
  for (const Command* command : AllCommands()) {
    text += StrCat("  ", Padded(StrCat(command->name, " ", command->operands), 29), command->summary, "\n");
  }
  return text +
         StrCat("\n`anydml COMMAND --help` explains a command; `anydml --version` prints the version.\n",
                "Exit codes: ", kExitCodes, ".\n");
}

std::string HelpText(const Command& command) {
  std::string text = StrCat("usage: ", Usage(command), "\n\n", command.description, "\noptions:\n");
  for (const Option& option : OptionsOf(command)) {
    text += StrCat("  ", Padded(OptionHead(option), 24), option.help, "\n");
  }
  return text;
}

std::string ManPage() {
  std::string page = StrCat(".TH ANYDML 1 \"\" \"AnyDML ", Troff(AnyDmlGetVersion()), "\"\n");
  page += ".SH NAME\nanydml \\- DirectML operators from the command line\n.SH SYNOPSIS\n";
  for (const Command* command : AllCommands()) {
    page += StrCat(".B anydml ", Troff(command->name), "\n",
                   Troff(StrCat(command->operands, command->operands.empty() ? "" : " ", "[options]")),
                   "\n.br\n");
  }
  page += ".SH DESCRIPTION\nRuns, checks and describes the operators of DirectML on this machine.\n";
  page += ".SH COMMANDS\n";
  for (const Command* command : AllCommands()) {
    page += StrCat(".SS ", Troff(Usage(*command)), "\n", TroffParagraphs(command->description));
    for (const Option& option : OptionsOf(*command)) page += TroffItem(OptionHead(option), option.help);
  }
  page += StrCat(".SH EXIT STATUS\n", Troff(kExitCodes), ".\n.SH ENVIRONMENT\n");
  for (const Variable& variable : kEnvironment) page += TroffItem(variable.name, variable.help);
  return page;
}

namespace {

Status PrintManPage(const Arguments&, Output* output) {
  output->Page(ManPage());
  return {};
}

}  // namespace

const Command kManCommand = {
    .name = "man",
    .operands = "",
    .summary = "print the manual page",
    .description = R"(Prints the manual page in troff, as it is installed:

  anydml man | man -l -
)",
    .operand_kind = ValueKind::kText,
    .executes = false,
    .options = {},
    .run = PrintManPage,
};

}  // namespace anydml::client
