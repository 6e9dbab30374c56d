// CPU kernels that know how long they take and use little stack: a short one may run on a thread of the
// application, whatever stack that has.
#pragma once

#include <cstdint>

namespace anydml {

class WorkEstimate {
 public:
  // Without an estimate, a run may take any time.
  static constexpr uint64_t kUnknown = UINT64_MAX;

  // A run takes at most as long as moving this many bytes from and to a cache. Shared work counts in full,
  // since busy threads may leave all of it to the caller.
  virtual uint64_t work_bytes() const = 0;

 protected:
  ~WorkEstimate() = default;
};

}  // namespace anydml
