#include "process.h"

#include <pthread.h>

#include <atomic>

namespace anydml::python {
namespace {

std::atomic<bool> g_forked = false;

}  // namespace

void WatchForks() {
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { g_forked.store(true, std::memory_order_relaxed); });
}

bool Forked() { return g_forked.load(std::memory_order_relaxed); }

Status CheckProcess() {
  if (!Forked()) return {};
  return Status(
      Code::kFail,
      "this process was forked from one that had used anydml, whose threads it does not have; start it "
      "with the 'spawn' or 'forkserver' method of multiprocessing");
}

}  // namespace anydml::python
