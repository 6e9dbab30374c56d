// Reads whole files into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace anydml::client {

// Where a file is.
struct InputPath {
  InputPath() = default;
  InputPath(std::string path) : path(std::move(path)) {}  // NOLINT: any path is one

  std::string path;  // as sentences name it
  // Where it has to be in a folder: that and the file, resolved (base/open_in_folder.h).
  std::filesystem::path folder, resolved;
};

// Only regular files, whose size is known in advance, and at most `max_bytes`.
Status ReadFile(const InputPath& path, uint64_t max_bytes, std::vector<std::byte>* bytes);

// A quarter of this machine's memory, for all buffers of a model together: besides a buffer there may be its
// initial values or the values read back, and operators need memory of their own.
uint64_t LargestBuffer();

}  // namespace anydml::client
