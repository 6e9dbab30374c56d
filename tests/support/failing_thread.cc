// A library to be preloaded: of the threads that a program starts, the one that ANYDML_TEST_FAILING_THREAD
// counts, from 1, cannot be started.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*body)(void*),
                                                                     void* argument) noexcept {
  static const int failing = std::atoi(std::getenv("ANYDML_TEST_FAILING_THREAD"));
  static const auto create = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  static std::atomic<int> started{0};
  return ++started == failing ? EAGAIN : create(thread, attributes, body, argument);
}
