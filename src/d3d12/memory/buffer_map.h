// The device's live buffers by GPU virtual address.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "d3d12/interop.h"

namespace anydml::d3d12 {

inline D3D12_GPU_VIRTUAL_ADDRESS VirtualAddress(const ResourceState& buffer) {
  // The backend's own address: unique while the buffer lives, and never null.
  return reinterpret_cast<uintptr_t>(buffer.device_data());
}

class BufferMap {
 public:
  void Insert(const std::shared_ptr<ResourceState>& buffer);
  void Remove(const ResourceState& buffer);

  // A buffer that holds [address, address + bytes), or null.
  std::shared_ptr<ResourceState> Find(D3D12_GPU_VIRTUAL_ADDRESS address, uint64_t bytes);

 private:
  std::mutex mutex_;
  // Placed buffers may begin at the same address.
  std::multimap<D3D12_GPU_VIRTUAL_ADDRESS, std::shared_ptr<ResourceState>> buffers_;
};

}  // namespace anydml::d3d12
