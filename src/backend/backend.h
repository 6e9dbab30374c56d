// What a backend is: an adapter's description, memory, and in-order streams of
// copies and kernels. Direct3D 12 sits on this and knows nothing of CPUs or GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/adaptive_spin.h"
#include "base/status.h"
#include "kernel/device_traits.h"
#include "kernel/kernel.h"

namespace anydml {

struct AdapterInfo {
  std::string id;           // "cpu", "cuda:0": what ANYDML_ADAPTER and --adapter take
  std::string description;  // for people
  uint64_t luid = 0;
  uint32_t vendor_id = 0;  // PCI numbers; clients reject 0x1414 (Microsoft's software adapters)
  uint32_t device_id = 0;
  uint64_t dedicated_bytes = 0;    // memory of its own
  uint64_t shared_bytes = 0;       // host memory that it can use
  bool unified_memory = false;     // default heaps are host memory
  bool takes_host_memory = false;  // Adopt takes memory of the host
  bool is_gpu = false;
  // Where its memory is, as DLPack says it (DLDeviceType and number); 12, an extension, where DLPack has no
  // name.
  int32_t dlpack_type = 12;
  int32_t dlpack_id = 0;
};

enum class MemoryKind { kDefault, kUpload, kReadback };

// A piece of memory; freed with the object.
class Memory {
 public:
  virtual ~Memory() = default;
  std::byte* device() const { return device_; }
  std::byte* host() const { return host_; }  // null when the CPU cannot see it
  uint64_t size() const { return size_; }

 protected:
  std::byte* device_ = nullptr;
  std::byte* host_ = nullptr;
  uint64_t size_ = 0;
};

// Work that a stream has recorded to be replayed; may outlive the stream.
class Recording {
 public:
  virtual ~Recording() = default;
};

// One queue's work, in order. Used by one thread at a time. Calls may return
// before the work is done; `Flush` says when.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Status Copy(std::byte* target, const std::byte* source, uint64_t bytes) = 0;
  virtual Status Fill32(std::byte* target, uint32_t value, uint64_t bytes) = 0;
  // Kernel::Run and Kernel::Initialize, with the stream's own executor, notes and so on. What a kernel
  // says of a failure comes back as it is.
  virtual Status Run(const Kernel& kernel, const KernelArguments& arguments) = 0;
  virtual Status Initialize(const Kernel& kernel, const KernelArguments& arguments) = 0;
  virtual Status WriteTimestamp(uint64_t* target) = 0;  // host-visible or device memory of this backend

  // Records what `body` gives the stream instead of doing it. Null when nothing is gained by
  // recordings, or when this cannot be recorded; nothing is done then, either.
  virtual Status Record(const std::function<Status(Stream&)>& body, std::unique_ptr<Recording>* recording) {
    (void)body;
    recording->reset();
    return {};
  }
  virtual Status Replay(const Recording& recording) {
    (void)recording;
    return Status(Code::kFail, "this stream has no recordings");
  }

  // Calls `done` (from any thread) once everything before it is complete, or has failed.
  virtual Status Flush(std::function<void(const Status&)> done) = 0;
  // Spins until `ready`, which the stream's work will make true; false when patience ends before.
  // From any thread, which may be put to that work meanwhile.
  virtual bool SpinUntil(const std::function<bool()>& ready, AdaptiveSpin* spin) {
    return spin->Until(ready);
  }
  // Whether calls return when their work is done.
  virtual bool synchronous() const { return false; }
  // The device's own stream (a cudaStream_t); null where there is none.
  virtual void* native() const { return nullptr; }
  // Waits for what is under way; the stream gets no more work afterwards.
  virtual void Close() {}
};

// A stream that others made.
struct ForeignStream {
  uint64_t id = 0;         // no other has or had it: handles of streams that are gone are used again
  bool capturing = false;  // what it gets is not done but recorded
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const AdapterInfo& adapter() const = 0;
  // Zero-filled, aligned to at least 64 KiB (a buffer's placement alignment); null with kOutOfMemory.
  virtual Status Allocate(MemoryKind kind, uint64_t bytes, std::shared_ptr<Memory>* memory) = 0;
  // What tensors in the application's memory are aligned to besides their elements. Memory of our own
  // always is to 16 bytes (DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT), and kernels may rely on that.
  virtual uint32_t foreign_alignment() const { return 16; }
  // The application's memory, which the adapter can use as it is: host memory where default heaps are
  // that, else memory of the device. `release` is called when the object goes, and not on failure.
  virtual Status Adopt(void* memory, uint64_t bytes, std::function<void()> release,
                       std::shared_ptr<Memory>* out) = 0;
  virtual std::unique_ptr<Stream> CreateStream() = 0;
  // Runs a kernel outside of streams of ours: on a CPU on the calling thread; on a GPU it is enqueued in
  // `arguments.stream`, whoever made that. `wait`: until it is complete; `data_errors` are told of only then.
  virtual Status RunNow(const Kernel& kernel, const KernelArguments& arguments, bool wait) = 0;
  // For streams that others made. What goes to `after` from now on comes behind what is in `before`.
  virtual Status OrderStreams(void* before, void* after) {
    (void)before, (void)after;
    return {};
  }
  // Null: for everything on the device.
  virtual Status WaitForStream(void* stream) {
    (void)stream;
    return {};
  }
  // For LowerContext.
  virtual uint32_t threads() const { return 1; }
  virtual const DeviceTraits& traits() const = 0;
  virtual uint64_t timestamp_frequency() const = 0;  // ticks per second
  virtual uint64_t CurrentTimestamp() const = 0;
  virtual Status DescribeStream(void* stream, ForeignStream* out) {
    *out = {.id = reinterpret_cast<uint64_t>(stream)};
    return {};
  }
  // The end of what the stream has now, which outlives the stream. A mark that is not null is moved there.
  virtual Status MarkStream(void* stream, void** mark) {
    (void)stream, (void)mark;
    return {};
  }
  // What goes to `stream` from now on comes behind the mark; null: the host waits.
  virtual Status WaitForMark(void* mark, void* stream) {
    (void)mark, (void)stream;
    return {};
  }
  virtual Status FreeMark(void* mark) {
    (void)mark;
    return {};
  }
};

// All backends of this machine, best first; never empty, lives as long as the
// process. ANYDML_ADAPTER=<id> moves that one to the front.
std::span<Backend* const> Backends();

// Whether what the environment says about backends (ANYDML_ADAPTER, ANYDML_THREADS) can be done; if not, no
// device is created, since the one that would be is not the one that was asked for.
const Status& CheckBackendVariables();

// One line; empty when there is one.
const std::string& WhyNoGpu();

}  // namespace anydml
