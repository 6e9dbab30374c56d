// The library's own threads.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <cfenv>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

namespace anydml {

// Starts a thread that the application does not notice: the application's signals are not delivered to it,
// and the denormal and rounding modes that it inherits from its creator are reset, so that they change no
// result. Throws a std::system_error with a message if the system refuses. Names have up to 15 characters.
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
