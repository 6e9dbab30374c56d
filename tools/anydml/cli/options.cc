#include "anydml/cli/options.h"

#include <algorithm>

#include "client/exit_status.h"
#include "client/suggest.h"

namespace anydml::client {
namespace {

constexpr Option kExecutionOptions[] = {
    kAdapterOption,
    kFeatureLevelOption,
    kImplementationOption,
    {"--allow-out-of-range", "", ValueKind::kText,
     "an index out of range is not an error: that update is dropped"},
    {"--why", "", ValueKind::kText, "print which implementation was chosen, and why not the others"},
};

}  // namespace

std::span<const Option> ExecutionOptionTable() { return kExecutionOptions; }

std::string Arguments::Value(std::string_view option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? "" : found->second.back();
}

std::vector<std::string> Arguments::Values(std::string_view option) const {
  const auto found = values_.find(option);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

std::string Arguments::AsGiven() const {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-=:/.,+@%";
  std::string text;
  for (const std::string& word : words_) {
    if (!text.empty()) text += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
    text += '\'';
  }
  return text;
}

Status Arguments::Parse(std::span<const Option> options, std::span<const std::string> words) {
  words_.assign(words.begin(), words.end());
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--") {
      operands_.insert(operands_.end(), words.begin() + static_cast<ptrdiff_t>(i) + 1, words.end());
      break;
    }
    if (!words[i].starts_with("-")) {
      operands_.push_back(words[i]);
      continue;
    }
    const size_t equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals);
    const auto option = std::find_if(options.begin(), options.end(),
                                     [&name](const Option& candidate) { return candidate.name == name; });
    if (option == options.end()) {
      std::vector<std::string_view> names;
      for (const Option& candidate : options) names.push_back(candidate.name);
      return UsageError("unknown option ", name, DidYouMean(name, names));
    }
    if (!option->needs_value()) {
      if (equals != std::string::npos && option->value_name.empty())
        return UsageError(name, " takes no value");
      // `run model.onnx --profile trace.json`: after the model, the word can only be the option's value.
      const bool follows = equals == std::string::npos && !option->value_name.empty() && !operands_.empty() &&
                           i + 1 < words.size() && words[i + 1].ends_with(".json");
      if (follows) ++i;
      values_[name].push_back(follows                       ? words[i]
                              : equals == std::string::npos ? ""
                                                            : words[i].substr(equals + 1));
      continue;
    }
    if (equals == std::string::npos && i + 1 >= words.size()) return UsageError(name, " needs a value");
    values_[name].push_back(equals == std::string::npos ? words[++i] : words[i].substr(equals + 1));
  }
  return {};
}

Status ReadFeatureLevel(const Arguments& arguments, FeatureLevel* level) {
  *level = 0;
  if (!arguments.Has("--feature-level")) return {};
  const std::string text = arguments.Value("--feature-level");
  *level = ParseFeatureLevel(text);
  if (*level != 0) return {};
  return UsageError("--feature-level ", text, ": not a feature level (1.0, 2.0, 2.1 ... 6.4)");
}

Status ReadExecutionOptions(const Arguments& arguments, ExecutionOptions* out) {
  FeatureLevel level = 0;
  ANYDML_RETURN_IF_ERROR(ReadFeatureLevel(arguments, &level));
  if (level != 0) out->session.feature_level = FeatureLevelName(level);
  out->session.adapter = arguments.Value("--adapter");
  out->session.implementation = arguments.Value("--implementation");
  out->allow_out_of_range = arguments.Has("--allow-out-of-range");
  out->why = arguments.Has("--why");
  return {};
}

}  // namespace anydml::client
