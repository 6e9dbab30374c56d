#include "ops/implementation_list.h"

#include <algorithm>

namespace anydml {

std::string Decision::RuledOut(const char* name, const char* backend) const {
  if (!options_.implementation.empty() && options_.implementation != name) {
    return StrCat(options_.implementation, " was asked for");
  }
  if (options_.backend != backend) return StrCat("runs on ", backend, ", not on ", options_.backend);
  if (chosen_ != nullptr) return StrCat("comes after ", chosen_);
  return {};
}

// What other backends have interests nobody while there is something here.
std::string Decision::Join(const char* separator) const {
  const bool any_here =
      std::any_of(verdicts_.begin(), verdicts_.end(), [](const Verdict& v) { return v.here; });
  std::string text;
  for (const Verdict& verdict : verdicts_) {
    if (any_here && !verdict.here) continue;
    text += StrCat(text.empty() ? "" : separator, verdict.name, ": ", verdict.text);
  }
  return text;
}

Status Decision::Conclude(const char* operator_name, std::unique_ptr<const Kernel> kernel,
                          LoweredOperator* out) && {
  if (chosen_ != nullptr) {
    out->kernel = std::move(kernel);
    out->implementation = chosen_;
    out->explanation = Join("\n");
    return {};
  }
  if (options_.implementation.empty()) {
    return Status(Code::kUnsupported, StrCat(operator_name, ": no implementation fits (", Join("; "), ")"));
  }
  for (const Verdict& verdict : verdicts_) {
    if (options_.implementation != verdict.name) continue;
    return Status(Code::kUnsupported, StrCat(operator_name, ": implementation ", verdict.name,
                                             " was asked for but does not fit: ", verdict.text));
  }
  std::string names;
  for (const Verdict& verdict : verdicts_) {
    if (verdict.here) names += StrCat(names.empty() ? "" : ", ", verdict.name);
  }
  return Status(Code::kUnsupported, StrCat(operator_name, ": implementation ", options_.implementation,
                                           " was asked for but there are only ", names));
}

}  // namespace anydml
