// Resolves paths.
#pragma once

#include <filesystem>

#include "base/status.h"

namespace anydml::client {

// The absolute path without ".", ".." and symbolic links, whether it exists or not: a dangling link leads to
// where a file would be created.
Status ResolveLinks(const std::filesystem::path& path, std::filesystem::path* out);

}  // namespace anydml::client
