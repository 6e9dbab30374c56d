// Device memory and pinned host memory. Freed pieces are kept for the next allocation of their size, because
// cudaMalloc is slow and cudaFree waits for the whole device.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backend/backend.h"

namespace anydml::cuda {

class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  // Keeps up to `keep_bytes` of unused memory.
  MemoryPool(int device, bool on_host, uint64_t keep_bytes);
  ~MemoryPool();

  // Zero-filled and aligned to 64 KiB.
  Status Allocate(uint64_t bytes, std::shared_ptr<Memory>* memory);

 private:
  class Piece;

  Status Take(uint64_t bytes, void** allocation);
  Status AllocateNew(uint64_t bytes, void** allocation);
  void Give(uint64_t bytes, void* allocation) noexcept;
  Status Clear(void* data, uint64_t bytes);
  void Free(void* allocation) const;
  void FreeAllKept();

  const int device_;
  const bool on_host_;
  const uint64_t keep_bytes_;
  std::mutex mutex_;
  std::map<uint64_t, std::vector<void*>> kept_;  // by size
  uint64_t kept_bytes_ = 0;
};

}  // namespace anydml::cuda
