#include "client/values/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/open_in_folder.h"

namespace anydml::client {
namespace {

Status ErrnoStatus(const std::string& path) {
  return Status(Code::kFail, StrCat(path, ": ", std::strerror(errno)));
}

// Reads as many bytes as there are, up to `bytes`; -1 and errno if that fails.
ssize_t ReadUpTo(int file, std::byte* to, size_t bytes) {
  size_t filled = 0;
  while (filled < bytes) {
    const ssize_t got = read(file, to + filled, bytes - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  return static_cast<ssize_t>(filled);
}

Status ReadAll(int file, const std::string& path, uint64_t max_bytes, std::vector<std::byte>* bytes) {
  struct stat info;
  if (fstat(file, &info) != 0) return ErrnoStatus(path);
  if (S_ISDIR(info.st_mode)) return Status(Code::kFail, StrCat(path, ": is a directory"));
  if (!S_ISREG(info.st_mode)) return Status(Code::kFail, StrCat(path, ": is not a regular file"));
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size > max_bytes) {
    return Status(Code::kFail, StrCat(path, ": is longer than ", max_bytes, " bytes, the most that is read"));
  }
  bytes->resize(size);
  const ssize_t got = ReadUpTo(file, bytes->data(), size);
  if (got < 0) return ErrnoStatus(path);
  std::byte more;
  const ssize_t beyond = ReadUpTo(file, &more, 1);
  if (beyond < 0) return ErrnoStatus(path);
  if (static_cast<uint64_t>(got) == size && beyond == 0) return {};
  return Status(Code::kFail, StrCat(path, ": holds ", beyond > 0 ? "more" : "less", " than the ", size,
                                    " bytes that it is said to be long"));
}

}  // namespace

Status ReadFile(const InputPath& path, uint64_t max_bytes, std::vector<std::byte>* bytes) {
  // Does not wait for the writer of a pipe, since pipes are refused below.
  constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const int file = path.folder.empty() ? open(path.path.c_str(), kFlags)
                                       : OpenInFolder(path.folder, path.resolved, kFlags);
  if (file < 0) return ErrnoStatus(path.path);
  Status status = ReadAll(file, path.path, max_bytes, bytes);
  close(file);
  return status;
}

uint64_t LargestBuffer() {
  const auto memory = static_cast<uint64_t>(std::max(0L, sysconf(_SC_PHYS_PAGES))) *
                      static_cast<uint64_t>(std::max(0L, sysconf(_SC_PAGESIZE)));
  return memory / 4;
}

}  // namespace anydml::client
