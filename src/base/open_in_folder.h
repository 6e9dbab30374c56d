// Files of a folder that somebody else may change at the same time.
#pragma once

#include <filesystem>

namespace anydml {

// Opens a file in `folder`, or below it, or the folder itself, with `flags` of open(2). Both paths are
// absolute and resolved: no part of them is "." or "..", and none was a symbolic link when the caller looked.
// No part of `file` below `folder` is followed if it has become a link since: checking a path and opening it
// later by its name would read whatever it leads to by then. Returns the descriptor, or -1 with the reason in
// errno.
int OpenInFolder(const std::filesystem::path& folder, const std::filesystem::path& file, int flags);

}  // namespace anydml
