// A backend in a module: an adapter, memory, streams, and a column with one family.
#include <sys/mman.h>

#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "backend/backend.h"
#include "backend/host_runner.h"
#include "kernel/module.h"
#include "third_backend/abacus.h"

namespace anydml {

// This library has no implementations for the host.
const Column& HostColumn() {
  static const Column none;
  return none;
}

namespace abacus {
namespace {

constexpr uint64_t kAlignment = uint64_t{64} << 10, kMemoryBytes = uint64_t{64} << 30;

// Device addresses, which are inaccessible, and the bytes behind them.
class AddressSpace {
 public:
  AddressSpace() : device_(Map(PROT_NONE)), bytes_(Map(PROT_READ | PROT_WRITE)) {}

  bool exists() const { return device_ != MAP_FAILED && bytes_ != MAP_FAILED; }
  std::byte* Behind(const std::byte* address) const {
    const auto offset = static_cast<uint64_t>(address - static_cast<std::byte*>(device_));
    return offset < kMemoryBytes ? static_cast<std::byte*>(bytes_) + offset : const_cast<std::byte*>(address);
  }

  std::byte* Take(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (auto& kept = kept_[bytes]; !kept.empty()) {
      std::byte* const address = kept.back();
      kept.pop_back();
      return address;
    }
    if (!exists() || bytes > kMemoryBytes - next_) return nullptr;
    std::byte* const address = static_cast<std::byte*>(device_) + next_;
    next_ += bytes;
    return address;
  }
  void Give(std::byte* address, uint64_t bytes) {
    madvise(Behind(address), bytes, MADV_DONTNEED);  // it contains zeros when it is allocated again
    const std::lock_guard lock(mutex_);
    kept_[bytes].push_back(address);
  }

 private:
  static void* Map(int protection) {
    return mmap(nullptr, kMemoryBytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }

  void* const device_;
  void* const bytes_;
  std::mutex mutex_;
  uint64_t next_ = 0;
  std::map<uint64_t, std::vector<std::byte*>> kept_;  // by size
};

AddressSpace& Space() {
  static auto* const space = new AddressSpace;
  return *space;
}

class DeviceMemory final : public Memory {
 public:
  DeviceMemory(std::byte* address, uint64_t bytes, uint64_t taken) : taken_(taken) {
    device_ = address;
    size_ = bytes;
  }
  ~DeviceMemory() override { Space().Give(device_, taken_); }

 private:
  const uint64_t taken_;
};

// Host-visible memory has the same address on both sides.
class SharedMemory final : public Memory {
 public:
  SharedMemory(void* memory, uint64_t bytes) {
    device_ = host_ = static_cast<std::byte*>(memory);
    size_ = bytes;
  }
  ~SharedMemory() override { std::free(device_); }
};

class Runner final : public HostRunner {
 private:
  Status Read(std::byte* host, const std::byte* device, uint64_t bytes) override {
    std::memcpy(host, Behind(device), bytes);
    return {};
  }
  Status Write(std::byte* device, const std::byte* host, uint64_t bytes) override {
    std::memcpy(Behind(device), host, bytes);
    return {};
  }
};

Status RunOn(const Kernel& kernel, KernelArguments arguments, bool initialize) {
  Runner runner;
  arguments.host = &runner;
  return initialize ? kernel.Initialize(arguments) : kernel.Run(arguments);
}

uint64_t Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

class AbacusStream final : public Stream {
 public:
  Status Copy(std::byte* target, const std::byte* source, uint64_t bytes) override {
    std::memmove(Behind(target), Behind(source), bytes);
    return {};
  }
  Status Fill32(std::byte* target, uint32_t value, uint64_t bytes) override {
    std::byte* const to = Behind(target);
    for (uint64_t i = 0; i < bytes; ++i) {
      to[i] = static_cast<std::byte>(value >> (i % sizeof(value) * 8));
    }
    return {};
  }
  Status Run(const Kernel& kernel, const KernelArguments& arguments) override {
    return RunOn(kernel, arguments, false);
  }
  Status Initialize(const Kernel& kernel, const KernelArguments& arguments) override {
    return RunOn(kernel, arguments, true);
  }
  Status WriteTimestamp(uint64_t* target) override {
    const uint64_t now = Now();
    std::memcpy(Behind(reinterpret_cast<std::byte*>(target)), &now, sizeof(now));
    return {};
  }
  Status Flush(std::function<void(const Status&)> done) override {
    done({});
    return {};
  }
  bool synchronous() const override { return true; }
};

class AbacusBackend final : public Backend {
 public:
  AbacusBackend() {
    RegisterSoftmax(&column_);
    traits_.backend = "abacus";
    traits_.column = &column_;
    traits_.unit_bytes = 16;
    traits_.data_types &= ~(1u << static_cast<uint32_t>(DataType::kFloat64));
    info_.id = "abacus:0";
    info_.description = "a device for tests";
    info_.luid = uint64_t{7} << 32;
    info_.vendor_id = 0xABAC;
    info_.dedicated_bytes = info_.shared_bytes = kMemoryBytes;
  }
  const AdapterInfo& adapter() const override { return info_; }
  Status Allocate(MemoryKind kind, uint64_t bytes, std::shared_ptr<Memory>* memory) override {
    const uint64_t taken = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (kind == MemoryKind::kDefault) {
      std::byte* const address = bytes <= kMemoryBytes ? Space().Take(taken) : nullptr;
      if (address != nullptr) *memory = std::make_shared<DeviceMemory>(address, bytes, taken);
    } else {
      void* const shared = bytes <= kMemoryBytes ? std::aligned_alloc(kAlignment, taken) : nullptr;
      if (shared != nullptr) *memory = std::make_shared<SharedMemory>(std::memset(shared, 0, taken), bytes);
    }
    return *memory != nullptr ? Status()
                              : Status(Code::kOutOfMemory, StrCat("cannot allocate ", bytes, " bytes"));
  }
  Status Adopt(void*, uint64_t, std::function<void()>, std::shared_ptr<Memory>*) override {
    return Status(Code::kUnsupported, "this device takes no memory of the application's");
  }
  std::unique_ptr<Stream> CreateStream() override { return std::make_unique<AbacusStream>(); }
  Status RunNow(const Kernel& kernel, const KernelArguments& arguments, bool) override {
    return RunOn(kernel, arguments, false);
  }
  const DeviceTraits& traits() const override { return traits_; }
  uint64_t timestamp_frequency() const override { return 1'000'000'000; }
  uint64_t CurrentTimestamp() const override { return Now(); }

 private:
  Column column_;
  DeviceTraits traits_;
  AdapterInfo info_;
};

AbacusBackend& TheBackend() {
  static auto* const backend = new AbacusBackend;
  return *backend;
}

std::vector<Backend*> FindBackends(std::string* why_none) {
  if (Space().exists()) return {&TheBackend()};
  *why_none = "no addresses are left";
  return {};
}

}  // namespace

std::byte* Behind(const std::byte* address) { return Space().Behind(address); }

}  // namespace abacus
}  // namespace anydml

extern "C" __attribute__((visibility("default"))) const anydml::Module AnyDmlModule = {
    ANYDML_VERSION, anydml::abacus::FindBackends,
    []() -> const anydml::Column& { return *anydml::abacus::TheBackend().traits().column; }};
