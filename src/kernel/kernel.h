// What a backend runs: one operator, with shapes, strides, types and the choice
// of algorithm already resolved. Includes nothing of com/, d3d12/ or dml/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

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

class Kernel;
struct KernelArguments;

// What a device's stream does for kernels that run on the host although their operands are on the device.
class HostAccess {
 public:
  // Waits for what the stream has been given, runs the kernel on copies of its operands in host memory, and
  // puts what it wrote where it belongs. `arguments` are those of the device; with `initialize`, of
  // Kernel::Initialize.
  virtual Status RunOnHost(const Kernel& kernel, const KernelArguments& arguments, bool initialize) = 0;

 protected:
  ~HostAccess() = default;
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
  // One per operator input and output, in schema order. Null where the description leaves an
  // optional tensor out; so are inputs that the kernel has packed.
  std::span<const Buffer> inputs;
  std::span<const Buffer> outputs;
  Buffer temporary = {};                 // at least temporary_bytes(), aligned to 16 bytes
  Buffer persistent = {};                // persistent_bytes(), aligned to 256 bytes
  DataErrorSink* data_errors = nullptr;  // null: nobody wants to know
  Executor* executor = nullptr;          // null: everything on the calling thread
  void* stream = nullptr;                // where a device's kernel enqueues itself (a cudaStream_t)
  HostAccess* host = nullptr;            // of the stream; null where it has none, or the run is recorded
  std::span<DataErrorNote* const> notes = {};  // data_errors for kernels on a device: note_count(), or none
                                               // when nobody wants to know

  DataErrorNote* note(uint32_t number = 0) const { return notes.empty() ? nullptr : notes[number]; }
};

// Immutable and used from several queues at once. Run allocates nothing; a device's kernel
// only enqueues, and waits for nothing.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // A failure removes the device; its sentence says what could not be done.
  virtual Status Run(const KernelArguments& arguments) const = 0;
  virtual uint64_t temporary_bytes() const { return 0; }

  // Memory that initialisation fills and every run reads.
  virtual uint64_t persistent_bytes() const { return 0; }
  virtual uint64_t initialization_temporary_bytes() const { return 0; }
  // What the host knows of it already; it is put there before Initialize. Lives as long as the kernel.
  struct PersistentData {
    uint64_t offset;
    std::span<const std::byte> bytes;
  };
  virtual std::span<const PersistentData> persistent_data() const { return {}; }
  // Called once, before any run, where there are persistent_bytes(). `inputs` has the inputs that are
  // OWNED_BY_DML; the others and all outputs are null. `temporary` has initialization_temporary_bytes().
  virtual Status Initialize(const KernelArguments&) const { return {}; }
  // Whether an input that is OWNED_BY_DML is read by Initialize only, which leaves what runs need of it
  // in `persistent`. One that is not packed is copied, and a run finds it among its inputs.
  virtual bool packs_input(uint32_t) const { return false; }

  // For kernels on a device that can find errors in data: how many of KernelArguments::notes they
  // want, and the sentence about note `number`.
  virtual uint32_t note_count() const { return 0; }
  virtual std::string Describe(uint32_t number, const DataErrorNote& note) const {
    (void)number, (void)note;
    return {};
  }

  // Of a kernel that is made of kernels: their implementations, for people who ask why.
  virtual std::string made_of() const { return {}; }
};

}  // namespace anydml
