// What a graph and a queue have to know about an operator, without knowing what it computes. Every operator
// states it beside its lowering; a test fails where one does not.
#pragma once

#include <cstdint>
#include <limits>

#include "kernel/device_traits.h"
#include "schema/operator_desc.h"

namespace anydml {

// Which order of the elements in memory an operator is fast with (graph/passes/layouts.cc).
enum class LayoutPreference : uint8_t {
  kChannels,      // fast with contiguous channels
  kChannelsOnly,  // the same, but only if both input and output have them
  kAgreement,     // any order, but the same in all tensors
  kAny,
  kAsGiven,
};

// For OperatorTraits::layout.
inline LayoutPreference LayoutAsGiven(const OperatorDesc&, const DeviceTraits&) {
  return LayoutPreference::kAsGiven;
}
inline LayoutPreference LayoutOfAll(const OperatorDesc&, const DeviceTraits&) {
  return LayoutPreference::kAgreement;
}
inline LayoutPreference AnyLayout(const OperatorDesc&, const DeviceTraits&) { return LayoutPreference::kAny; }

// For OperatorTraits::work_bytes: the data or a window decide, or nobody has measured.
inline double UnknownWork(const OperatorDesc&) { return std::numeric_limits<double>::infinity(); }

// What happens to an operator whose tensors get other strides or addresses.
enum class Strides : uint8_t {
  kUnstated,
  kRestricted,      // its check refuses some
  kMatter,          // it takes any, but another order may be slower, and addresses may have to be aligned
  kMatterInOutput,  // the same, but inputs are packed before they are used: their order does not matter
  kDoNotMatter,     // any strides at any address are as fast
};

// Whether kernels of the operator can be called for a few rows at a time (graph/passes/fuse_prologue.cc).
enum class RowUse : uint8_t {
  kUnstated,
  kTogether,
  kInBlocks,  // sets of elements along `Axes` do not depend on each other
};

struct OperatorTraits {
  LayoutPreference (*layout)(const OperatorDesc& desc, const DeviceTraits& device) = nullptr;
  Strides strides = Strides::kUnstated;
  RowUse rows = RowUse::kUnstated;
  // How much work a kernel on the host may be at most (ops/work.h).
  double (*work_bytes)(const OperatorDesc& desc) = nullptr;

  // The same, with one of them changed.
  constexpr OperatorTraits With(LayoutPreference (*value)(const OperatorDesc&, const DeviceTraits&)) const {
    OperatorTraits copy = *this;
    copy.layout = value;
    return copy;
  }
  constexpr OperatorTraits With(Strides value) const {
    OperatorTraits copy = *this;
    copy.strides = value;
    return copy;
  }
  constexpr OperatorTraits With(RowUse value) const {
    OperatorTraits copy = *this;
    copy.rows = value;
    return copy;
  }
  constexpr OperatorTraits With(double (*value)(const OperatorDesc&)) const {
    OperatorTraits copy = *this;
    copy.work_bytes = value;
    return copy;
  }
};

// An operator that a graph leaves as the client describes it.
inline constexpr OperatorTraits kPlainTraits = {.layout = LayoutAsGiven,
                                                .strides = Strides::kMatter,
                                                .rows = RowUse::kTogether,
                                                .work_bytes = UnknownWork};

}  // namespace anydml
