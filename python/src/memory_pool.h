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

  // Moves it to the present end of the stream, which exists. `capturing`: within the graph that is being
  // captured.
  void MoveTo(uintptr_t stream, bool capturing) noexcept;
  // Orders later work of the stream after it; 0: the host waits.
  Status OrderBefore(uintptr_t stream, bool capturing) const;

 private:
  const ComPtr<ID3D12Device> device_;
  mutable std::mutex mutex_;
  void* mark_ = nullptr;
  void* captured_mark_ = nullptr;  // nothing outside the capture can wait for it
  bool lost_ = false;              // the work is after the mark
};

// A CUDA stream, as MemoryPool::Describe identifies it, because a handle may be reused.
struct Stream {
  static constexpr uintptr_t kDefault = 1;
  static constexpr uintptr_t kPerThread = 2;  // another one in every thread

  uintptr_t handle = 0;
  uint64_t id = 0;
  bool capturing = false;          // null if it is never destroyed
  std::shared_ptr<StreamEnd> end;  // null where it is never destroyed

  bool lasting() const { return handle <= kPerThread; }
};

// A stream in which things that use a piece of memory have been enqueued.
struct MemoryUser {
  Stream stream;
  uint32_t uses = 0;     // how many of these belong to other libraries, which do not tell when they do
  uint32_t exports = 0;  // other libraries may have enqueued work after the end that is known of the stream
  bool late = false;     // other libraries may have enqueued some behind the end of the stream
};

// A piece of it. Threads may share it.
class Memory {
 public:
  // `kept_bytes`: what the pool keeps it as; 0: it does not.
  Memory(std::shared_ptr<MemoryPool> pool, ComPtr<ID3D12Resource> buffer, uint64_t kept_bytes,
         MemoryUser first);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  uintptr_t address() const { return address_; }
  uint64_t bytes() const { return bytes_; }
  const std::shared_ptr<MemoryPool>& pool() const { return pool_; }
  uintptr_t latest_stream() const;
  // What is enqueued in `after` from now on comes behind all that uses it, also in other libraries.
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
  std::vector<MemoryUser> users_;  // the latest last, which is not behind the others
};

// While it exists things that use the memory may be enqueued in a stream, which comes behind what used it in
// others when this began: a call, or (`exported`) a tensor that another library has. What that enqueues comes
// before whatever the memory is used for when this is over; until then the other library sees to its order
// with calls. The stream exists when this begins, and when a call enqueues something.
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

  // Filled with anything.
  Status Take(uint64_t bytes, const Stream& stream, std::shared_ptr<Memory>* out);
  // Filled with zeros, and not kept.
  Status TakeNew(uint64_t bytes, const Stream& stream, std::shared_ptr<Memory>* out);
  // Gives back all that is kept, when nothing uses it any more.
  void Empty() noexcept;

  // The streams exist.
  Status Describe(uintptr_t handle, Stream* stream);
  // What is enqueued in the stream `after` from now on comes behind what `before` has now.
  Status Order(const Stream& before, const Stream& after) const;
  // After something was enqueued in it that uses memory of this pool.
  static void MoveEnd(const Stream& stream) noexcept;

  ID3D12Device* device() const { return device_.Get(); }

 private:
  friend Memory;

  struct Kept {
    uint64_t bytes = 0;
    std::vector<MemoryUser> users;  // the last is who may have it again, behind the others
    ComPtr<ID3D12Resource> buffer;
  };

  Status Allocate(uint64_t bytes, ComPtr<ID3D12Resource>* out);
  Status AllocateNew(uint64_t bytes, ComPtr<ID3D12Resource>* out) const;
  void Give(std::list<Kept> pieces) noexcept;
  // When nothing uses them any more; what that cannot be said of stays with the pool.
  void Release(std::list<Kept> pieces) noexcept;
  // That `user` is in the stream behind all that has used the piece.
  Status OrderKept(const Kept& piece, MemoryUser* user) const;
  // What is enqueued in the stream `after` from now on comes behind what used memory in `before`, which may
  // be gone. For what is `late` there the host has to wait.
  Status OrderBehind(const Stream& before, bool late, const Stream& after) const;
  Status WaitForAll() const;
  bool WaitFor(const MemoryUser& user) const;

  const ComPtr<ID3D12Device> device_;
  std::mutex ends_mutex_;
  std::map<uint64_t, std::shared_ptr<StreamEnd>> ends_;  // by the stream's id
  std::mutex mutex_;
  std::list<Kept> kept_;  // the latest first
  uint64_t kept_bytes_ = 0;
};

}  // namespace anydml::python
