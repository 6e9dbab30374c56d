// Kernels of the CPU that know how long they take, and use little of the stack: a short run may be on a
// thread of the application, whatever that has.
#pragma once

#include <cstdint>

namespace anydml {

class WorkEstimate {
 public:
  // Who has none may take any time.
  static constexpr uint64_t kUnknown = UINT64_MAX;

  // A run takes at most as long as moving so many bytes, from a cache; so also where threads share it, which
  // are no more than the caller where the others are busy.
  virtual uint64_t work_bytes() const = 0;

 protected:
  ~WorkEstimate() = default;
};

}  // namespace anydml
