// Win32 events on eventfd.
//
// A HANDLE carries the file descriptor in its low 32 bits and, for a
// manual-reset event, bit 32. Descriptor 0 is never used, so that no event is a
// null HANDLE. The Direct3D 12 library signals an event by writing 8 bytes to
// the descriptor and needs nothing else from this header.
//
// An eventfd counts; an event does not. One read takes the whole count, hence
// several SetEvents release one waiter, as on Windows.
#ifndef ANYDML_SUPPORT_WIN_EVENTS_H_
#define ANYDML_SUPPORT_WIN_EVENTS_H_

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <anydml_support/win_error.h>

#ifndef INFINITE
#define INFINITE 0xffffffffu
#endif
#ifndef WAIT_OBJECT_0
#define WAIT_OBJECT_0 0u
#define WAIT_ABANDONED 0x80u
#define WAIT_IO_COMPLETION 0xc0u
#define WAIT_TIMEOUT 258u
#define WAIT_FAILED 0xffffffffu
#endif
#ifndef MAXIMUM_WAIT_OBJECTS
#define MAXIMUM_WAIT_OBJECTS 64
#endif
#ifndef INVALID_HANDLE_VALUE
#define INVALID_HANDLE_VALUE ((HANDLE)(LONG_PTR)-1)
#endif
#ifndef CREATE_EVENT_MANUAL_RESET
#define CREATE_EVENT_MANUAL_RESET 0x1u
#define CREATE_EVENT_INITIAL_SET 0x2u
#endif
#ifndef EVENT_ALL_ACCESS
#define EVENT_MODIFY_STATE 0x2u
#define EVENT_ALL_ACCESS 0x1f0003u
#endif
#ifndef SYNCHRONIZE
#define SYNCHRONIZE 0x100000u
#endif

namespace anydml_support {

constexpr uint64_t kManualResetBit = uint64_t{1} << 32;

inline HANDLE MakeEventHandle(int fd, bool manual_reset) {
  const uint64_t bits = static_cast<uint32_t>(fd) | (manual_reset ? kManualResetBit : 0);
  return reinterpret_cast<HANDLE>(static_cast<intptr_t>(bits));
}

inline uint64_t EventBits(HANDLE handle) { return static_cast<uint64_t>(reinterpret_cast<intptr_t>(handle)); }

inline int EventFd(HANDLE handle) { return static_cast<int>(EventBits(handle) & 0xffffffffu); }

inline bool IsManualReset(HANDLE handle) { return (EventBits(handle) & kManualResetBit) != 0; }

inline bool IsEventHandle(HANDLE handle) {
  return handle != nullptr && handle != INVALID_HANDLE_VALUE && EventFd(handle) > 0;
}

// A point in time that a wait ends at.
class Deadline {
 public:
  explicit Deadline(DWORD milliseconds) : infinite_(milliseconds == INFINITE), end_(Now() + milliseconds) {}

  // What poll() may wait for; -1 for ever. Longer waits come in pieces.
  int PollTimeout() const {
    if (infinite_) return -1;
    const int64_t left = end_ - Now();
    if (left <= 0) return 0;
    return left > INT_MAX ? INT_MAX : static_cast<int>(left);
  }

 private:
  static int64_t Now() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
  }

  bool infinite_;
  int64_t end_;
};

enum class PollResult { kReady, kTimeout, kFailed };

// Waits until at least one of `fds` is readable.
inline PollResult PollAny(pollfd* fds, DWORD count, const Deadline& deadline) {
  for (;;) {
    const int timeout = deadline.PollTimeout();
    const int ready = poll(fds, count, timeout);
    if (ready > 0) {
      for (DWORD i = 0; i < count; ++i) {
        if (fds[i].revents & (POLLNVAL | POLLERR)) {
          return FailWith(ERROR_INVALID_HANDLE, PollResult::kFailed);
        }
      }
      return PollResult::kReady;
    }
    if (ready < 0 && errno != EINTR) {
      return FailWith(ErrorFromErrno(errno), PollResult::kFailed);
    }
    if (ready == 0 && deadline.PollTimeout() == 0) return PollResult::kTimeout;
  }
}

// Ends a wait on a signalled event: takes the signal of an auto-reset event.
// False if another waiter was faster.
inline bool TakeSignal(HANDLE handle) {
  if (IsManualReset(handle)) return true;
  uint64_t count;
  ssize_t bytes;
  do {
    bytes = read(EventFd(handle), &count, sizeof(count));
  } while (bytes < 0 && errno == EINTR);
  return bytes == static_cast<ssize_t>(sizeof(count));
}

}  // namespace anydml_support

