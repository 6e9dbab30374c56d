#include "anydml/output_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "anydml/npy.h"

namespace anydml::tools {
namespace {

Status CannotWrite(const std::string& path) {
  return Status(Code::kFail, StrCat(path, ": cannot be written: ", std::strerror(errno)));
}

bool WriteAll(int file, const void* data, size_t bytes) {
  const char* position = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = write(file, position, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    position += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

// Where the file really goes: renaming must replace what a link points to, not
// the link, and never a device such as /dev/null.
Status ResolveTarget(const std::string& path, std::string* target) {
  *target = path;
  struct stat info;
  if (stat(path.c_str(), &info) != 0) return errno == ENOENT ? Status() : CannotWrite(path);
  if (!S_ISREG(info.st_mode))
    return Status(Code::kFail, StrCat(path, ": cannot be written: not a regular file"));
  if (access(path.c_str(), W_OK) != 0) return CannotWrite(path);
  char resolved[PATH_MAX];
  if (realpath(path.c_str(), resolved) == nullptr) return CannotWrite(path);
  *target = resolved;
  return {};
}

// mkstemp makes files for the owner only; give them what open() would have.
void SetUsualMode(int file) {
  const mode_t mask = umask(0);
  umask(mask);
  (void)!fchmod(file, 0666 & ~mask);
}

}  // namespace

OutputFiles::~OutputFiles() {
  for (const Pending& file : pending_) unlink(file.temporary.c_str());
}

Status OutputFiles::AddNpy(const std::string& path, const TensorDesc& tensor,
                           std::span<const std::byte> data) {
  const uint64_t bytes = ElementCount(tensor) * (BitSize(tensor.type) / 8);
  return Add(path, NpyHeader(tensor), data.first(bytes));
}

Status OutputFiles::AddRaw(const std::string& path, std::span<const std::byte> data) {
  return Add(path, "", data);
}

Status OutputFiles::Add(const std::string& path, const std::string& header, std::span<const std::byte> data) {
  std::string target;
  ANYDML_RETURN_IF_ERROR(ResolveTarget(path, &target));
  std::string temporary = target + ".XXXXXX";
  const int file = mkstemp(temporary.data());
  if (file < 0) return CannotWrite(path);
  pending_.push_back({temporary, target});
  SetUsualMode(file);
  const bool written =
      WriteAll(file, header.data(), header.size()) && WriteAll(file, data.data(), data.size());
  const Status status = written ? Status() : CannotWrite(path);
  if (close(file) != 0 && status.ok()) return CannotWrite(path);
  return status;
}

Status OutputFiles::Commit() {
  while (!pending_.empty()) {
    const Pending& file = pending_.back();
    if (rename(file.temporary.c_str(), file.path.c_str()) != 0) return CannotWrite(file.path);
    pending_.pop_back();
  }
  return {};
}

}  // namespace anydml::tools
