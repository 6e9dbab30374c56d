// Operator descriptions from bytes: a valid one of any operator, broken in as many places as the input
// specifies.
#pragma once

#include "fuzz.h"
#include "support/desc_builder.h"

namespace anydml::fuzz {

// The arrays are exactly as long as their counts say, so that a sanitizer sees every read beyond them; an
// absurd count must be refused before anything is read.
testing::DescBuilder HostileDesc(ByteSource& source, FeatureLevel level);

// A number that is likely to be an edge case.
uint32_t OddWord(ByteSource& source);

}  // namespace anydml::fuzz
