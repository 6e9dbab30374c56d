// What implementations want to know about a device when they are chosen and created.
#pragma once

#include <cstdint>

namespace anydml {

struct DeviceProperties {
  int ordinal = 0;                      // CUDA's number of the device
  uint32_t multiprocessors = 1;         // of a CPU: its threads
  uint64_t shared_bytes_per_block = 0;  // the most that a kernel may ask for
  uint64_t l2_bytes = 0;                // 0: unknown

  // Makes device `ordinal` the calling thread's current one and returns the one before; null where
  // there is nothing of the kind.
  int (*make_current)(int ordinal) = nullptr;
};

// What CUDA tells or sets, it does for the thread's current device, which may be the application's choice.
class CurrentDevice {
 public:
  explicit CurrentDevice(const DeviceProperties* device)
      : make_current_(device != nullptr ? device->make_current : nullptr),
        before_(make_current_ != nullptr ? make_current_(device->ordinal) : 0) {}
  ~CurrentDevice() {
    if (make_current_ != nullptr) make_current_(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

 private:
  int (*const make_current_)(int);
  const int before_;
};

}  // namespace anydml
