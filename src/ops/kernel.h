// What a backend runs: one operator, with shapes, strides, types and the choice
// of algorithm already resolved. Includes nothing of com/, d3d12/ or dml/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace anydml {

struct Buffer {
  std::byte* data = nullptr;  // on the backend's device; null when nothing is bound
  uint64_t size = 0;
};

// Takes the sentence about data that only execution can see (the first index
// out of range). Implementations call it at most once per run.
class DataErrorSink {
 public:
  virtual void ReportDataError(const std::string& message) = 0;

 protected:
  ~DataErrorSink() = default;
};

// What a kernel on a device notes instead: memory that both sides see. The host puts it into
// words (Kernel::Describe) when the run is complete.
struct DataErrorNote {
  static constexpr uint64_t kNone = ~uint64_t{0};

  uint64_t position = kNone;  // of the first, in the kernel's own numbering
  int64_t values[8] = {};     // what was found there
};

// Threads that share a kernel's work.
class Executor {
 public:
  using Task = void (*)(void* context, uint32_t index);

  // Calls task(context, i) once for every i below `count`, in any order and as far
  // as threads are free at the same time; returns when all calls have.
  virtual void Run(uint32_t count, Task task, void* context) = 0;

 protected:
  ~Executor() = default;
};

struct KernelArguments {
  std::span<const Buffer> inputs;        // one per operator input, in schema order
  std::span<const Buffer> outputs;       // one per operator output
  Buffer temporary;                      // at least temporary_bytes(), aligned to 16 bytes
  DataErrorSink* data_errors = nullptr;  // null: nobody wants to know
  Executor* executor = nullptr;          // null: everything on the calling thread
  void* stream = nullptr;                // where a device's kernel enqueues itself (a cudaStream_t)
  DataErrorNote* note = nullptr;         // data_errors for a device; null: nobody wants to know
};

// Immutable and used from several queues at once. Run allocates nothing; a device's kernel
// only enqueues, and waits for nothing.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void Run(const KernelArguments& arguments) const = 0;
  virtual uint64_t temporary_bytes() const { return 0; }

  // For kernels on a device that can find errors in data: wants KernelArguments::note, and
  // the sentence about one.
  virtual bool notes_data_errors() const { return false; }
  virtual std::string Describe(const DataErrorNote&) const { return {}; }
};

}  // namespace anydml
