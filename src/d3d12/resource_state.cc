#include "d3d12/resource_state.h"

namespace anydml::d3d12 {

// One side counts and then looks at `destroyed`, the other sets it and then looks
// at the count, all sequentially consistent: at least one of two racing threads
// sees the other. The memory is dropped by whoever finds the buffer both destroyed
// and idle; `destroyed` never goes back and no use begins successfully after it,
// so that happens with nobody left to read it.

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
