#include "anydml/output_files.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

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

// The temporary files that exist. Whoever creates, renames or removes one holds the lock, so
// that the thread below finds every one of them.
struct TemporaryFiles {
  std::mutex mutex;
  std::set<std::string> paths;
};

TemporaryFiles& AllTemporaryFiles() {
  static auto* files = new TemporaryFiles;  // never destroyed: a signal may come at exit
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

// Waits for one of the signals and dies of it, as a program without this thread would.
void WaitAndDie(sigset_t signals) {
  int number = 0;
  for (;;) {
    if (sigwait(&signals, &number) != 0) continue;
    void (*const handler)() = number == SIGINT ? on_interrupt.exchange(nullptr) : nullptr;
    if (handler == nullptr) break;
    handler();
  }
  TemporaryFiles& files = AllTemporaryFiles();
  files.mutex.lock();  // for good: no file is created or named any more
  for (const std::string& path : files.paths) unlink(path.c_str());
  signal(number, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  raise(number);
}

// mkstemp makes files for the owner only; give them what open() would have.
void SetUsualMode(int file) {
  const mode_t mask = umask(0);
  umask(mask);
  (void)!fchmod(file, 0666 & ~mask);
}

}  // namespace

void RemoveTemporaryFilesOnSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action;
    // A signal that the caller ignores (nohup) stays ignored.
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&signals, number);
  }
  // Threads that are created later inherit the mask: the signals come to this one only.
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread(WaitAndDie, signals).detach();
}

void OnInterrupt(void (*handler)()) { on_interrupt = handler; }

OutputFiles::~OutputFiles() {
  for (const Pending& file : pending_) RemoveTemporary(file.temporary);
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
  const int file = CreateTemporary(&temporary);
  if (file < 0) return CannotWrite(path);
  pending_.push_back({temporary, target});
  SetUsualMode(file);
  const bool written =
      WriteAll(file, header.data(), header.size()) && WriteAll(file, data.data(), data.size());
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

}  // namespace anydml::tools
