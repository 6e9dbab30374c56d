// Threads of the library's own.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cfenv>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace anydml {

// Starts a thread that the application does not notice: its signals are not delivered there,
// and what it does to denormals and rounding (a new thread inherits both) changes no result.
// Throws a std::system_error that says so when the system refuses. Names have up to 15 characters.
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
  try {
    std::thread thread([body = std::move(body)] {
      std::fesetenv(FE_DFL_ENV);
      body();
    });
    pthread_setname_np(thread.native_handle(), name);
    return thread;
  } catch (const std::system_error& error) {
    throw std::system_error(error.code(), std::string("the thread ") + name + " cannot be started");
  }
}

}  // namespace anydml
