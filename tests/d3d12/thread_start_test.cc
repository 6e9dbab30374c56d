// Threads cannot be started because memory has run out.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "backend/cpu/thread_pool.h"

namespace {

thread_local int g_until_failure = -1;  // this thread's allocations that still succeed; negative: all do

}  // namespace

__attribute__((noinline)) void* operator new(size_t bytes) {
  if (g_until_failure >= 0 && g_until_failure-- == 0) throw std::bad_alloc();
  if (void* const memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace anydml {
namespace {

TEST(ThreadPool, HasAsManyWorkersAsCouldBeStarted) {
  int without_pool = 0;
  for (int allocations = 0; allocations < 8; ++allocations) {
    g_until_failure = allocations;
    try {
      ThreadPool pool(4);
      g_until_failure = -1;
      ThreadPool::User user(&pool);
      std::atomic<uint32_t> done{0};
      user.Run(
          100, [](void* context, uint32_t) { ++*static_cast<std::atomic<uint32_t>*>(context); }, &done);
      EXPECT_EQ(done, 100u);
    } catch (const std::bad_alloc&) {
      g_until_failure = -1;
      ++without_pool;
    }
  }
  EXPECT_EQ(without_pool, 1);  // no memory for the list of workers
}

}  // namespace
}  // namespace anydml
