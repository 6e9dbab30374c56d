// Sets of dimensions, from the Axes of operators.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "schema/operator_desc.h"

namespace anydml {

// A bit per dimension.
using AxisSet = uint32_t;

constexpr AxisSet ToAxisSet(std::span<const uint32_t> axes) {
  AxisSet set = 0;
  for (const uint32_t axis : axes) set |= AxisSet{1} << axis;
  return set;
}
constexpr bool Has(AxisSet set, uint32_t axis) { return (set >> axis & 1) != 0; }

// Axes are dimensions of InputTensor, each at most once. An empty list is allowed.
Status CheckAxes(const OperatorDesc& desc, std::span<const uint32_t> axes);

// `sizes` with 1 for the dimensions of the set.
constexpr Dimensions WithoutAxes(const Dimensions& sizes, AxisSet axes) {
  Dimensions rest = sizes;
  for (uint32_t d = 0; d < kMaxDimensions; ++d) {
    if (Has(axes, d)) rest[d] = 1;
  }
  return rest;
}

}  // namespace anydml
