#include "graph/run/guards.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace anydml {
namespace {

// The alignment that tensors may rely on.
constexpr uint64_t kAlignment = 16;

uint64_t PageBytes() {
  static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

GuardedPart::GuardedPart(const Buffer& memory, std::vector<Buffer*> buffers) {
  std::erase_if(buffers, [&](const Buffer* buffer) {
    return buffer->size == 0 || buffer->data < memory.data || buffer->data >= memory.data + memory.size;
  });
  std::sort(buffers.begin(), buffers.end(),
            [](const Buffer* a, const Buffer* b) { return a->data < b->data; });
  for (size_t i = 0; i < buffers.size();) {
    std::byte* const begin = buffers[i]->data;
    std::byte* end = begin + buffers[i]->size;
    size_t next = i + 1;
    for (; next < buffers.size() && buffers[next]->data < end; ++next) {
      end = std::max(end, buffers[next]->data + buffers[next]->size);
    }
    const auto bytes = static_cast<uint64_t>(end - begin);
    const uint64_t page = PageBytes(), inside = (bytes + page - 1) / page * page;
    void* const pages =
        mmap(nullptr, inside + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) {  // not an error: guards only serve to reveal errors
      i = next;
      continue;
    }
    std::byte* const first = static_cast<std::byte*>(pages) + page;
    const Copy copy = {begin, bytes, static_cast<std::byte*>(pages), inside + 2 * page,
                       first + (inside - bytes) / kAlignment * kAlignment};
    if (mprotect(first, inside, PROT_READ | PROT_WRITE) != 0) {
      munmap(pages, inside + 2 * page);
      i = next;
      continue;
    }
    copies_.push_back(copy);
    std::memcpy(copy.data, begin, bytes);
    for (; i < next; ++i) buffers[i]->data = copy.data + (buffers[i]->data - begin);
  }
}

GuardedPart::~GuardedPart() {
  for (const Copy& copy : copies_) {
    std::memcpy(copy.original, copy.data, copy.bytes);
    munmap(copy.pages, copy.pages_bytes);
  }
}

}  // namespace anydml
