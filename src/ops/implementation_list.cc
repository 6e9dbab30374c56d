#include "ops/implementation_list.h"

#include <bit>

#include "kernel/host_kernel.h"

namespace anydml {

std::string Decision::RuledOut(const char* name) const {
  if (!context_.implementation.empty() && context_.implementation != name) {
    return StrCat(context_.implementation, " was asked for");
  }
  return chosen_ != nullptr ? StrCat("comes after ", chosen_) : std::string();
}

void Decision::Choose(const char* name, std::unique_ptr<const Kernel> kernel, const Exactness& exactness,
                      uint32_t abilities) {
  const std::string parts = kernel->made_of();
  verdicts_.push_back({name, parts.empty() ? "chosen" : StrCat("chosen, with ", parts)});
  chosen_ = name;
  kernel_ = std::move(kernel);
  exactness_ = exactness;
  abilities_ = abilities;
}

std::string Decision::Join(const char* separator) const {
  std::string text;
  for (const Verdict& verdict : verdicts_) {
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
    out->abilities = abilities_;
    return {};
  }
  const std::string_view backend = context_.device->backend;
  if (verdicts_.empty()) {
    return Status(Code::kUnsupported,
                  StrCat("the backend ", backend, " has no implementation of this family"));
  }
  if (context_.implementation.empty()) {
    return Status(Code::kUnsupported, StrCat("no implementation fits (", Join("; "), ")"));
  }
  std::string names;
  for (const Verdict& verdict : verdicts_) {
    if (context_.implementation == verdict.name) {
      return Status(Code::kUnsupported, StrCat("implementation ", verdict.name,
                                               " was asked for but does not fit: ", verdict.text));
    }
    names += StrCat(names.empty() ? "" : ", ", verdict.name);
  }
  return Status(Code::kUnsupported, StrCat("implementation ", context_.implementation,
                                           " was asked for but there are only ", names));
}

std::string WhyNotOnDevice(const LowerContext& context, uint32_t data_types) {
  if (context.device->is_host) return {};
  if (context.implementation.starts_with(kHostPrefix)) return "the host was asked for";
  const uint32_t missing = data_types & ~context.device->data_types;
  if (missing == 0) return {};
  return StrCat("the device has no ", Name(static_cast<DataType>(std::countr_zero(missing))));
}

bool MayRunOnHost(const LowerContext& context) {
  return !context.device->is_host && context.host_fallback &&
         (context.implementation.empty() || context.implementation.starts_with(kHostPrefix));
}

LowerContext HostContextOf(const LowerContext& context) {
  LowerContext host = context;
  host.device = &kHostDevice;
  host.threads = 1;
  if (host.implementation.starts_with(kHostPrefix)) host.implementation.remove_prefix(kHostPrefix.size());
  return host;
}

void RunOnHost(LoweredOperator on_host, const std::string& why, const LowerContext& context,
               LoweredOperator* out) {
  out->implementation = StrCat(kHostPrefix, on_host.implementation);
  out->explanation =
      StrCat(context.device->backend, ": ", why, "\n", out->implementation,
             ": chosen, on the host: inputs are copied there and outputs back\n", on_host.explanation);
  out->exactness = on_host.exactness;
  out->abilities = on_host.abilities;
  out->kernel = std::make_unique<HostKernel>(std::move(on_host.kernel));
}

}  // namespace anydml