// -----------------------------------------------------------------------------
// Creating, signalling and closing
// -----------------------------------------------------------------------------

inline HANDLE CreateEventA(SECURITY_ATTRIBUTES* /*attributes*/, BOOL manual_reset, BOOL initial_state,
                           const char* name) {
  using namespace anydml_support;
  // A name would promise sharing between processes.
  if (name != nullptr) {
    return FailWith(ERROR_NOT_SUPPORTED, static_cast<HANDLE>(nullptr));
  }
  int fd = eventfd(initial_state ? 1 : 0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (fd == 0) {  // Only when the program has closed its standard input.
    const int moved = fcntl(fd, F_DUPFD_CLOEXEC, 1);
    const int error = errno;
    close(fd);
    errno = error;
    fd = moved;
  }
  if (fd < 0) {
    return FailWith(ErrorFromErrno(errno), static_cast<HANDLE>(nullptr));
  }
  return MakeEventHandle(fd, manual_reset != 0);
}

inline HANDLE CreateEventW(SECURITY_ATTRIBUTES* attributes, BOOL manual_reset, BOOL initial_state,
                           const wchar_t* name) {
  return CreateEventA(attributes, manual_reset, initial_state, name == nullptr ? nullptr : "");
}

// Two overloads instead of the UNICODE macro: both spellings of a call compile,
// and no member function called CreateEvent is renamed.
inline HANDLE CreateEvent(SECURITY_ATTRIBUTES* attributes, BOOL manual_reset, BOOL initial_state,
                          const char* name) {
  return CreateEventA(attributes, manual_reset, initial_state, name);
}
inline HANDLE CreateEvent(SECURITY_ATTRIBUTES* attributes, BOOL manual_reset, BOOL initial_state,
                          const wchar_t* name) {
  return CreateEventW(attributes, manual_reset, initial_state, name);
}
inline HANDLE CreateEvent(SECURITY_ATTRIBUTES* attributes, BOOL manual_reset, BOOL initial_state,
                          decltype(nullptr)) {
  return CreateEventA(attributes, manual_reset, initial_state, nullptr);
}

inline HANDLE CreateEventExA(SECURITY_ATTRIBUTES* attributes, const char* name, DWORD flags,
                             DWORD /*access*/) {
  return CreateEventA(attributes, (flags & CREATE_EVENT_MANUAL_RESET) != 0,
                      (flags & CREATE_EVENT_INITIAL_SET) != 0, name);
}
inline HANDLE CreateEventExW(SECURITY_ATTRIBUTES* attributes, const wchar_t* name, DWORD flags,
                             DWORD access) {
  return CreateEventExA(attributes, name == nullptr ? nullptr : "", flags, access);
}
inline HANDLE CreateEventEx(SECURITY_ATTRIBUTES* attributes, const char* name, DWORD flags, DWORD access) {
  return CreateEventExA(attributes, name, flags, access);
}
inline HANDLE CreateEventEx(SECURITY_ATTRIBUTES* attributes, const wchar_t* name, DWORD flags, DWORD access) {
  return CreateEventExW(attributes, name, flags, access);
}
inline HANDLE CreateEventEx(SECURITY_ATTRIBUTES* attributes, decltype(nullptr), DWORD flags, DWORD access) {
  return CreateEventExA(attributes, nullptr, flags, access);
}

inline BOOL SetEvent(HANDLE handle) {
  using namespace anydml_support;
  if (!IsEventHandle(handle)) return FailWith(ERROR_INVALID_HANDLE, FALSE);
  const uint64_t one = 1;
  ssize_t bytes;
  do {
    bytes = write(EventFd(handle), &one, sizeof(one));
  } while (bytes < 0 && errno == EINTR);
  // EAGAIN: the counter is full, so the event is signalled already.
  if (bytes < 0 && errno != EAGAIN) {
    return FailWith(ErrorFromErrno(errno), FALSE);
  }
  return TRUE;
}

inline BOOL ResetEvent(HANDLE handle) {
  using namespace anydml_support;
  if (!IsEventHandle(handle)) return FailWith(ERROR_INVALID_HANDLE, FALSE);
  uint64_t count;
  ssize_t bytes;
  do {
    bytes = read(EventFd(handle), &count, sizeof(count));
  } while (bytes < 0 && errno == EINTR);
  // EAGAIN: it was not signalled.
  if (bytes < 0 && errno != EAGAIN) {
    return FailWith(ErrorFromErrno(errno), FALSE);
  }
  return TRUE;
}

inline BOOL CloseHandle(HANDLE handle) {
  using namespace anydml_support;
  if (!IsEventHandle(handle)) return FailWith(ERROR_INVALID_HANDLE, FALSE);
  if (close(EventFd(handle)) != 0 && errno != EINTR) {
    return FailWith(ErrorFromErrno(errno), FALSE);
  }
  return TRUE;
}

// -----------------------------------------------------------------------------
// Waiting
// -----------------------------------------------------------------------------

inline DWORD WaitForSingleObject(HANDLE handle, DWORD milliseconds) {
  using namespace anydml_support;
  if (!IsEventHandle(handle)) {
    return FailWith(ERROR_INVALID_HANDLE, WAIT_FAILED);
  }
  const Deadline deadline(milliseconds);
  for (;;) {
    pollfd fd = {EventFd(handle), POLLIN, 0};
    const PollResult result = PollAny(&fd, 1, deadline);
    if (result == PollResult::kFailed) return WAIT_FAILED;
    if (result == PollResult::kTimeout) return WAIT_TIMEOUT;
    if (TakeSignal(handle)) return WAIT_OBJECT_0;
  }
}

inline DWORD WaitForSingleObjectEx(HANDLE handle, DWORD milliseconds, BOOL /*alertable*/) {
  return WaitForSingleObject(handle, milliseconds);
}

namespace anydml_support {

inline DWORD WaitForAny(DWORD count, const HANDLE* handles, const Deadline& deadline) {
  pollfd fds[MAXIMUM_WAIT_OBJECTS];
  for (;;) {
    for (DWORD i = 0; i < count; ++i) {
      fds[i] = {EventFd(handles[i]), POLLIN, 0};
    }
    const PollResult result = PollAny(fds, count, deadline);
    if (result == PollResult::kFailed) return WAIT_FAILED;
    if (result == PollResult::kTimeout) return WAIT_TIMEOUT;
    // The lowest index wins, as on Windows.
    for (DWORD i = 0; i < count; ++i) {
      if ((fds[i].revents & POLLIN) && TakeSignal(handles[i])) {
        return WAIT_OBJECT_0 + i;
      }
    }
  }
}

inline DWORD WaitForAll(DWORD count, const HANDLE* handles, const Deadline& deadline) {
  for (;;) {
    // One after the other without taking anything, so that a signal is not
    // stolen from others while a later event is still awaited.
    for (DWORD i = 0; i < count; ++i) {
      pollfd fd = {EventFd(handles[i]), POLLIN, 0};
      const PollResult result = PollAny(&fd, 1, deadline);
      if (result == PollResult::kFailed) return WAIT_FAILED;
      if (result == PollResult::kTimeout) return WAIT_TIMEOUT;
    }
    DWORD taken = 0;
    for (; taken < count; ++taken) {
      pollfd fd = {EventFd(handles[taken]), POLLIN, 0};
      if (poll(&fd, 1, 0) <= 0 || !TakeSignal(handles[taken])) break;
    }
    if (taken == count) return WAIT_OBJECT_0;
    // Another waiter was faster: give back what was taken and start again.
    for (DWORD i = 0; i < taken; ++i) {
      if (!IsManualReset(handles[i])) SetEvent(handles[i]);
    }
  }
}

}  // namespace anydml_support

inline DWORD WaitForMultipleObjects(DWORD count, const HANDLE* handles, BOOL wait_all, DWORD milliseconds) {
  using namespace anydml_support;
  if (count == 0 || count > MAXIMUM_WAIT_OBJECTS || handles == nullptr) {
    return FailWith(ERROR_INVALID_PARAMETER, WAIT_FAILED);
  }
  for (DWORD i = 0; i < count; ++i) {
    if (!IsEventHandle(handles[i])) {
      return FailWith(ERROR_INVALID_HANDLE, WAIT_FAILED);
    }
  }
  const Deadline deadline(milliseconds);
  return wait_all ? WaitForAll(count, handles, deadline) : WaitForAny(count, handles, deadline);
}

inline DWORD WaitForMultipleObjectsEx(DWORD count, const HANDLE* handles, BOOL wait_all, DWORD milliseconds,
                                      BOOL /*alertable*/) {
  return WaitForMultipleObjects(count, handles, wait_all, milliseconds);
}

#endif  // ANYDML_SUPPORT_WIN_EVENTS_H_
