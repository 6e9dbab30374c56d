#include "ops/implementation_list.h"

#include <algorithm>

namespace anydml {

std::string Decision::RuledOut(const char* name, const char* backend, bool is_linked) const {
  if (!context_.implementation.empty() && context_.implementation != name) {
    return StrCat(context_.implementation, " was asked for");
  }
  if (context_.backend != backend) return StrCat("runs on ", backend, ", not on ", context_.backend);
  if (chosen_ != nullptr) return StrCat("comes after ", chosen_);
  if (!is_linked) return StrCat("the module of ", backend, " is not there");
  if (context_.device == nullptr && context_.backend != "cpu") return "no device was named";
  return {};
}

void Decision::Choose(const char* name, std::unique_ptr<const Kernel> kernel, const Exactness& exactness) {
  const std::string parts = kernel->made_of();
  verdicts_.push_back({name, parts.empty() ? "chosen" : StrCat("chosen, with ", parts), true});
  chosen_ = name;
  kernel_ = std::move(kernel);
  exactness_ = exactness;
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

Status Decision::Conclude(LoweredOperator* out) && {
  if (chosen_ != nullptr) {
    out->kernel = std::move(kernel_);
    out->implementation = chosen_;
    out->explanation = Join("\n");
    out->exactness = exactness_;
    return {};
  }
  if (context_.implementation.empty()) {
    return Status(Code::kUnsupported, StrCat("no implementation fits (", Join("; "), ")"));
  }
  for (const Verdict& verdict : verdicts_) {
    if (context_.implementation != verdict.name) continue;
    return Status(Code::kUnsupported,
                  StrCat("implementation ", verdict.name, " was asked for but does not fit: ", verdict.text));
  }
  std::string names;
  for (const Verdict& verdict : verdicts_) {
    if (verdict.here) names += StrCat(names.empty() ? "" : ", ", verdict.name);
  }
  return Status(Code::kUnsupported, StrCat("implementation ", context_.implementation,
                                           " was asked for but there are only ", names));
}

}  // namespace anydml
