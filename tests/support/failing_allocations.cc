#include "support/failing_allocations.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <string_view>

#include <anydml.h>

extern "C" const char __executable_start, etext;

namespace {

std::atomic<int64_t> g_until_failure{-1};  // allocations that will still succeed; negative: all
std::atomic<bool> g_of_program{false};
std::atomic<int64_t> g_live{0};

// The test's own allocations, including those of its templates, do not count unless it says so; those of a
// GPU's driver never do, since its reaction is not ours.
bool IsOurs(const void* caller) { return caller >= &__executable_start && caller < &etext; }
bool IsOfDriver(const void* caller) {
  Dl_info info;
  return dladdr(caller, &info) != 0 && std::string_view(info.dli_fname).find("/libcuda") != std::string::npos;
}

bool Fails(const void* caller) {
  if (g_until_failure.load(std::memory_order_relaxed) < 0 || (IsOurs(caller) && !g_of_program.load()) ||
      IsOfDriver(caller)) {
    return false;
  }
  return g_until_failure.fetch_sub(1) == 0;
}

void* Allocate(size_t bytes, size_t alignment, const void* caller) {
  if (Fails(caller)) return nullptr;
  void* const memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (memory != nullptr) g_live.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

void Free(void* memory) {
  if (memory != nullptr) g_live.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

void* AllocateOrThrow(size_t bytes, size_t alignment, const void* caller) {
  if (void* const memory = Allocate(bytes, alignment, caller)) return memory;
  throw std::bad_alloc();
}

constexpr size_t kUsual = alignof(std::max_align_t);

}  // namespace

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // sees std::free where it has inlined delete
#endif

// These replace the library's, too.
void* operator new(size_t bytes) { return AllocateOrThrow(bytes, kUsual, __builtin_return_address(0)); }
void* operator new[](size_t bytes) { return AllocateOrThrow(bytes, kUsual, __builtin_return_address(0)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return AllocateOrThrow(bytes, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return AllocateOrThrow(bytes, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, kUsual, __builtin_return_address(0));
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return Allocate(bytes, kUsual, __builtin_return_address(0));
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, size_t) noexcept { Free(memory); }
void operator delete[](void* memory, size_t) noexcept { Free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { Free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { Free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { Free(memory); }

extern "C" void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (Fails(__builtin_return_address(0))) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

namespace anydml::test {

AllocationFailure::AllocationFailure(int64_t count, Whose whose) : count_(count) {
  g_of_program.store(whose == Whose::kProgram);
  g_until_failure.store(count);
}
AllocationFailure::~AllocationFailure() { g_until_failure.store(-1); }
bool AllocationFailure::happened() const { return g_until_failure.load() < 0; }
int64_t AllocationFailure::allocations() const { return count_ - g_until_failure.load(); }

int64_t LiveAllocations() { return g_live.load(); }

bool AllocationsAreSeen() {
  Dl_info info;
  if (dladdr(reinterpret_cast<const void*>(&AnyDmlGetVersion), &info) == 0) return false;
  void* const handle = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  const link_map* library = nullptr;
  if (handle == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, &library) != 0) return false;
  const char* names = nullptr;
  for (const ElfW(Dyn)* entry = library->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(entry->d_un.d_ptr);
  }
  bool seen = false;
  for (const ElfW(Dyn)* entry = library->l_ld; entry->d_tag != DT_NULL && names != nullptr; ++entry) {
    if (entry->d_tag != DT_NEEDED) continue;
    const std::string_view needed = names + entry->d_un.d_val;
    seen |= needed.starts_with("libstdc++.") || needed.starts_with("libc++.");
  }
  dlclose(handle);
  return seen;
}

}  // namespace anydml::test
