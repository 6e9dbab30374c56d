#include "base/open_in_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace anydml {

// Part by part, each relative to the folder before it, which every kernel can do: openat2 does it at once,
// but Linux has it from 5.6 on only, and sandboxes often forbid it.
int OpenInFolder(const std::filesystem::path& folder, const std::filesystem::path& file, int flags) {
  const auto [end, first] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  if (end != folder.end()) {
    errno = EXDEV;
    return -1;
  }
  if (first == file.end()) return open(folder.c_str(), flags);
  int at = open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (auto part = first; part != file.end() && at >= 0;) {
    const std::filesystem::path name = *part++;
    const bool last = part == file.end();
    const int next = openat(at, name.c_str(), (last ? flags : O_PATH | O_DIRECTORY | O_CLOEXEC) | O_NOFOLLOW);
    const int error = errno;
    close(at);
    errno = error;
    at = next;
  }
  return at;
}

}  // namespace anydml
