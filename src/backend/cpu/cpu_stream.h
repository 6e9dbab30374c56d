// A synchronous stream: its calls return when their work is done.
#pragma once

#include <optional>

#include "backend/backend.h"
#include "backend/cpu/thread_pool.h"

namespace anydml {

inline constexpr uint64_t kCpuTimestampFrequency = 1'000'000'000;
uint64_t CpuTimestamp();

class CpuStream final : public Stream {
 public:
  explicit CpuStream(ThreadPool* pool);  // null: one thread

  Status Copy(std::byte* target, const std::byte* source, uint64_t bytes) override;
  Status Fill32(std::byte* target, uint32_t value, uint64_t bytes) override;
  Status Run(const Kernel& kernel, const KernelArguments& arguments) override;
  Status Initialize(const Kernel& kernel, const KernelArguments& arguments) override;
  Status WriteTimestamp(uint64_t* target) override;
  Status Flush(std::function<void(const Status&)> done) override;
  bool SpinUntil(const std::function<bool()>& ready, AdaptiveSpin* spin) override;
  bool synchronous() const override { return true; }

 private:
  KernelArguments Shared(KernelArguments arguments);

  std::optional<ThreadPool::User> user_;
};

}  // namespace anydml
