#include "d3d12/memory/resource_state.h"

namespace anydml::d3d12 {

// One side counts and then reads `destroyed`, the other sets it and then reads the count, all sequentially
// consistent: of two racing threads at least one sees the other. Whoever finds the buffer destroyed and idle
// releases the memory. `destroyed` is never cleared and no use begins successfully after it, so nobody reads
// the memory then.

namespace {

void FreeMemory(ResourceState& resource) {
  if (!resource.memory_freed.exchange(true)) resource.memory.reset();
}

}  // namespace

bool BeginUse(ResourceState& resource) {
  resource.in_flight.fetch_add(1);
  return !resource.destroyed.load();
}

void EndUse(ResourceState& resource) {
  if (resource.in_flight.fetch_sub(1) == 1 && resource.destroyed.load()) FreeMemory(resource);
}

bool MarkDestroyed(ResourceState& resource) {
  resource.destroyed.store(true);
  if (resource.in_flight.load() != 0) return true;
  FreeMemory(resource);
  return false;
}

}  // namespace anydml::d3d12
