// Errors as Python exceptions, and calls without the GIL.
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <new>
#include <stdexcept>
#include <string_view>

#include "base/status.h"

namespace anydml::python {

// Text for Python. Models may hold names of any bytes: those that are not UTF-8 are escaped, as in "\xff".
pybind11::str Text(std::string_view text);

[[noreturn]] void Raise(PyObject* type, std::string_view message);

// Text as a Python object. Without memory for it, the error is Python's own; pybind11 would report a wrong
// type.
template <typename Value>
pybind11::object ToPython(const Value& value) {
  if constexpr (pybind11::detail::is_pyobject<Value>::value) {
    return value;
  } else {
    pybind11::object object = pybind11::cast(value);
    if (!object) throw pybind11::error_already_set();
    return object;
  }
}

// Raises the exception for the status; nothing if it is OK.
void Check(const Status& status);

// The status of `body`, also when it throws.
template <typename Body>
Status Caught(Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Status(Code::kOutOfMemory, "out of memory");  // short: needs no allocation
  } catch (const std::length_error&) {                   // thrown by a container that would exceed its
                                                         // maximum size
    return Status(Code::kOutOfMemory, "out of memory");
  } catch (const std::exception& error) {
    return Status(Code::kFail, error.what());
  }
}

// Acquires the GIL again. If the interpreter is shutting down, old Python versions end the thread by
// unwinding its stack, whose objects need the GIL to be destroyed. Therefore the thread sleeps instead, as in
// newer versions.
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
  Status status = Caught(body);
  TakeGil(thread);
  return status;
}

template <typename Body>
void Run(Body&& body) {
  Check(WithoutGil(body));
}

}  // namespace anydml::python
