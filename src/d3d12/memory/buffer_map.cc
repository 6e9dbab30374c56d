#include "d3d12/memory/buffer_map.h"

namespace anydml::d3d12 {

void BufferMap::Insert(const std::shared_ptr<ResourceState>& buffer) {
  std::lock_guard lock(mutex_);
  buffers_.emplace(VirtualAddress(*buffer), buffer);
}

void BufferMap::Remove(const ResourceState& buffer) {
  std::lock_guard lock(mutex_);
  const auto [first, last] = buffers_.equal_range(VirtualAddress(buffer));
  for (auto it = first; it != last; ++it) {
    if (it->second.get() == &buffer) {
      buffers_.erase(it);
      return;
    }
  }
}

std::shared_ptr<ResourceState> BufferMap::Find(D3D12_GPU_VIRTUAL_ADDRESS address, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  // Backwards from the last buffer that begins at or before the address: placed buffers may overlap, so an
  // earlier one may be the one that is long enough.
  for (auto it = buffers_.upper_bound(address); it != buffers_.begin();) {
    --it;
    const uint64_t offset = address - it->first;
    if (offset <= it->second->size && bytes <= it->second->size - offset) return it->second;
  }
  return nullptr;
}

}  // namespace anydml::d3d12
