#include "backend/cpu/cpu_memory.h"

#include <sys/mman.h>

#include <utility>

namespace anydml {
namespace {

constexpr uint64_t kAlignment = uint64_t{64} << 10;
// From this size on, huge pages pay; they are requested for memory that is aligned to them.
constexpr uint64_t kHugePage = uint64_t{2} << 20;

class CpuMemory final : public Memory {
 public:
  CpuMemory(void* mapping, uint64_t mapping_bytes, std::byte* data, uint64_t bytes)
      : mapping_(mapping), mapping_bytes_(mapping_bytes) {
    device_ = data;
    host_ = data;
    size_ = bytes;
  }
  ~CpuMemory() override { munmap(mapping_, mapping_bytes_); }

 private:
  void* const mapping_;
  const uint64_t mapping_bytes_;
};

}  // namespace

Status AllocateCpuMemory(uint64_t bytes, uint64_t limit, std::shared_ptr<Memory>* memory) {
  memory->reset();
  if (bytes == 0) return InvalidArgument("an allocation must have at least 1 byte");
  if (bytes > limit) {
    return Status(Code::kOutOfMemory,
                  StrCat("cannot allocate ", bytes, " bytes: the machine has ", limit, " bytes of memory"));
  }
  const uint64_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  // mmap aligns to pages (4 to 64 KiB) only; the surplus is never touched.
  const uint64_t mapping_bytes = bytes + alignment;
  void* mapping = mmap(nullptr, mapping_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return Status(Code::kOutOfMemory, StrCat("cannot allocate ", bytes, " bytes of host memory"));
  }
  const auto address = reinterpret_cast<uintptr_t>(mapping);
  const uintptr_t aligned = (address + alignment - 1) & ~(static_cast<uintptr_t>(alignment) - 1);
  auto* data = static_cast<std::byte*>(mapping) + (aligned - address);
  if (bytes >= kHugePage) madvise(data, bytes, MADV_HUGEPAGE);  // a hint: if it is refused, nothing is lost
  try {
    *memory = std::make_shared<CpuMemory>(mapping, mapping_bytes, data, bytes);
  } catch (...) {
    munmap(mapping, mapping_bytes);
    throw;
  }
  return {};
}

}  // namespace anydml
