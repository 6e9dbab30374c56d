#include "support/guarded_buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>

namespace anydml::testing {
namespace {

constexpr uint8_t kGuard = 0x5C;
constexpr size_t kAlignment = 8;  // of the widest elements

size_t PageSize() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

size_t WholePages(size_t size) {
  return std::max((size + PageSize() - 1) / PageSize(), size_t{1}) * PageSize();
}

// By size: tests allocate and free many, and system calls are slow.
std::multimap<size_t, uint8_t*>& FreePages() {
  static auto* const pages = new std::multimap<size_t, uint8_t*>;
  return *pages;
}

uint8_t* TakePages(size_t size) {
  if (const auto found = FreePages().find(size); found != FreePages().end()) {
    uint8_t* const pages = found->second;
    FreePages().erase(found);
    return pages;
  }
  const size_t page = PageSize();
  void* const mapping =
      mmap(nullptr, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  uint8_t* const pages = static_cast<uint8_t*>(mapping) + page;
  if (mprotect(pages, size, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  return pages;
}

}  // namespace

GuardedBuffer::GuardedBuffer(size_t size, bool at_end)
    : size_(size),
      pages_size_(WholePages(size)),
      pages_(TakePages(pages_size_)),
      data_(at_end ? pages_ + (pages_size_ - size) / kAlignment * kAlignment : pages_) {
  std::memset(pages_, kGuard, pages_size_);
  std::memset(data_, kGap, size_);
}

GuardedBuffer::GuardedBuffer(const Bytes& content, bool at_end) : GuardedBuffer(content.size(), at_end) {
  std::copy(content.begin(), content.end(), data_);
}

GuardedBuffer::~GuardedBuffer() {
  constexpr size_t kMostKept = size_t{1} << 20;
  if (pages_size_ <= kMostKept) {
    FreePages().emplace(pages_size_, pages_);
  } else {
    munmap(pages_ - PageSize(), pages_size_ + 2 * PageSize());
  }
}

bool GuardedBuffer::GuardsIntact() const {
  const auto intact = [](uint8_t byte) { return byte == kGuard; };
  return std::all_of(pages_, data_, intact) && std::all_of(data_ + size_, pages_ + pages_size_, intact);
}

}  // namespace anydml::testing
