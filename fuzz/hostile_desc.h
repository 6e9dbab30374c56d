// Operator descriptions from bytes: a valid one of any operator, spoiled in as many places as
// the input asks for.
#pragma once

#include "fuzz.h"
#include "support/desc_builder.h"

namespace anydml::fuzz {

// The arrays are exactly as long as their counts say, so that a sanitizer sees every read
// beyond them; a count that is absurd must be refused before anything is read.
testing::DescBuilder HostileDesc(ByteSource& source, FeatureLevel level);

// A number that is likely to be at the edge of something.
uint32_t OddWord(ByteSource& source);

}  // namespace anydml::fuzz
