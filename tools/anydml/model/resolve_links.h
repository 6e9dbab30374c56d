// Where a path leads.
#pragma once

#include <filesystem>

#include "base/status.h"

namespace anydml::tools {

// The absolute path without ".", ".." and symbolic links, whether what it names exists or not: a link to
// nothing yet leads to where a file would be created.
Status ResolveLinks(const std::filesystem::path& path, std::filesystem::path* out);

}  // namespace anydml::tools
