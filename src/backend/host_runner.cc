#include "backend/host_runner.h"

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "base/default_environment.h"

namespace anydml {
namespace {

constexpr uint64_t kCopyAlignment = 256;  // the strictest that kernels expect (KernelArguments::persistent)

struct FreeAligned {
  void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{kCopyAlignment}); }
};
using HostMemory = std::unique_ptr<std::byte, FreeAligned>;

HostMemory Allocate(uint64_t bytes) {
  return HostMemory(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kCopyAlignment})));
}

// Operands that share bytes on the device share them on the host, too: an output may be in an input's place.
class HostCopies {
 public:
  void Add(const Buffer& buffer) {
    if (buffer.data == nullptr || buffer.size == 0) return;
    blocks_.push_back({buffer.data, buffer.data + buffer.size, {}});
  }

  void Allocate() {
    std::sort(blocks_.begin(), blocks_.end(),
              [](const Block& a, const Block& b) { return a.begin < b.begin; });
    std::vector<Block> joined;
    for (Block& block : blocks_) {
      if (!joined.empty() && block.begin < joined.back().end) {
        joined.back().end = std::max(joined.back().end, block.end);
      } else {
        joined.push_back(std::move(block));
      }
    }
    blocks_ = std::move(joined);
    for (Block& block : blocks_) block.memory = anydml::Allocate(block.size() + kCopyAlignment);
  }

  template <typename Read>
  Status Fill(const Read& read) const {
    for (const Block& block : blocks_) ANYDML_RETURN_IF_ERROR(read(block.host(), block.begin, block.size()));
    return {};
  }

  Buffer On(const Buffer& buffer) const {
    if (buffer.data == nullptr || buffer.size == 0) return buffer;
    for (const Block& block : blocks_) {
      if (buffer.data >= block.begin && buffer.data < block.end) {
        return {block.host() + (buffer.data - block.begin), buffer.size};
      }
    }
    return {};
  }
  std::vector<Buffer> On(std::span<const Buffer> buffers) const {
    std::vector<Buffer> copies;
    for (const Buffer& buffer : buffers) copies.push_back(On(buffer));
    return copies;
  }

 private:
  struct Block {
    std::byte* begin;
    std::byte* end;
    HostMemory memory;

    uint64_t size() const { return static_cast<uint64_t>(end - begin); }
    // The same offset from a multiple of the alignment as on the device.
    std::byte* host() const { return memory.get() + reinterpret_cast<uintptr_t>(begin) % kCopyAlignment; }
  };
  std::vector<Block> blocks_;
};

}  // namespace

Status HostRunner::RunOnHost(const Kernel& kernel, const KernelArguments& arguments, bool initialize) try {
  ANYDML_RETURN_IF_ERROR(Check());
  HostCopies copies;
  for (const Buffer& buffer : arguments.inputs) copies.Add(buffer);
  for (const Buffer& buffer : arguments.outputs) copies.Add(buffer);
  copies.Add(arguments.persistent);
  copies.Allocate();
  // Outputs are copied, too: the bytes between their elements must not change.
  ANYDML_RETURN_IF_ERROR(copies.Fill(
      [&](std::byte* host, const std::byte* device, uint64_t bytes) { return Read(host, device, bytes); }));

  const std::vector<Buffer> inputs = copies.On(arguments.inputs), outputs = copies.On(arguments.outputs);
  const uint64_t scratch_bytes =
      initialize ? kernel.initialization_temporary_bytes() : kernel.temporary_bytes();
  const HostMemory scratch = scratch_bytes != 0 ? Allocate(scratch_bytes) : nullptr;
  KernelArguments on_host;
  on_host.inputs = inputs;
  on_host.outputs = outputs;
  on_host.temporary = {scratch.get(), scratch_bytes};
  on_host.persistent = copies.On(arguments.persistent);
  on_host.data_errors = arguments.data_errors;
  {
    const DefaultEnvironment environment;  // the thread may belong to the application
    ANYDML_RETURN_IF_ERROR(initialize ? kernel.Initialize(on_host) : kernel.Run(on_host));
  }

  const auto write = [&](const Buffer& device) {
    return device.data == nullptr ? Status() : Write(device.data, copies.On(device).data, device.size);
  };
  if (initialize) return write(arguments.persistent);
  for (const Buffer& output : arguments.outputs) ANYDML_RETURN_IF_ERROR(write(output));
  return {};
} catch (const std::bad_alloc&) {
  return Status(Code::kOutOfMemory, "no host memory for copies of a kernel's operands");
}

}  // namespace anydml
