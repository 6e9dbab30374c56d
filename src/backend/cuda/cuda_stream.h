#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/completion_queue.h"
#include "backend/cuda/cuda_memory.h"
#include "backend/cuda/note_pool.h"

namespace anydml::cuda {

// The result of enqueueing a kernel: its own error, or that of its launches.
Status Enqueued(const Status& status);

// A CUDA stream. Calls only enqueue.
class CudaStream final : public Stream {
 public:
  CudaStream(int device, MemoryPool& host_memory);
  ~CudaStream() override;

  Status Copy(std::byte* target, const std::byte* source, uint64_t bytes) override;
  Status Fill32(std::byte* target, uint32_t value, uint64_t bytes) override;
  Status Run(const Kernel& kernel, const KernelArguments& arguments) override;
  Status Initialize(const Kernel& kernel, const KernelArguments& arguments) override;
  Status WriteTimestamp(uint64_t* target) override;
  Status Record(const std::function<Status(Stream&)>& body, std::unique_ptr<Recording>* recording) override;
  Status Replay(const Recording& recording) override;
  Status Flush(std::function<void(const Status&)> done) override;
  void* native() const override { return stream_; }
  void Close() override { completion_.reset(); }

 private:
  // A run whose kernel may write a note; kept until the stream has passed it.
  struct Listening {
    DataErrorNote* note;
    const Kernel* kernel;  // kept alive by the submission that is flushed next
    uint32_t number;       // index among the kernel's notes
    DataErrorSink* sink;
  };

  Status FlushListening(std::vector<Listening> listening, std::function<void(const Status&)> done);

  const int device_;
  Status creation_;
  cudaStream_t stream_ = nullptr;
  bool recording_ = false;
  std::vector<Listening> listening_;
  std::vector<DataErrorNote*> notes_of_run_;  // a member so that its memory is reused
  NotePool notes_;
  std::unique_ptr<CompletionQueue> completion_;
};

}  // namespace anydml::cuda
