// Whole files in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace anydml::tools {

// Only regular files, whose size is known before they are read, and at most `max_bytes`.
Status ReadFile(const std::string& path, uint64_t max_bytes, std::vector<std::byte>* bytes);

// A quarter of this machine's memory, for all buffers of a model together: next to a buffer there may be the
// values that it gets or that are read back from it, and operators need memory of their own.
uint64_t LargestBuffer();

}  // namespace anydml::tools
