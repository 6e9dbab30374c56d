// A pool of device memory: freed memory waits for the next request of its size in the same stream, in order
// with the stream's remaining work on it. On the CPU there is one stream, 0.
//
// Other libraries' streams may be destroyed at any time outside a call that names them, and CUDA cannot tell:
// a handle is used only while the caller has just passed it. Later work waits for the event that was recorded
// while the stream certainly existed (StreamEnd).
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <d3d12.h>
#include <wrl/client.h>

#include "base/status.h"

namespace anydml::python {

using Microsoft::WRL::ComPtr;

class MemoryPool;

// The end of the package's work in a stream. Threads may share it.
class StreamEnd {
 public:
  explicit StreamEnd(ComPtr<ID3D12Device> device) : device_(std::move(device)) {}
  ~StreamEnd();
  StreamEnd(const StreamEnd&) = delete;
  StreamEnd& operator=(const StreamEnd&) = delete;

  // Moves it to the present end of the stream, which must exist. `capturing`: within the graph that is being
  // captured.
  void MoveTo(uintptr_t stream, bool capturing) noexcept;
  // Orders later work of the stream after it; 0: the host waits.
  Status OrderBefore(uintptr_t stream, bool capturing) const;

 private:
  const ComPtr<ID3D12Device> device_;
  mutable std::mutex mutex_;
  void* mark_ = nullptr;
  void* captured_mark_ = nullptr;  // no work outside the capture can wait for it
  bool lost_ = false;              // the work is after the mark
};

// A CUDA stream, as MemoryPool::Describe identifies it, because a handle may be reused.
struct Stream {
  static constexpr uintptr_t kDefault = 1;
  static constexpr uintptr_t kPerThread = 2;  // a different one in every thread

  uintptr_t handle = 0;
  uint64_t id = 0;
  bool capturing = false;          // work is recorded, not executed
  std::shared_ptr<StreamEnd> end;  // null if it is never destroyed

  bool lasting() const { return handle <= kPerThread; }
};

// A stream with enqueued work that uses a piece of memory.
struct MemoryUser {
  Stream stream;
  uint32_t uses = 0;     // number of uses that may still enqueue work
  uint32_t exports = 0;  // the number of uses by other libraries, whose later work is unknown
  bool late = false;     // other libraries may have enqueued work after the stream's known end
};

// A piece of a pool. Threads may share it.
class Memory {
 public:
  // `kept_bytes`: the size under which the pool keeps it; 0: the pool does not keep it.
  Memory(std::shared_ptr<MemoryPool> pool, ComPtr<ID3D12Resource> buffer, uint64_t kept_bytes,
         MemoryUser first);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  uintptr_t address() const { return address_; }
  uint64_t bytes() const { return bytes_; }
  const std::shared_ptr<MemoryPool>& pool() const { return pool_; }
  uintptr_t latest_stream() const;
  // Orders later work in `after` behind all uses of the memory, including those of other libraries.
  Status OrderBefore(const Stream& after) const;

 private:
  friend class MemoryUse;

  Status Enter(const Stream& stream, bool exported);
  void Leave(const Stream& stream, bool exported) noexcept;

  const std::shared_ptr<MemoryPool> pool_;
  ComPtr<ID3D12Resource> buffer_;
  const uintptr_t address_;
  const uint64_t bytes_;
  const uint64_t kept_bytes_;
  mutable std::mutex mutex_;
  std::vector<MemoryUser> users_;  // the latest is last, and is not ordered behind the others
};

// While this object exists, work that uses the memory may be enqueued in a stream. That work is ordered
// behind uses in other streams from before this object was created. It stands for a call or (`exported`) for
// a tensor that another library has. Later uses of the memory follow that work; until then the other library
// orders it relative to calls. The stream must exist when this object is created, and when a call enqueues
// work.
class MemoryUse {
 public:
  static Status Begin(std::shared_ptr<Memory> memory, const Stream& stream, bool exported,
                      std::shared_ptr<MemoryUse>* out);
  MemoryUse(std::shared_ptr<Memory> memory, const Stream& stream, bool exported)
      : memory_(std::move(memory)), stream_(stream), exported_(exported) {}
  ~MemoryUse() {
    if (begun_) memory_->Leave(stream_, exported_);
  }
  MemoryUse(const MemoryUse&) = delete;
  MemoryUse& operator=(const MemoryUse&) = delete;

 private:
  const std::shared_ptr<Memory> memory_;
  const Stream stream_;
  const bool exported_;
  bool begun_ = false;
};

class MemoryPool : public std::enable_shared_from_this<MemoryPool> {
 public:
  explicit MemoryPool(ComPtr<ID3D12Device> device) : device_(std::move(device)) {}
  ~MemoryPool();

  // With undefined contents.
  Status Take(uint64_t bytes, const Stream& stream, std::shared_ptr<Memory>* out);
  // Filled with zeros, and not kept.
  Status TakeNew(uint64_t bytes, const Stream& stream, std::shared_ptr<Memory>* out);
  // Frees all kept memory that is no longer in use.
  void Empty() noexcept;

  // The stream must exist.
  Status Describe(uintptr_t handle, Stream* stream);
  // Orders later work in the stream `after` behind the work that `before` has now.
  Status Order(const Stream& before, const Stream& after) const;
  // Must be called after work that uses memory of this pool is enqueued.
  static void MoveEnd(const Stream& stream) noexcept;

  ID3D12Device* device() const { return device_.Get(); }

 private:
  friend Memory;

  struct Kept {
    uint64_t bytes = 0;
    std::vector<MemoryUser> users;  // the last stream may get it again, ordered behind the others
    ComPtr<ID3D12Resource> buffer;
  };

  Status Allocate(uint64_t bytes, ComPtr<ID3D12Resource>* out);
  Status AllocateNew(uint64_t bytes, ComPtr<ID3D12Resource>* out) const;
  void Give(std::list<Kept> pieces) noexcept;
  // Frees pieces that are no longer in use; the pool keeps those whose use is unknown.
  void Release(std::list<Kept> pieces) noexcept;
  // Orders `user` in its stream behind all uses of the piece.
  Status OrderKept(const Kept& piece, MemoryUser* user) const;
  // Orders later work in the stream `after` behind uses of memory in `before`, which may no longer exist. For
  // `late` work the host has to wait.
  Status OrderBehind(const Stream& before, bool late, const Stream& after) const;
  Status WaitForAll() const;
  bool WaitFor(const MemoryUser& user) const;

  const ComPtr<ID3D12Device> device_;
  std::mutex ends_mutex_;
  std::map<uint64_t, std::shared_ptr<StreamEnd>> ends_;  // by the stream's id
  std::mutex mutex_;
  std::list<Kept> kept_;  // most recently used first
  uint64_t kept_bytes_ = 0;
};

}  // namespace anydml::python
