// An operator family's ordered list of implementations, and the choice from it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ops/column.h"
#include "ops/operator.h"

namespace anydml {

// Returns null, and the reason in *why_not, if the implementation cannot do the problem. The context's device
// is current during the call.
template <typename Problem>
using CreateFunction = std::unique_ptr<const Kernel>(const Problem& problem, const LowerContext& context,
                                                     std::string* why_not);

// Why a later implementation should take the problem although this one could; empty if this one is right. Not
// called if this one is forced.
template <typename Problem>
using BetterNotFunction = std::string(const Problem& problem, const LowerContext& context);

// Properties of an implementation that other code may query, or require in its choice.
enum Ability : uint32_t {
  kIsReference = 1 << 0,  // takes every problem; a few lines that define the result
  kAppliesTail = 1 << 1,  // of convolutions: applies ConvolutionTail while it stores, which is faster
  kKeepsSumsInOutput =
      1 << 2,                // of convolutions: FLOAT32 sums may be in the output before the tail is applied
  kStoresWeights = 1 << 3,   // of attention: logits and weights are whole tensors in memory
  kIsCompiled = 1 << 4,      // of element programs: compiled for the problem, so that long programs are not
                             // slower per instruction
  kReadsAnyStride = 1 << 5,  // of TOP_K: as fast on sequences with any stride as on contiguous ones
  kWithoutTensorCores = 1 << 6,  // of products
  kActivatesLater = 1 << 7,      // of products: the activation is a separate pass
};

template <typename Problem>
struct Implementation {
  const char* name;  // "cpu.heap": the backend, and what it does
  CreateFunction<Problem>* create;
  BetterNotFunction<Problem>* better_not = nullptr;

  Exactness exactness = {};
  // Instead of `exactness`, if it depends on the problem (on the length of a sum).
  Exactness (*bound)(const Problem& problem) = nullptr;
  uint32_t abilities = 0;  // bits of Ability
};

// Why the device's kernels are out before a problem of these types (bits as in DeviceTraits::data_types) is
// looked at: the host was forced, or the device lacks a type. Empty otherwise.
std::string WhyNotOnDevice(const LowerContext& context, uint32_t data_types);
// For ChooseKernel, if a device has no implementation.
bool MayRunOnHost(const LowerContext& context);
LowerContext HostContextOf(const LowerContext& context);
// `why`: the reasons of the device's implementations.
void RunOnHost(LoweredOperator on_host, const std::string& why, const LowerContext& context,
               LoweredOperator* out);

// Records the decision about each implementation, as text.
class Decision {
 public:
  explicit Decision(const LowerContext& context) : context_(context) {}

  // The reason that excludes `name` before its problem is considered; empty if there is none.
  std::string RuledOut(const char* name) const;

  void Refuse(const char* name, std::string reason) { verdicts_.push_back({name, std::move(reason)}); }
  void Choose(const char* name, std::unique_ptr<const Kernel> kernel, const Exactness& exactness,
              uint32_t abilities);

  // Moves the result to `out`; without a choice fails with kUnsupported and the reasons.
  Status Conclude(LoweredOperator* out) &&;

 private:
  struct Verdict {
    const char* name;
    std::string text;
  };
  std::string Join(const char* separator) const;

  const LowerContext& context_;
  const char* chosen_ = nullptr;
  uint32_t abilities_ = 0;
  std::unique_ptr<const Kernel> kernel_;
  Exactness exactness_;
  std::vector<Verdict> verdicts_;
};

// Lowers `problem` to the first implementation of `list` that fits, or to the forced one: sets the kernel and
// its description, but not `in_place`.
template <typename Problem>
Status ChooseKernel(std::span<const Implementation<Problem>> list, const Problem& problem,
                    const LowerContext& context, LoweredOperator* out) {
  const CurrentDevice current(*context.device);
  Decision decision(context);
  for (const Implementation<Problem>& candidate : list) {
    std::string why_not = decision.RuledOut(candidate.name);
    if (why_not.empty() && context.implementation.empty() && candidate.better_not != nullptr) {
      why_not = candidate.better_not(problem, context);
    }
    std::unique_ptr<const Kernel> kernel;
    if (why_not.empty()) kernel = candidate.create(problem, context, &why_not);
    if (kernel != nullptr) {
      decision.Choose(candidate.name, std::move(kernel),
                      candidate.bound != nullptr ? candidate.bound(problem) : candidate.exactness,
                      candidate.abilities);
    } else {
      decision.Refuse(candidate.name, why_not);
    }
  }
  return std::move(decision).Conclude(out);
}

// The device's implementations of a family, fastest first.
template <typename Problem>
std::span<const Implementation<Problem>> ImplementationsFor(const DeviceTraits& device) {
  return ColumnOf(device).Of<Problem>();
}

// Whether the device has an implementation for every problem of the family.
template <typename Problem>
bool TakesEverything(const DeviceTraits& device) {
  const auto list = ImplementationsFor<Problem>(device);
  return !list.empty() && (list.back().abilities & kIsReference) != 0;
}

// Lowers `problem` to one of the device's implementations or, if none fits and the context allows it, to one
// that runs on the host (kernel/host_kernel.h). Composite kernels choose their parts with it, too, from any
// family, with context.ForPart().
template <typename Problem>
Status ChooseKernel(const Problem& problem, const LowerContext& context, LoweredOperator* out) {
  uint32_t data_types = 0;  // operators' are looked at by LowerOperator, those of other nodes of graphs here
  if constexpr (requires { problem.data_types(); }) data_types = problem.data_types();
  const std::string why_not = WhyNotOnDevice(context, data_types);
  Status status = why_not.empty()
                      ? ChooseKernel(ImplementationsFor<Problem>(*context.device), problem, context, out)
                      : Status(Code::kUnsupported, why_not);
  if (status.ok() || !MayRunOnHost(context)) return status;
  LoweredOperator on_host;
  ANYDML_RETURN_IF_ERROR(
      ChooseKernel(ImplementationsFor<Problem>(kHostDevice), problem, HostContextOf(context), &on_host));
  RunOnHost(std::move(on_host), status.message(), context, out);
  return {};
}

}  // namespace anydml
