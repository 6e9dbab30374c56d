// The common base of compiled operators and initializers: a layout and a residency count.
#pragma once

#include <atomic>
#include <memory>

#include "dml/device.h"
#include "dml/layout.h"

namespace anydml::dml {

class Dispatchable {
 public:
  static constexpr GUID kImplementationIid = {
      0x5f0c1a52, 0x7c1d, 0x4c11, {0x9a, 0x60, 0x3e, 0x52, 0x0d, 0x7b, 0x11, 0x02}};

  // The current layout: Reset gives an initializer another one.
  virtual std::shared_ptr<const Layout> layout() const = 0;
  virtual Device* owner() const = 0;

  // Counts as ID3D12Pageable does: a new object is resident once. Returns false without effect if there is
  // nothing to evict.
  void MakeResident() { residency_.fetch_add(1, std::memory_order_relaxed); }
  bool Evict() {
    uint64_t count = residency_.load(std::memory_order_relaxed);
    while (count != 0) {
      if (residency_.compare_exchange_weak(count, count - 1, std::memory_order_relaxed)) return true;
    }
    return false;
  }
  bool resident() const { return residency_.load(std::memory_order_relaxed) != 0; }

 protected:
  ~Dispatchable() = default;

 private:
  std::atomic<uint64_t> residency_{1};
};

}  // namespace anydml::dml
