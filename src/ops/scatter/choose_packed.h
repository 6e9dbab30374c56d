// The choice between packed single indices in vectors (Highway, with run-time dispatch).
// Every thread looks at all indices to find those that it owns: this must cost next to nothing.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/scatter/plan.h"

namespace anydml {

// Dimensions must be smaller: then a negative index of 32 bits is never taken for one in range.
inline constexpr uint64_t kVectorSizeLimit = uint64_t{1} << 31;

// Bit i of chosen[w]: indices[64 * w + i] is in range of `component` and belongs to `owner`;
// wrapped[64 * w + i] is that index, wrapped. False when one of them is out of range.
bool ChoosePackedBits(const uint32_t* indices, uint32_t words, const ScatterPlan::Component& component,
                      const ScatterOwner& owner, uint32_t* wrapped, uint64_t* chosen);
bool ChoosePackedBits(const uint64_t* indices, uint32_t words, const ScatterPlan::Component& component,
                      const ScatterOwner& owner, uint64_t* wrapped, uint64_t* chosen);

template <typename Index>
bool ChoosePacked(const Index* indices, uint32_t words, const ScatterPlan::Component& component,
                  const ScatterOwner& owner, std::make_unsigned_t<Index>* wrapped, uint64_t* chosen) {
  return ChoosePackedBits(reinterpret_cast<const std::make_unsigned_t<Index>*>(indices), words, component,
                          owner, wrapped, chosen);
}

}  // namespace anydml
