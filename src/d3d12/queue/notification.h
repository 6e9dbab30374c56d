// A waiter for fences: an event of the application, or a thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include <d3d12.h>

namespace anydml::d3d12 {

// Delivered once, when Fire has been called `needed` times.
class Notification {
 public:
  // For a thread that calls Block.
  explicit Notification(uint32_t needed) : needed_(needed) {}
  // For an event: takes ownership of the file descriptor and writes to it on delivery.
  Notification(uint32_t needed, int event_fd) : needed_(needed), event_fd_(event_fd) {}
  ~Notification();
  Notification(const Notification&) = delete;
  Notification& operator=(const Notification&) = delete;

  void Fire();
  void Cancel() { Deliver(); }  // delivers now, however many calls of Fire are missing
  int Block();                  // returns the processor of the delivering thread

 private:
  void Deliver();

  std::atomic<int64_t> needed_;
  std::atomic<int> event_fd_{-1};
  std::mutex mutex_;
  std::condition_variable delivered_changed_;
  bool delivered_ = false;
  int delivered_from_ = 0;
};

// Our own descriptor of the eventfd in `event` (the application may close its handle before the fence is
// reached), or an error: -EBADF if it has none, -EMFILE if the process has no descriptor left.
int DuplicateEvent(HANDLE event);

}  // namespace anydml::d3d12
