// A backend: the description of an adapter, memory, and in-order streams of copies and kernels. Direct3D 12
// is built on this interface and knows nothing of CPUs or GPUs.
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
  std::string id;           // "cpu", "cuda:0": the value of ANYDML_ADAPTER and --adapter
  std::string description;  // for people
  uint64_t luid = 0;
  uint32_t vendor_id = 0;  // PCI ids; clients reject 0x1414 (Microsoft's software adapters)
  uint32_t device_id = 0;
  uint64_t dedicated_bytes = 0;    // the adapter's own memory
  uint64_t shared_bytes = 0;       // host memory that the adapter can use
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

// Recorded work of a stream, for replay; may outlive the stream.
class Recording {
 public:
  virtual ~Recording() = default;
};

// The work of one queue, in order. Used by one thread at a time. Calls may return before the work is done;
// `Flush` tells when it is.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual Status Copy(std::byte* target, const std::byte* source, uint64_t bytes) = 0;
  virtual Status Fill32(std::byte* target, uint32_t value, uint64_t bytes) = 0;
  // Kernel::Run and Kernel::Initialize, with the stream's own executor, notes and so on. A kernel's error is
  // returned unchanged.
  virtual Status Run(const Kernel& kernel, const KernelArguments& arguments) = 0;
  virtual Status Initialize(const Kernel& kernel, const KernelArguments& arguments) = 0;
  virtual Status WriteTimestamp(uint64_t* target) = 0;  // host-visible or device memory of this backend

  // Records the work that `body` gives to the stream, without executing it. `*recording` is null, and nothing
  // has been done, if this work cannot be recorded or if a replay would gain nothing.
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
  // Spins until `ready`, which the stream's work makes true; returns false if patience ends first. Callable
  // from any thread; the thread may take part in that work while it waits.
  virtual bool SpinUntil(const std::function<bool()>& ready, AdaptiveSpin* spin) {
    return spin->Until(ready);
  }
  // Whether calls return only after their work is done.
  virtual bool synchronous() const { return false; }
  // The device's own stream (a cudaStream_t); null if it has none.
  virtual void* native() const { return nullptr; }
  // Waits for pending work; the stream gets no more work afterwards.
  virtual void Close() {}
};

// A stream that the application has created.
struct ForeignStream {
  uint64_t id = 0;         // unique, while handles of destroyed streams are reused
  bool capturing = false;  // work is recorded, not executed
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual const AdapterInfo& adapter() const = 0;
  // Zero-filled, aligned to at least 64 KiB (a buffer's placement alignment); null with kOutOfMemory.
  virtual Status Allocate(MemoryKind kind, uint64_t bytes, std::shared_ptr<Memory>* memory) = 0;
  // The alignment that tensors in the application's memory need in addition to that of their elements. Memory
  // that we allocate is always aligned to 16 bytes (DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT), and kernels may
  // rely on that.
  virtual uint32_t foreign_alignment() const { return 16; }
  // Wraps memory of the application that the adapter can use directly: host memory if default heaps are host
  // memory, else device memory. `release` is called when the object is destroyed, but not after a failure.
  virtual Status Adopt(void* memory, uint64_t bytes, std::function<void()> release,
                       std::shared_ptr<Memory>* out) = 0;
  virtual std::unique_ptr<Stream> CreateStream() = 0;
  // Runs a kernel outside our streams: on a CPU on the calling thread; on a GPU it is enqueued in
  // `arguments.stream`, whoever created that. `wait`: until it is complete; only then are `data_errors`
  // reported.
  virtual Status RunNow(const Kernel& kernel, const KernelArguments& arguments, bool wait) = 0;
  // The next functions take streams that the application has created. Work that `after` gets from now on
  // waits for the work in `before`.
  virtual Status OrderStreams(void* before, void* after) {
    (void)before, (void)after;
    return {};
  }
  // Null waits for everything on the device.
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
  // Marks the end of the work that the stream has now; the mark outlives the stream. A mark that is not null
  // is moved.
  virtual Status MarkStream(void* stream, void** mark) {
    (void)stream, (void)mark;
    return {};
  }
  // Work that `stream` gets from now on waits for the mark; with a null stream the host waits.
  virtual Status WaitForMark(void* mark, void* stream) {
    (void)mark, (void)stream;
    return {};
  }
  virtual Status FreeMark(void* mark) {
    (void)mark;
    return {};
  }
};

// All backends of this machine, best first; never empty, lives as long as the process. ANYDML_ADAPTER=<id>
// moves one to the front.
std::span<Backend* const> Backends();

// Whether the settings in the environment (ANYDML_ADAPTER, ANYDML_THREADS) can be honoured. If not, no device
// is created, since it would not be the requested one.
const Status& CheckBackendVariables();

// One line; empty when there is one.
const std::string& WhyNoGpu();

}  // namespace anydml
