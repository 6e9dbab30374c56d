#include "backend/cpu/cpu_stream.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace anydml {

uint64_t CpuTimestamp() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

CpuStream::CpuStream(ThreadPool* pool) {
  if (pool != nullptr) user_.emplace(pool);
}

Status CpuStream::Copy(std::byte* target, const std::byte* source, uint64_t bytes) {
  // Placed buffers may share memory, so copies between two buffers can overlap, too.
  std::memmove(target, source, bytes);
  return {};
}

Status CpuStream::Fill32(std::byte* target, uint32_t value, uint64_t bytes) {
  const uint32_t low = value & 0xFFu;
  if (value == low * 0x01010101u) {
    std::memset(target, static_cast<int>(low), bytes);
    return {};
  }
  const uint64_t whole = bytes / sizeof(value) * sizeof(value);
  for (uint64_t i = 0; i < whole; i += sizeof(value)) std::memcpy(target + i, &value, sizeof(value));
  std::memcpy(target + whole, &value, bytes - whole);
  return {};
}

Status CpuStream::Run(const Kernel& kernel, const KernelArguments& arguments) {
  return kernel.Run(Shared(arguments));
}

Status CpuStream::Initialize(const Kernel& kernel, const KernelArguments& arguments) {
  return kernel.Initialize(Shared(arguments));
}

KernelArguments CpuStream::Shared(KernelArguments arguments) {
  arguments.executor = user_ ? &*user_ : nullptr;
  return arguments;
}

Status CpuStream::WriteTimestamp(uint64_t* target) {
  *target = CpuTimestamp();
  return {};
}

Status CpuStream::Flush(std::function<void(const Status&)> done) {
  done({});
  return {};
}

bool CpuStream::SpinUntil(const std::function<bool()>& ready, AdaptiveSpin* spin) {
  return user_ ? user_->HelpUntil(ready, spin) : spin->Until(ready);
}

}  // namespace anydml
