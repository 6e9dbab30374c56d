// Failures as Python's exceptions, and calls without the GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

#include "anydml/cli/exit_status.h"
#include "base/status.h"

namespace anydml::python {

inline void Check(const Status& status) {
  if (status.code() == tools::kBadUsage) throw pybind11::value_error(status.message());
  switch (status.code()) {
    case Code::kOk:
      return;
    case Code::kInvalidArgument:
      throw pybind11::value_error(status.message());
    case Code::kUnsupported:
    case Code::kNotImplemented:
      PyErr_SetString(PyExc_NotImplementedError, status.message().c_str());
      throw pybind11::error_already_set();
    case Code::kOutOfMemory:
      PyErr_SetString(PyExc_MemoryError, status.message().c_str());
      throw pybind11::error_already_set();
    default:
      throw std::runtime_error(status.message());
  }
}

// Takes the GIL again. When the interpreter ends meanwhile that ends the thread, by unwinding its stack, on
// which are objects that need the GIL to go: the thread sleeps instead, as newer versions of Python let it.
inline void TakeGil(PyThreadState* thread) {
  try {
    PyEval_RestoreThread(thread);
  } catch (...) {
    while (true) pause();
  }
}

// Runs `body` without the GIL. Not with pybind11's guard: see TakeGil, and unwinding must not begin in a
// destructor.
template <typename Body>
Status WithoutGil(Body&& body) {
  PyThreadState* const thread = PyEval_SaveThread();
  Status status;
  try {
    status = body();
  } catch (const std::exception& error) {
    status = Status(Code::kFail, error.what());
  }
  TakeGil(thread);
  return status;
}

template <typename Body>
void Run(Body&& body) {
  Check(WithoutGil(body));
}

}  // namespace anydml::python
