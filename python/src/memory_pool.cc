#include "memory_pool.h"

#include <algorithm>
#include <bit>

#include <anydml.h>

namespace anydml::python {
namespace {

constexpr uint64_t kMaxKeptBytes = uint64_t{1} << 30;
constexpr size_t kMaxKept = 256;
constexpr uint64_t kLeastBytes = uint64_t{64} << 10;  // what an allocation takes anyway
constexpr uint64_t kLargeGranularity = uint64_t{2} << 20;

// Few different sizes.
uint64_t KeptBytes(uint64_t bytes) {
  if (bytes >= kLargeGranularity)
    return (bytes + kLargeGranularity - 1) / kLargeGranularity * kLargeGranularity;
  return std::max(kLeastBytes, std::bit_ceil(bytes));
}

void* Handle(uintptr_t stream) { return reinterpret_cast<void*>(stream); }

}  // namespace

Memory::Memory(std::shared_ptr<MemoryPool> pool, ComPtr<ID3D12Resource> buffer, uint64_t kept_bytes,
               uintptr_t stream)
    : pool_(std::move(pool)),
      buffer_(std::move(buffer)),
      address_(buffer_->GetGPUVirtualAddress()),
      kept_bytes_(kept_bytes),
      stream_(stream) {}

Memory::~Memory() { pool_->Give({kept_bytes_, stream_, std::move(buffer_)}); }

uintptr_t Memory::stream() const {
  std::lock_guard lock(mutex_);
  return stream_;
}

Status Memory::UseIn(uintptr_t stream) {
  std::lock_guard lock(mutex_);
  if (stream == stream_) return {};
  const HRESULT result = AnyDmlOrderCudaStreams(pool_->device(), Handle(stream_), Handle(stream));
  if (FAILED(result)) return Status(static_cast<Code>(result), AnyDmlGetLastErrorMessage());
  stream_ = stream;
  return {};
}

MemoryPool::~MemoryPool() {
  for (Kept& piece : kept_) Release(std::move(piece));
}

Status MemoryPool::Take(uint64_t bytes, uintptr_t stream, std::shared_ptr<Memory>* out) {
  const uint64_t kept_bytes = KeptBytes(bytes);
  ComPtr<ID3D12Resource> buffer;
  {
    std::lock_guard lock(mutex_);
    const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& piece) {
      return piece.bytes == kept_bytes && piece.stream == stream;
    });
    if (found != kept_.end()) {
      buffer = std::move(found->buffer);
      kept_.erase(found);
      kept_bytes_ -= kept_bytes;
    }
  }
  if (!buffer) ANYDML_RETURN_IF_ERROR(Allocate(kept_bytes, &buffer));
  *out = std::make_shared<Memory>(shared_from_this(), std::move(buffer), kept_bytes, stream);
  return {};
}

Status MemoryPool::TakeNew(uint64_t bytes, uintptr_t stream, std::shared_ptr<Memory>* out) {
  ComPtr<ID3D12Resource> buffer;
  ANYDML_RETURN_IF_ERROR(Allocate(bytes, &buffer));
  *out = std::make_shared<Memory>(shared_from_this(), std::move(buffer), 0, stream);
  return {};
}

Status MemoryPool::Allocate(uint64_t bytes, ComPtr<ID3D12Resource>* out) const {
  D3D12_HEAP_PROPERTIES properties{};
  properties.Type = D3D12_HEAP_TYPE_DEFAULT;
  D3D12_RESOURCE_DESC desc{};
  desc.Dimension = D3D12_RESOURCE_DIMENSION_BUFFER;
  desc.Width = bytes;
  desc.Height = desc.DepthOrArraySize = desc.MipLevels = desc.SampleDesc.Count = 1;
  desc.Layout = D3D12_TEXTURE_LAYOUT_ROW_MAJOR;
  desc.Flags = D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS;
  const HRESULT result = device_->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &desc,
                                                          D3D12_RESOURCE_STATE_UNORDERED_ACCESS, nullptr,
                                                          IID_PPV_ARGS(out->ReleaseAndGetAddressOf()));
  return SUCCEEDED(result) ? Status() : Status(static_cast<Code>(result), AnyDmlGetLastErrorMessage());
}

void MemoryPool::Give(Kept piece) noexcept {
  std::list<Kept> too_many;
  try {
    if (piece.bytes == 0 || piece.bytes > kMaxKeptBytes) {
      too_many.push_back(std::move(piece));
    } else {
      std::lock_guard lock(mutex_);
      kept_bytes_ += piece.bytes;
      kept_.push_front(std::move(piece));
      while (kept_bytes_ > kMaxKeptBytes || kept_.size() > kMaxKept) {
        kept_bytes_ -= kept_.back().bytes;
        too_many.splice(too_many.end(), kept_, std::prev(kept_.end()));
      }
    }
  } catch (const std::bad_alloc&) {
    Release(std::move(piece));
  }
  for (Kept& each : too_many) Release(std::move(each));
}

void MemoryPool::Release(Kept piece) const noexcept {
  if (piece.stream != 0) AnyDmlWaitForCudaStream(device_.Get(), Handle(piece.stream));
}

void MemoryPool::Forget() {
  for (Kept& piece : kept_) piece.buffer.Detach();
}

}  // namespace anydml::python
