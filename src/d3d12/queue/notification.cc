#include "d3d12/queue/notification.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/sanitizers.h"

namespace anydml::d3d12 {

Notification::~Notification() {
  const int fd = event_fd_.load(std::memory_order_relaxed);
  if (fd >= 0) close(fd);
}

void Notification::Fire() {
  if (needed_.fetch_sub(1, std::memory_order_acq_rel) == 1) Deliver();
}

void Notification::Deliver() {
  const int fd = event_fd_.exchange(-1, std::memory_order_acq_rel);
  if (fd >= 0) {
    const uint64_t one = 1;
    // The write would block on a full counter; then the event is set anyway.
    pollfd writable = {fd, POLLOUT, 0};
    if (poll(&writable, 1, 0) == 1) {
      [[maybe_unused]] const ssize_t written = write(fd, &one, sizeof(one));
    }
    close(fd);
    return;
  }
  std::lock_guard lock(mutex_);
  delivered_ = true;
  delivered_from_ = sched_getcpu();
  delivered_changed_.notify_all();
}

int Notification::Block() {
  std::unique_lock lock(mutex_);
  delivered_changed_.wait(lock, [this] { return delivered_; });
  return delivered_from_;
}

int DuplicateEvent(HANDLE event) {
  // The low half is the descriptor; Win32 emulations store flags in the high half.
  const int fd = static_cast<int>(static_cast<uint32_t>(reinterpret_cast<uintptr_t>(event)));
  struct stat status {};
  // Eventfds are anonymous inodes, which have no file type. Nothing else (a file, stdout, a socket) may get
  // eight bytes written to it.
  if (fd < 0 || fstat(fd, &status) != 0 || (status.st_mode & S_IFMT) != 0) return -EBADF;
  // ThreadSanitizer tracks the synchronisation through an event across dup, but not across fcntl.
  const int copy = kThreadSanitizer ? dup(fd) : fcntl(fd, F_DUPFD_CLOEXEC, 0);
  return copy >= 0 ? copy : -errno;
}

}  // namespace anydml::d3d12
