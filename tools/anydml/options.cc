#include "anydml/options.h"

#include <algorithm>

#include "anydml/exit_status.h"
#include "anydml/suggest.h"

namespace anydml::tools {

const char* const kExecutionOptionsHelp =
    R"(  --adapter ADAPTER       number, id or part of the name of an adapter (`anydml adapters`)
  --feature-level LEVEL   hold the device to a lower feature level, for example 2.1
  --implementation NAME   force one implementation (`anydml operators NAME`)
  --allow-out-of-range    an index out of range is not an error: that update is dropped
  --why                   print which implementation was chosen, and why not the others
)";

std::vector<Option> ExecutionOptions::Table() {
  return {{"--why", &why, nullptr},
          {"--allow-out-of-range", &allow_out_of_range, nullptr},
          {"--adapter", nullptr, &session.adapter},
          {"--feature-level", nullptr, &session.feature_level},
          {"--implementation", nullptr, &session.implementation}};
}

Status ExecutionOptions::Check() {
  if (session.feature_level.empty()) return {};
  const FeatureLevel level = ParseFeatureLevel(session.feature_level);
  if (level == 0) {
    return UsageError("--feature-level ", session.feature_level,
                      ": not a feature level (1.0, 2.0, 2.1 ... 6.4)");
  }
  session.feature_level = FeatureLevelName(level);
  return {};
}

Status ParseOption(std::span<const Option> options, std::span<const std::string> arguments, size_t* i) {
  const std::string& argument = arguments[*i];
  const size_t equals = argument.find('=');
  const std::string name = argument.substr(0, equals);
  const auto option = std::find_if(options.begin(), options.end(),
                                   [&name](const Option& candidate) { return candidate.name == name; });
  if (option == options.end()) {
    std::vector<std::string_view> names;
    for (const Option& candidate : options) names.push_back(candidate.name);
    return UsageError("unknown option ", name, DidYouMean(name, names));
  }
  if (option->flag != nullptr) {
    if (equals != std::string::npos) return UsageError(name, " takes no value");
    *option->flag = true;
    return {};
  }
  if (equals == std::string::npos && *i + 1 >= arguments.size()) return UsageError(name, " needs a value");
  *option->value = equals == std::string::npos ? arguments[++*i] : argument.substr(equals + 1);
  return {};
}

}  // namespace anydml::tools
