// Memory runs out: every allocation of a whole run, from the device's creation to the read-back,
// fails once. The run says so by E_OUTOFMEMORY, or by removing the device for that reason; nothing
// leaks, no exception comes through, and a device that was not removed goes on.
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string_view>

#include "dml/dml_test.h"

extern "C" const char __executable_start, etext;

namespace {

std::atomic<int64_t> g_until_failure{-1};  // allocations that still succeed; negative: all do

// The test's own allocations, also of its templates, do not count, and those of a GPU's driver: what
// that answers then is its own affair.
bool IsOurs(const void* caller) { return caller >= &__executable_start && caller < &etext; }
bool IsOfDriver(const void* caller) {
  Dl_info info;
  return dladdr(caller, &info) != 0 && std::string_view(info.dli_fname).find("/libcuda") != std::string::npos;
}

bool Fails(const void* caller) {
  if (g_until_failure.load(std::memory_order_relaxed) < 0 || IsOurs(caller) || IsOfDriver(caller)) {
    return false;
  }
  return g_until_failure.fetch_sub(1) == 0;
}

void* Allocate(size_t bytes, size_t alignment, const void* caller) {
  if (Fails(caller)) return nullptr;
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
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

// These take the place of the library's, too.
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
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

extern "C" void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (Fails(__builtin_return_address(0))) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

namespace anydml::test {
namespace {

// With the allocation behind `count` others failing while it exists.
class Failure {
 public:
  explicit Failure(int64_t count) { g_until_failure.store(count); }
  ~Failure() { g_until_failure.store(-1); }
  bool happened() const { return g_until_failure.load() < 0; }
};

const std::vector<float> kInput = {3, 1, 2, 5, 4, 6, 0, 7};
const std::vector<float> kBest = {7, 6, 5};

// With an owned input there is something to initialise.
std::vector<float> FindBest(DmlHarness& harness) {
  const TopK op({1, 8}, 1, 3, DML_AXIS_DIRECTION_DECREASING, DML_TENSOR_FLAG_OWNED_BY_DML);
  const auto results = harness.Run(DML_OPERATOR_TOP_K1, &op.desc, {ToBytes(kInput)},
                                   {op.values.bytes(), op.indices.bytes()}, {true});
  return FromBytes<float>(results[0], kBest.size());
}

// Whether the library takes its operator new from a shared library, in whose place this file's comes. One
// that a toolchain has linked into it statically is called directly.
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

class AllocationFailureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!AllocationsAreSeen()) {
      GTEST_SKIP()
          << "libanydml.so was linked with a static libstdc++: its allocations cannot be made to fail";
    }
  }
  void TearDown() override { EXPECT_EQ(AnyDmlGetLiveObjectCount(), 0u); }

  // A whole run for every allocation in it, which fails: on the harness that `first` returns, or
  // one of its own where that is null. Unless the device is removed `after` comes then.
  template <typename First, typename After>
  void FailEveryAllocation(First&& first, After&& after) {
    constexpr int64_t kMost = 100'000;
    int64_t count = 0;
    for (bool happened = true; happened && count < kMost && !HasFailure(); ++count) {
      SCOPED_TRACE(::testing::Message() << "allocation " << count << " fails");
      std::unique_ptr<DmlHarness> harness = first();
      std::string error;
      {
        const Failure failure(count);
        try {
          if (!harness) harness = std::make_unique<DmlHarness>();
          EXPECT_EQ(FindBest(*harness), kBest);
        } catch (const std::runtime_error& thrown) {  // the harness's; nothing else may come
          error = thrown.what();
        }
        happened = failure.happened();
      }
      if (!harness || !ExpectRemovedForMemory(*harness)) {
        EXPECT_TRUE(error.empty() || error.find("returned 0x8007000E: ") != std::string::npos) << error;
        if (harness) after(*harness);
      }
    }
    EXPECT_GT(count, 50);  // else they are not counted
    EXPECT_LT(count, kMost);
    RecordProperty("allocations", static_cast<int>(count));
  }

 private:
  // Whether one of the devices was removed.
  static bool ExpectRemovedForMemory(DmlHarness& harness) {
    bool removed = false;
    for (const HRESULT reason :
         {harness.dml()->GetDeviceRemovedReason(), harness.d3d()->GetDeviceRemovedReason()}) {
      EXPECT_TRUE(reason == S_OK || reason == E_OUTOFMEMORY) << std::hex << reason;
      removed |= reason != S_OK;
    }
    return removed;
  }
};

TEST_F(AllocationFailureTest, InAWholeRun) {
  FailEveryAllocation([] { return nullptr; }, [](DmlHarness&) {});
}

TEST_F(AllocationFailureTest, OnADeviceThatGoesOn) {
  FailEveryAllocation([] { return std::make_unique<DmlHarness>(); },
                      [](DmlHarness& harness) {
                        // A list that was left half recorded is not gone on with.
                        DmlHarness again(harness.d3d(), DML_CREATE_DEVICE_FLAG_NONE);
                        EXPECT_EQ(FindBest(again), kBest);
                      });
}

}  // namespace
}  // namespace anydml::test
