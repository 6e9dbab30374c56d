#include "d3d12/adapters/memory_usage.h"

#include <atomic>
#include <map>

namespace anydml::d3d12 {
namespace {

using Counter = std::atomic<uint64_t>;

Counter& CounterOf(const Backend& backend) {
  // Backends are few and live forever; the map is complete before threads share it.
  static auto* const counters = [] {
    auto* map = new std::map<const Backend*, Counter>;
    for (const Backend* known : Backends()) (*map)[known] = 0;
    return map;
  }();
  return counters->at(&backend);
}

}  // namespace

Status AllocateCounted(Backend& backend, MemoryKind kind, uint64_t bytes, std::shared_ptr<Memory>* memory) {
  std::shared_ptr<Memory> allocated;
  ANYDML_RETURN_IF_ERROR(backend.Allocate(kind, bytes, &allocated));
  Counter* counter = &CounterOf(backend);
  Memory* raw = allocated.get();
  *memory = std::shared_ptr<Memory>(raw, [allocated, counter, bytes](Memory*) mutable {
    allocated.reset();
    counter->fetch_sub(bytes, std::memory_order_relaxed);
  });
  counter->fetch_add(bytes, std::memory_order_relaxed);
  return {};
}

uint64_t MemoryInUse(const Backend& backend) { return CounterOf(backend).load(std::memory_order_relaxed); }

}  // namespace anydml::d3d12
