// Shared by the fuzzers: decisions from bytes, and a way to report errors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "support/byte_source.h"

// One run of the target on one input; libFuzzer and replay_main.cc call it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace anydml::fuzz {

using testing::ByteSource;

// Ends the process if `condition` does not hold; libFuzzer keeps the input.
inline void Require(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: %s\n", what.c_str());
  std::abort();
}

}  // namespace anydml::fuzz
