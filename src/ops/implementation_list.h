// An operator family's ordered list of implementations, and the choice from it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ops/kernel.h"
#include "ops/module.h"
#include "ops/operator.h"

namespace anydml {

template <typename Problem>
struct Implementation {
  const char* name;     // "cpu.heap"
  const char* backend;  // "cpu"

  // Null, with a reason in *why_not, when this one cannot do the problem.
  std::unique_ptr<const Kernel> (*create)(const Problem& problem, std::string* why_not);

  // Why a later one should rather do the problem, although this one could; empty
  // when there is nothing to say against it. Not asked when this one is forced.
  std::string (*better_not)(const Problem& problem) = nullptr;

  // Instead of `create`: the backend's module has it under this name (module.h).
  const char* symbol = nullptr;

  std::unique_ptr<const Kernel> Create(const Problem& problem, std::string* why_not) const {
    if (symbol == nullptr) return create(problem, why_not);
    const auto from_module = reinterpret_cast<ModuleCreate<Problem>*>(FindInModule(backend, symbol));
    if (from_module != nullptr) return std::unique_ptr<const Kernel>(from_module(problem, why_not));
    *why_not = StrCat("the module of ", backend, " is not there");
    return nullptr;
  }
};

// The names in order, for Operator::implementations.
template <typename Problem, size_t kCount>
constexpr std::array<const char*, kCount> ImplementationNames(const Implementation<Problem> (&list)[kCount]) {
  std::array<const char*, kCount> names{};
  for (size_t i = 0; i < kCount; ++i) names[i] = list[i].name;
  return names;
}

// What was decided about each implementation, in words.
class Decision {
 public:
  explicit Decision(const LowerOptions& options) : options_(options) {}

  // Why `name` is out before its problem is looked at; empty when it is not.
  std::string RuledOut(const char* name, const char* backend) const;

  void Refuse(const char* name, const char* backend, std::string reason) {
    verdicts_.push_back({name, std::move(reason), options_.backend == backend});
  }
  void Choose(const char* name) { verdicts_.push_back({chosen_ = name, "chosen", true}); }

  // Moves the outcome to `out`; without a choice fails with kUnsupported and the reasons.
  Status Conclude(const char* operator_name, std::unique_ptr<const Kernel> kernel, LoweredOperator* out) &&;

 private:
  struct Verdict {
    const char* name;
    std::string text;
    bool here;  // of the backend in question
  };
  std::string Join(const char* separator) const;

  const LowerOptions& options_;
  const char* chosen_ = nullptr;
  std::vector<Verdict> verdicts_;
};

// Lowers `problem` to the first implementation that fits, or to the forced one.
template <typename Problem, size_t kCount>
Status ChooseImplementation(const char* operator_name, const Implementation<Problem> (&list)[kCount],
                            const Problem& problem, const LowerOptions& options, LoweredOperator* out) {
  Decision decision(options);
  std::unique_ptr<const Kernel> kernel;
  for (const Implementation<Problem>& candidate : list) {
    std::string why_not = decision.RuledOut(candidate.name, candidate.backend);
    if (why_not.empty() && options.implementation.empty() && candidate.better_not != nullptr) {
      why_not = candidate.better_not(problem);
    }
    if (why_not.empty()) kernel = candidate.Create(problem, &why_not);
    if (why_not.empty()) {
      decision.Choose(candidate.name);
    } else {
      decision.Refuse(candidate.name, candidate.backend, why_not);
    }
  }
  return std::move(decision).Conclude(operator_name, std::move(kernel), out);
}

}  // namespace anydml
