// Preloaded into Python: operator new fails where a test requests it. (For Python's own allocations, tests
// use _testcapi.set_nomemory.)
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> g_until_failure{-1};  // allocations that will still succeed; negative: all

void* Allocate(size_t bytes, size_t alignment) {
  if (g_until_failure.load(std::memory_order_relaxed) >= 0 && g_until_failure.fetch_sub(1) == 0)
    return nullptr;
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* AllocateOrThrow(size_t bytes, size_t alignment) {
  if (void* const memory = Allocate(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

constexpr size_t kUsual = alignof(std::max_align_t);

}  // namespace

// The allocation after `count` others fails.
extern "C" void anydml_test_fail_after(int64_t count) { g_until_failure.store(count); }
// Stops failing; returns whether an allocation has failed.
extern "C" bool anydml_test_succeed() { return g_until_failure.exchange(-1) < 0; }

void* operator new(size_t bytes) { return AllocateOrThrow(bytes, kUsual); }
void* operator new[](size_t bytes) { return AllocateOrThrow(bytes, kUsual); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return AllocateOrThrow(bytes, static_cast<size_t>(alignment));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return AllocateOrThrow(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return Allocate(bytes, kUsual); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return Allocate(bytes, kUsual); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
