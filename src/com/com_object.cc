#include "com/com_object.h"

namespace anydml {
namespace {
std::atomic<uint64_t> live_objects{0};
}  // namespace

uint64_t LiveObjectCount() { return live_objects.load(std::memory_order_relaxed); }

namespace com_internal {
void ObjectCreated() { live_objects.fetch_add(1, std::memory_order_relaxed); }
void ObjectDestroyed() { live_objects.fetch_sub(1, std::memory_order_relaxed); }
}  // namespace com_internal

}  // namespace anydml
