#include "backend/cpu/cpu_backend.h"

#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "backend/cpu/cpu_info.h"
#include "backend/cpu/cpu_memory.h"
#include "backend/cpu/cpu_stream.h"
#include "backend/cpu/thread_pool.h"
#include "backend/foreign_memory.h"
#include "base/default_environment.h"
#include "base/process.h"

namespace anydml {
namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend() : info_(DescribeCpu()), threads_(CpuThreads()) {
    traits_.multiprocessors = threads_;
    traits_.l2_bytes = static_cast<uint64_t>(std::max(0L, sysconf(_SC_LEVEL2_CACHE_SIZE)));
  }

  const AdapterInfo& adapter() const override { return info_; }

  Status Allocate(MemoryKind, uint64_t bytes, std::shared_ptr<Memory>* memory) override {
    // Pages are committed when first touched, so mmap alone would accept almost any size. Reject what exceeds
    // the machine's memory.
    return AllocateCpuMemory(bytes, info_.shared_bytes, memory);
  }

  // CPU kernels use unaligned vector loads and stores.
  uint32_t foreign_alignment() const override { return 1; }
  Status Adopt(void* memory, uint64_t bytes, std::function<void()> release,
               std::shared_ptr<Memory>* out) override {
    *out = std::make_shared<ForeignMemory>(memory, bytes, /*on_host=*/true, std::move(release));
    return {};
  }

  std::unique_ptr<Stream> CreateStream() override {
    return std::make_unique<CpuStream>(threads_ > 1 ? Pool() : nullptr);
  }
  Status RunNow(const Kernel& kernel, const KernelArguments& arguments, bool) override {
    const DefaultEnvironment environment;  // the thread belongs to the application
    return CpuStream(threads_ > 1 ? Pool() : nullptr).Run(kernel, arguments);
  }
  uint32_t threads() const override { return threads_; }
  const DeviceTraits& traits() const override { return traits_; }
  uint64_t timestamp_frequency() const override { return kCpuTimestampFrequency; }
  uint64_t CurrentTimestamp() const override { return CpuTimestamp(); }

 private:
  // Started with the first queue, because listing adapters needs no threads. A forked child starts its own
  // pool and does not touch its parent's.
  ThreadPool* Pool() {
    std::lock_guard lock(pool_mutex_);
    if (pool_ == nullptr || pool_process_ != CurrentProcess()) {
      pool_ = new ThreadPool(threads_);
      pool_process_ = CurrentProcess();
    }
    return pool_;
  }

  const AdapterInfo info_;
  const uint32_t threads_;
  DeviceTraits traits_ = kHostDevice;
  std::mutex pool_mutex_;
  ThreadPool* pool_ = nullptr;  // never destroyed
  uint32_t pool_process_ = 0;
};

}  // namespace

Backend* GetCpuBackend() {
  static auto* const backend = new CpuBackend;
  return backend;
}

}  // namespace anydml
