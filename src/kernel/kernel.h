// What a backend runs: one operator, with shapes, strides, types and the choice of algorithm already
// resolved. Includes nothing from com/, d3d12/ or dml/.
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

// Receives the message about an error in the data that only execution can see (the first index out of range).
// Implementations call it at most once per run.
class DataErrorSink {
 public:
  virtual void ReportDataError(const std::string& message) = 0;

 protected:
  ~DataErrorSink() = default;
};

// The same for a kernel on a device: it writes this note to memory that both sides see, and the host makes a
// message of it (Kernel::Describe) when the run is complete.
struct DataErrorNote {
  static constexpr uint64_t kNone = ~uint64_t{0};

  uint64_t position = kNone;  // of the first error, in the kernel's own numbering
  int64_t values[8] = {};     // the values found there
};

class Kernel;
struct KernelArguments;

// Lets a device's stream run kernels on the host although their operands are on the device.
class HostAccess {
 public:
  // Waits for the stream's work, runs the kernel on copies of its operands in host memory, and copies the
  // results back. `arguments` are those of the device; with `initialize`, those of Kernel::Initialize.
  virtual Status RunOnHost(const Kernel& kernel, const KernelArguments& arguments, bool initialize) = 0;

 protected:
  ~HostAccess() = default;
};

// Threads that share a kernel's work.
class Executor {
 public:
  using Task = void (*)(void* context, uint32_t index);

  // Calls task(context, i) once for every i below `count`, in any order and in parallel as far as threads are
  // free; returns when all calls have returned.
  virtual void Run(uint32_t count, Task task, void* context) = 0;

 protected:
  ~Executor() = default;
};

struct KernelArguments {
  // One per operator input and output, in schema order. Null for optional tensors that the description omits
  // and for inputs that the kernel has packed.
  std::span<const Buffer> inputs;
  std::span<const Buffer> outputs;
  Buffer temporary = {};                       // at least temporary_bytes(), aligned to 16 bytes
  Buffer persistent = {};                      // persistent_bytes(), aligned to 256 bytes
  DataErrorSink* data_errors = nullptr;        // null: not wanted
  Executor* executor = nullptr;                // null: everything on the calling thread
  void* stream = nullptr;                      // where a device's kernel is enqueued (a cudaStream_t)
  HostAccess* host = nullptr;                  // from the stream; null if it has none, or if the run is being
                                               // recorded
  std::span<DataErrorNote* const> notes = {};  // as data_errors, for kernels on a device: note_count() of
                                               // them, or none if not wanted

  DataErrorNote* note(uint32_t number = 0) const { return notes.empty() ? nullptr : notes[number]; }
};

// Immutable and used from several queues at once. Run allocates nothing; a device's kernel only enqueues work
// and never waits.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // A failure removes the device; its message says what could not be done.
  virtual Status Run(const KernelArguments& arguments) const = 0;
  virtual uint64_t temporary_bytes() const { return 0; }

  // Memory that initialisation fills and every run reads.
  virtual uint64_t persistent_bytes() const { return 0; }
  virtual uint64_t initialization_temporary_bytes() const { return 0; }
  // The part of it that is known when the kernel is created; copied there before Initialize. Lives as long as
  // the kernel.
  struct PersistentData {
    uint64_t offset;
    std::span<const std::byte> bytes;
  };
  virtual std::span<const PersistentData> persistent_data() const { return {}; }
  // Called once before any run, if persistent_bytes() is not 0. `inputs` has the inputs that are
  // OWNED_BY_DML; other inputs and all outputs are null. `temporary` has initialization_temporary_bytes().
  virtual Status Initialize(const KernelArguments&) const { return {}; }
  // Whether only Initialize reads an OWNED_BY_DML input, and keeps in `persistent` what runs need of it. An
  // input that is not packed is copied, and runs find it among their inputs.
  virtual bool packs_input(uint32_t) const { return false; }

  // For kernels on a device that can find errors in data: the number of KernelArguments::notes that they
  // need, and the message for note `number`.
  virtual uint32_t note_count() const { return 0; }
  virtual std::string Describe(uint32_t number, const DataErrorNote& note) const {
    (void)number, (void)note;
    return {};
  }

  // The implementations of the kernels that this one is composed of, for diagnostics.
  virtual std::string made_of() const { return {}; }
};

}  // namespace anydml
