// Threads of the library's own.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cfenv>
#include <thread>
#include <utility>

namespace anydml {

// Starts a thread that the application does not notice: its signals are not delivered there,
// and what it does to denormals and rounding (a new thread inherits both) changes no result.
// Throws std::system_error when the system refuses. Names have up to 15 characters.
template <typename Body>
std::thread StartBackgroundThread(const char* name, Body body) {
  struct SignalsBlocked {
    SignalsBlocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &old);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &old, nullptr); }
    sigset_t old;
  } blocked;
  std::thread thread([body = std::move(body)] {
    std::fesetenv(FE_DFL_ENV);
    body();
  });
  pthread_setname_np(thread.native_handle(), name);
  return thread;
}

}  // namespace anydml
