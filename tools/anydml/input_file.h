// Whole files in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace anydml::tools {

// Fails on a file longer than `max_bytes`; endless ones (/dev/zero) end there.
Status ReadFile(const std::string& path, uint64_t max_bytes, std::vector<std::byte>* bytes);

// A quarter of this machine's memory, for all buffers of a model together: of every buffer there are the
// values here, the copy that is uploaded, the buffer itself, and what is read back from it.
uint64_t LargestBuffer();

}  // namespace anydml::tools
