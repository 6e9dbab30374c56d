// An operator family's ordered list of implementations, and the choice from it.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ops/operator.h"

// Lists are compiled into libanydml.so and into libanydml_cuda.so, so that names are known in both; each has
// the functions of its own entries. ANYDML_ON_CPU(function) is the function or null, so is ANYDML_ON_CUDA.
#if ANYDML_CUDA_MODULE
#define ANYDML_ON_CPU(function) nullptr
#define ANYDML_ON_CUDA(function) function
#else
#define ANYDML_ON_CPU(function) function
#define ANYDML_ON_CUDA(function) nullptr
#endif

namespace anydml {

// Null, with a reason in *why_not, when the implementation cannot do the problem. The device of the context
// is the thread's current one meanwhile.
template <typename Problem>
using CreateFunction = std::unique_ptr<const Kernel>(const Problem& problem, const LowerContext& context,
                                                     std::string* why_not);

// Why a later implementation should rather do the problem, although this one could; empty when there is
// nothing to say against it. Not asked when this one is forced.
template <typename Problem>
using BetterNotFunction = std::string(const Problem& problem, const LowerContext& context);

template <typename Problem>
struct Implementation {
  const char* name;                 // "cpu.heap"
  const char* backend;              // "cpu"
  CreateFunction<Problem>* create;  // null: it is in the backend's module
  BetterNotFunction<Problem>* better_not = nullptr;

  Exactness exactness = {};
  // Instead, where it depends on the problem (on the length of a sum).
  Exactness (*bound)(const Problem& problem) = nullptr;
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
  explicit Decision(const LowerContext& context) : context_(context) {}

  // Why `name` is out before its problem is looked at; empty when it is not.
  std::string RuledOut(const char* name, const char* backend, bool is_linked) const;

  void Refuse(const char* name, const char* backend, std::string reason) {
    verdicts_.push_back({name, std::move(reason), context_.backend == backend});
  }
  void Choose(const char* name, std::unique_ptr<const Kernel> kernel, const Exactness& exactness);

  // Moves the outcome to `out`; without a choice fails with kUnsupported and the reasons.
  Status Conclude(LoweredOperator* out) &&;

 private:
  struct Verdict {
    const char* name;
    std::string text;
    bool here;  // of the backend in question
  };
  std::string Join(const char* separator) const;

  const LowerContext& context_;
  const char* chosen_ = nullptr;
  std::unique_ptr<const Kernel> kernel_;
  Exactness exactness_;
  std::vector<Verdict> verdicts_;
};

// Lowers `problem` to the first implementation that fits, or to the forced one: sets the kernel and what
// is said about it, and leaves `in_place` alone. Kernels that are made of others choose their parts with
// it, too, from the list of any family (with context.ForPart()).
template <typename Problem>
Status ChooseKernel(std::span<const Implementation<Problem>> list, const Problem& problem,
                    const LowerContext& context, LoweredOperator* out) {
  const CurrentDevice current(context.device);
  Decision decision(context);
  for (const Implementation<Problem>& candidate : list) {
    std::string why_not = decision.RuledOut(candidate.name, candidate.backend, candidate.create != nullptr);
    if (why_not.empty() && context.implementation.empty() && candidate.better_not != nullptr) {
      why_not = candidate.better_not(problem, context);
    }
    std::unique_ptr<const Kernel> kernel;
    if (why_not.empty()) kernel = candidate.create(problem, context, &why_not);
    if (kernel != nullptr) {
      decision.Choose(candidate.name, std::move(kernel),
                      candidate.bound != nullptr ? candidate.bound(problem) : candidate.exactness);
    } else {
      decision.Refuse(candidate.name, candidate.backend, why_not);
    }
  }
  return std::move(decision).Conclude(out);
}

}  // namespace anydml
