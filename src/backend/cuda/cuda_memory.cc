#include "backend/cuda/cuda_memory.h"

#include <cstring>

#include "backend/cuda/cuda_status.h"

namespace anydml::cuda {
namespace {

constexpr uint64_t kAlignment = uint64_t{64} << 10;
constexpr uint64_t kLargeGranularity = uint64_t{2} << 20;

uint64_t RoundUp(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

// The size to allocate for `bytes`: with room to align, and rounded so that few different sizes occur.
uint64_t AllocationBytes(uint64_t bytes) {
  const uint64_t needed = bytes + kAlignment;
  return RoundUp(needed, needed < kLargeGranularity ? kAlignment : kLargeGranularity);
}

}  // namespace

class MemoryPool::Piece final : public Memory {
 public:
  Piece(std::shared_ptr<MemoryPool> pool, void* allocation, uint64_t bytes)
      : pool_(std::move(pool)), allocation_(allocation) {
    device_ = reinterpret_cast<std::byte*>(RoundUp(reinterpret_cast<uint64_t>(allocation), kAlignment));
    host_ = pool_->on_host_ ? device_ : nullptr;  // one address for both
    size_ = bytes;
  }
  ~Piece() override { pool_->Give(AllocationBytes(size_), allocation_); }

 private:
  const std::shared_ptr<MemoryPool> pool_;
  void* const allocation_;
};

MemoryPool::MemoryPool(int device, bool on_host, uint64_t keep_bytes)
    : device_(device), on_host_(on_host), keep_bytes_(keep_bytes) {}

MemoryPool::~MemoryPool() {
  const DeviceScope scope(device_);
  FreeAllKept();
}

Status MemoryPool::Allocate(uint64_t bytes, std::shared_ptr<Memory>* memory) {
  memory->reset();
  if (bytes == 0) return InvalidArgument("an allocation must have at least 1 byte");
  const DeviceScope scope(device_);
  void* allocation = nullptr;
  ANYDML_RETURN_IF_ERROR(Take(AllocationBytes(bytes), &allocation));
  try {
    *memory = std::make_shared<Piece>(shared_from_this(), allocation, bytes);
  } catch (...) {
    Give(AllocationBytes(bytes), allocation);
    throw;
  }
  const Status status = Clear((*memory)->device(), bytes);
  if (!status.ok()) memory->reset();
  return status;
}

Status MemoryPool::Take(uint64_t bytes, void** allocation) {
  {
    std::lock_guard lock(mutex_);
    const auto found = kept_.find(bytes);
    if (found != kept_.end() && !found->second.empty()) {
      *allocation = found->second.back();
      found->second.pop_back();
      kept_bytes_ -= bytes;
      return {};
    }
  }
  Status status = AllocateNew(bytes, allocation);
  if (status.code() != Code::kOutOfMemory) return status;
  FreeAllKept();
  return AllocateNew(bytes, allocation);
}

Status MemoryPool::AllocateNew(uint64_t bytes, void** allocation) {
  const cudaError_t error =
      on_host_ ? cudaHostAlloc(allocation, bytes, cudaHostAllocPortable) : cudaMalloc(allocation, bytes);
  if (error == cudaErrorMemoryAllocation) cudaGetLastError();  // clear it, so that no later query finds it
  return Check(error, "allocating ", bytes, " bytes of ", on_host_ ? "pinned host" : "device", " memory");
}

void MemoryPool::Give(uint64_t bytes, void* allocation) noexcept {
  const DeviceScope scope(device_);
  try {
    std::lock_guard lock(mutex_);
    if (kept_bytes_ + bytes <= keep_bytes_) {
      kept_[bytes].push_back(allocation);
      kept_bytes_ += bytes;
      return;
    }
  } catch (...) {  // no memory to keep it in the pool
  }
  Free(allocation);
}

Status MemoryPool::Clear(void* data, uint64_t bytes) {
  if (on_host_) {
    std::memset(data, 0, bytes);
    return {};
  }
  // A stream of its own, since the default stream would wait for every queue.
  cudaStream_t stream = nullptr;
  ANYDML_RETURN_IF_ERROR(
      Check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream"));
  cudaError_t error = cudaMemsetAsync(data, 0, bytes, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  return Check(error, "clearing ", bytes, " bytes");
}

void MemoryPool::Free(void* allocation) const {
  if (on_host_) {
    cudaFreeHost(allocation);
  } else {
    cudaFree(allocation);
  }
}

void MemoryPool::FreeAllKept() {
  std::map<uint64_t, std::vector<void*>> kept;
  {
    std::lock_guard lock(mutex_);
    kept.swap(kept_);
    kept_bytes_ = 0;
  }
  for (const auto& [bytes, allocations] : kept) {
    for (void* allocation : allocations) Free(allocation);
  }
}

}  // namespace anydml::cuda
