// Command-line options: flags, and names with a value ("--name value", "--name=value").
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "common/session.h"

namespace anydml::tools {

// One of the two pointers is null.
struct Option {
  std::string_view name;
  bool* flag;
  std::string* value;
};

// The options of every command that runs operators.
struct ExecutionOptions {
  SessionOptions session;
  bool allow_out_of_range = false;
  bool why = false;

  std::vector<Option> Table();
  // After parsing: the feature level is one, in its usual spelling.
  Status Check();
};
extern const char* const kExecutionOptionsHelp;

// arguments[*i] starts with '-'; leaves *i at the last argument that belongs to it.
Status ParseOption(std::span<const Option> options, std::span<const std::string> arguments, size_t* i);

}  // namespace anydml::tools
