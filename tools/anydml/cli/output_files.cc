#include "anydml/cli/output_files.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "anydml/model/resolve_links.h"
#include "client/packed_elements.h"
#include "client/values/npy.h"

namespace anydml::client {
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

struct Target {
  std::string path;
  std::optional<struct stat> replaced;  // the existing file
};

// Resolves links: renaming must replace the target of a link and not the link, and never a device such as
// /dev/null.
Status FindTarget(const std::string& path, Target* target) {
  std::filesystem::path resolved;
  ANYDML_RETURN_IF_ERROR(ResolveLinks(path, &resolved));
  target->path = resolved.string();
  struct stat info;
  // The original path, for the message; a dangling link counts as a missing file.
  if (stat(path.c_str(), &info) != 0) return errno == ENOENT ? Status() : CannotWrite(path);
  if (!S_ISREG(info.st_mode))
    return Status(Code::kFail, StrCat(path, ": cannot be written: not a regular file"));
  if (access(path.c_str(), W_OK) != 0) return CannotWrite(path);
  target->replaced = info;
  return {};
}

// The existing temporary files. Code that creates, renames or removes one holds the lock, so that the thread
// below finds them all.
struct TemporaryFiles {
  std::mutex mutex;
  std::set<std::string> paths;
};

TemporaryFiles& AllTemporaryFiles() {
  static auto* files = new TemporaryFiles;  // never destroyed, because a signal may arrive during exit
  return *files;
}

int CreateTemporary(std::string* path) {
  TemporaryFiles& files = AllTemporaryFiles();
  const std::lock_guard lock(files.mutex);
  const int file = mkstemp(path->data());
  if (file >= 0) files.paths.insert(*path);
  return file;
}

void RemoveTemporary(const std::string& path) {
  TemporaryFiles& files = AllTemporaryFiles();
  const std::lock_guard lock(files.mutex);
  unlink(path.c_str());
  files.paths.erase(path);
}

bool RenameTemporary(const std::string& temporary, const std::string& path) {
  TemporaryFiles& files = AllTemporaryFiles();
  const std::lock_guard lock(files.mutex);
  if (rename(temporary.c_str(), path.c_str()) != 0) return false;
  files.paths.erase(temporary);
  return true;
}

std::atomic<void (*)()> on_interrupt{nullptr};

// Waits for one of the signals and then dies of it, as a program without this thread would.
void WaitAndDie(sigset_t signals) {
  int number = 0;
  for (;;) {
    if (sigwait(&signals, &number) != 0) continue;
    void (*const handler)() = number == SIGINT ? on_interrupt.exchange(nullptr) : nullptr;
    if (handler == nullptr) break;
    handler();
  }
  TemporaryFiles& files = AllTemporaryFiles();
  files.mutex.lock();  // never released: no file is created or renamed any more
  for (const std::string& path : files.paths) unlink(path.c_str());
  signal(number, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  raise(number);
}

// mkstemp makes files for the owner only. A new file gets the permissions that open() would have set, a
// replaced one those of the old file and its owner.
bool SetMode(int file, const std::optional<struct stat>& replaced) {
  if (!replaced) {
    const mode_t mask = umask(0);
    umask(mask);
    return fchmod(file, 0666 & ~mask) == 0;
  }
  mode_t mode = replaced->st_mode & 0777;
  // If the group cannot be kept, the new group gets only the permissions of others.
  if (fchown(file, replaced->st_uid, replaced->st_gid) != 0) mode = (mode & 0707) | (mode & 0007) << 3;
  return fchmod(file, mode) == 0;
}

}  // namespace

Status RemoveTemporaryFilesOnSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action;
    // A signal that the caller ignores (nohup) stays ignored.
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&signals, number);
  }
  // Later threads inherit the mask, so the signals reach only this one.
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  try {
    std::thread(WaitAndDie, signals).detach();
    return {};
  } catch (const std::exception& error) {  // of the system, or of memory
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return Status(Code::kOutOfMemory,
                  StrCat("the thread that waits for signals cannot be started: ", error.what()));
  }
}

void OnInterrupt(void (*handler)()) { on_interrupt = handler; }

OutputFiles::~OutputFiles() {
  for (const Pending& file : pending_) RemoveTemporary(file.temporary);
}

Status OutputFiles::AddNpy(const std::string& path, const TensorDesc& tensor,
                           std::span<const std::byte> data) {
  const uint64_t count = ElementCount(tensor);
  if (IsFourBits(tensor.type)) return Add(path, NpyHeader(tensor), Unpack(tensor.type, data, count));
  return Add(path, NpyHeader(tensor), data.first(PackedBytes(tensor.type, count)));
}

Status OutputFiles::AddNpy(const std::string& path, DataType type, const std::vector<int64_t>& sizes,
                           std::span<const std::byte> data) {
  return Add(path, NpyHeader(type, sizes), data);
}

Status OutputFiles::AddRaw(const std::string& path, std::span<const std::byte> data) {
  return Add(path, "", data);
}

Status OutputFiles::Add(const std::string& path, const std::string& header, std::span<const std::byte> data) {
  Target target;
  ANYDML_RETURN_IF_ERROR(FindTarget(path, &target));
  std::string temporary = target.path + ".XXXXXX";
  const int file = CreateTemporary(&temporary);
  if (file < 0) return CannotWrite(path);
  pending_.push_back({temporary, target.path});
  const bool written = SetMode(file, target.replaced) && WriteAll(file, header.data(), header.size()) &&
                       WriteAll(file, data.data(), data.size());
  Status status = written ? Status() : CannotWrite(path);
  if (close(file) != 0 && status.ok()) return CannotWrite(path);
  return status;
}

Status OutputFiles::Commit() {
  while (!pending_.empty()) {
    const Pending& file = pending_.back();
    if (!RenameTemporary(file.temporary, file.path)) return CannotWrite(file.path);
    pending_.pop_back();
  }
  return {};
}

}  // namespace anydml::client
