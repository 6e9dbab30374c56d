#include "anydml/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace anydml::tools {
namespace {

Status ErrnoStatus(const std::string& path) {
  return Status(Code::kFail, StrCat(path, ": ", std::strerror(errno)));
}

Status TooLong(const std::string& path, uint64_t max_bytes) {
  return Status(Code::kFail, StrCat(path, ": is longer than ", max_bytes, " bytes, the most that is read"));
}

Status ReadAll(int file, const std::string& path, uint64_t max_bytes, std::vector<std::byte>* bytes) {
  struct stat info;
  if (fstat(file, &info) != 0) return ErrnoStatus(path);
  if (S_ISDIR(info.st_mode)) return Status(Code::kFail, StrCat(path, ": is a directory"));
  if (static_cast<uint64_t>(info.st_size) > max_bytes) return TooLong(path, max_bytes);
  // One byte more than the size, so that the end of file is seen without growing.
  bytes->resize(S_ISREG(info.st_mode) ? static_cast<size_t>(info.st_size) + 1 : size_t{1} << 16);
  size_t filled = 0;
  for (;;) {
    const ssize_t got = read(file, bytes->data() + filled, bytes->size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(path);
    if (got == 0) break;
    filled += static_cast<size_t>(got);
    if (filled > max_bytes) return TooLong(path, max_bytes);
    if (filled == bytes->size()) bytes->resize(std::min(bytes->size() * 2, size_t{max_bytes} + 1));
  }
  bytes->resize(filled);
  return {};
}

}  // namespace

Status ReadFile(const std::string& path, uint64_t max_bytes, std::vector<std::byte>* bytes) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return ErrnoStatus(path);
  Status status = ReadAll(file, path, max_bytes, bytes);
  close(file);
  return status;
}

uint64_t LargestBuffer() {
  const auto memory = static_cast<uint64_t>(std::max(0L, sysconf(_SC_PHYS_PAGES))) *
                      static_cast<uint64_t>(std::max(0L, sysconf(_SC_PAGESIZE)));
  return memory / 4;
}

}  // namespace anydml::tools
