// Notes that kernels leave for the host, in pinned memory. Threads may share a pool.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "backend/cuda/cuda_memory.h"

namespace anydml::cuda {

class NotePool {
 public:
  explicit NotePool(MemoryPool& host_memory) : host_memory_(host_memory) {}

  Status Take(DataErrorNote** note);  // `*note` is empty.
  void Give(DataErrorNote* note) noexcept;

 private:
  MemoryPool& host_memory_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<Memory>> memory_;
  std::vector<DataErrorNote*> free_;  // capacity for all notes that exist
};

}  // namespace anydml::cuda
