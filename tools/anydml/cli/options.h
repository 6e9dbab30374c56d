// Command-line options. One table per command says what they are: parsing, --help, the
// manual page and completion all read it.
//
// The 30 lines that parse are our own and not CLI11's (2.1), which suggests nothing for a mistyped option,
// takes the next word for a value that may be left out (--junit model.json), splits an operand such as [1,2],
// and has neither manual page nor completion, which need the table anyhow; its header takes 13 s to compile
// where options.cc takes one.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "common/session.h"

namespace anydml::tools {

// What an option's value or a command's operand is, for completion.
enum class ValueKind {
  kText,
  kFile,
  kOperator,
  kField,
  kAdapter,
  kFeatureLevel,
  kImplementation,
  kDataType,
  kShell
};

struct Option {
  std::string_view name;        // "--adapter"
  std::string_view value_name;  // "ADAPTER"; empty: a flag; "[=FILE]": may be left out
  ValueKind kind;
  std::string_view help;

  bool needs_value() const { return !value_name.empty() && !value_name.starts_with('['); }
};

// What several commands take.
inline constexpr Option kAdapterOption = {"--adapter", "ADAPTER", ValueKind::kAdapter,
                                          "number, id or part of the name of an adapter (`anydml adapters`)"};
inline constexpr Option kFeatureLevelOption = {"--feature-level", "LEVEL", ValueKind::kFeatureLevel,
                                               "hold the device to a lower feature level, for example 2.1"};
inline constexpr Option kImplementationOption = {"--implementation", "NAME", ValueKind::kImplementation,
                                                 "force one implementation (`anydml operators NAME`)"};
inline constexpr Option kAllowOutsideOption = {"--allow-outside", "", ValueKind::kText,
                                               "let the model read and write files outside of its folder"};

// What was given on the command line: "--name value", "--name=value", flags and, in
// between or after "--", the operands.
class Arguments {
 public:
  // Of an option that is given twice the last value counts.
  Status Parse(std::span<const Option> options, std::span<const std::string> words);

  bool Has(std::string_view option) const { return values_.contains(option); }
  std::string Value(std::string_view option) const;                // empty when it was not given
  std::vector<std::string> Values(std::string_view option) const;  // of one that may be given several times
  const std::vector<std::string>& operands() const { return operands_; }
  // All of it, for a shell.
  std::string AsGiven() const;

 private:
  std::vector<std::string> words_;
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
  std::vector<std::string> operands_;
};

// The options of every command that runs operators.
struct ExecutionOptions {
  SessionOptions session;
  bool allow_out_of_range = false;
  bool why = false;
};
std::span<const Option> ExecutionOptionTable();
Status ReadExecutionOptions(const Arguments& arguments, ExecutionOptions* out);

// The value of --feature-level, or 0 when it was not given.
Status ReadFeatureLevel(const Arguments& arguments, FeatureLevel* level);

}  // namespace anydml::tools
