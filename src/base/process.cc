#include "base/process.h"

#include <pthread.h>

#include <atomic>

namespace anydml {
namespace {

std::atomic<uint32_t> forks{0};

// Asking the system for the process id at every call would cost more than most calls.
[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });

}  // namespace

uint32_t CurrentProcess() noexcept { return forks.load(std::memory_order_relaxed); }

}  // namespace anydml
