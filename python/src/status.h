// Failures as Python's exceptions, and calls without the GIL.
#pragma once

#include <pybind11/pybind11.h>

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

// Runs `body` without the GIL. Not with pybind11's guard: when the interpreter ends meanwhile, taking
// the GIL again ends the thread by unwinding its stack, which must not begin in a destructor.
template <typename Body>
Status WithoutGil(Body&& body) {
  PyThreadState* const thread = PyEval_SaveThread();
  Status status;
  try {
    status = body();
  } catch (const std::exception& error) {
    status = Status(Code::kFail, error.what());
  }
  PyEval_RestoreThread(thread);
  return status;
}

template <typename Body>
void Run(Body&& body) {
  Check(WithoutGil(body));
}

}  // namespace anydml::python
