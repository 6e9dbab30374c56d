// Selects from packed tuples of one or two indices with vectors (Highway, with run-time dispatch). Every
// thread looks at all tuples to find those that it owns, so this must cost next to nothing.
#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/scatter/loops.h"

namespace anydml {

// Bit i of chosen[w]: the tuple of position 64 * w + i is in range and belongs to `owner`;
// keys[64 * w + i] is its key. False when one of them is out of range. `loops` are packed.
bool ChoosePackedBits(const uint32_t* indices, uint32_t words, const ScatterLoops& loops,
                      const ScatterOwner& owner, uint32_t* keys, uint64_t* chosen);
bool ChoosePackedBits(const uint64_t* indices, uint32_t words, const ScatterLoops& loops,
                      const ScatterOwner& owner, uint64_t* keys, uint64_t* chosen);

template <typename Index>
bool ChoosePacked(const Index* indices, uint32_t words, const ScatterLoops& loops, const ScatterOwner& owner,
                  std::make_unsigned_t<Index>* keys, uint64_t* chosen) {
  return ChoosePackedBits(reinterpret_cast<const std::make_unsigned_t<Index>*>(indices), words, loops, owner,
                          keys, chosen);
}

}  // namespace anydml
