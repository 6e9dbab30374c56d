// Command-line options. One table per command describes them; parsing, --help, the manual page and completion
// all use it.
//
// The 30 lines of parsing are our own rather than CLI11's (2.1): that makes no suggestions for a mistyped
// option, takes the next word as an optional value (--junit model.json), splits an operand such as [1,2], and
// has neither manual page nor completion, which need the table anyway; its header takes 13 s to compile where
// options.cc takes one.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "client/session.h"

namespace anydml::client {

// The kind of an option's value or a command's operand, for completion.
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
  std::string_view value_name;  // "ADAPTER"; empty: a flag; "[=FILE]": optional
  ValueKind kind;
  std::string_view help;

  bool needs_value() const { return !value_name.empty() && !value_name.starts_with('['); }
};

// Options that several commands share.
inline constexpr Option kAdapterOption = {"--adapter", "ADAPTER", ValueKind::kAdapter,
                                          "number, id or part of the name of an adapter (`anydml adapters`)"};
inline constexpr Option kFeatureLevelOption = {"--feature-level", "LEVEL", ValueKind::kFeatureLevel,
                                               "hold the device to a lower feature level, for example 2.1"};
inline constexpr Option kImplementationOption = {"--implementation", "NAME", ValueKind::kImplementation,
                                                 "force one implementation (`anydml operators NAME`)"};
inline constexpr Option kAllowOutsideOption = {"--allow-outside", "", ValueKind::kText,
                                               "let the model read and write files outside of its folder"};

// A parsed command line: "--name value", "--name=value", flags and, in between or after "--", operands.
class Arguments {
 public:
  // If an option is given twice, the last value counts.
  Status Parse(std::span<const Option> options, std::span<const std::string> words);

  bool Has(std::string_view option) const { return values_.contains(option); }
  std::string Value(std::string_view option) const;                // empty if it was not given
  std::vector<std::string> Values(std::string_view option) const;  // of an option that may be given several
                                                                   // times
  const std::vector<std::string>& operands() const { return operands_; }
  // The whole command line, quoted for a shell.
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

// The value of --feature-level, or 0 if it was not given.
Status ReadFeatureLevel(const Arguments& arguments, FeatureLevel* level);

}  // namespace anydml::client
