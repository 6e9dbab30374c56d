// Memory of a device that is used again: what is given back waits for the next who wants as much in the
// same stream, behind whatever that stream still does with it. On the CPU there is one stream, 0.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>

#include <d3d12.h>
#include <wrl/client.h>

#include "base/status.h"

namespace anydml::python {

using Microsoft::WRL::ComPtr;

class MemoryPool;

// A piece of it. Threads may share it.
class Memory {
 public:
  // `kept_bytes`: what the pool keeps it as; 0: it does not.
  Memory(std::shared_ptr<MemoryPool> pool, ComPtr<ID3D12Resource> buffer, uint64_t kept_bytes,
         uintptr_t stream);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  uintptr_t address() const { return address_; }
  // Everything that uses it is in this stream, or comes before what is.
  uintptr_t stream() const;
  // The same for another stream, which has to wait for the present one. The host does not.
  Status UseIn(uintptr_t stream);

 private:
  const std::shared_ptr<MemoryPool> pool_;
  ComPtr<ID3D12Resource> buffer_;
  const uintptr_t address_;
  const uint64_t kept_bytes_;
  mutable std::mutex mutex_;
  uintptr_t stream_;
};

class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  explicit MemoryPool(ComPtr<ID3D12Device> device) : device_(std::move(device)) {}
  ~MemoryPool();

  // Filled with anything.
  Status Take(uint64_t bytes, uintptr_t stream, std::shared_ptr<Memory>* out);
  // Filled with zeros, and not kept.
  Status TakeNew(uint64_t bytes, uintptr_t stream, std::shared_ptr<Memory>* out);

  ID3D12Device* device() const { return device_.Get(); }
  void Forget();  // in a forked child: nothing of it can be given back

 private:
  friend Memory;

  struct Kept {
    uint64_t bytes;
    uintptr_t stream;
    ComPtr<ID3D12Resource> buffer;
  };

  Status Allocate(uint64_t bytes, ComPtr<ID3D12Resource>* out) const;
  void Give(Kept piece) noexcept;
  // Releases it when nothing uses it any more.
  void Release(Kept piece) const noexcept;

  const ComPtr<ID3D12Device> device_;
  std::mutex mutex_;
  std::list<Kept> kept_;  // the latest first
  uint64_t kept_bytes_ = 0;
};

}  // namespace anydml::python
