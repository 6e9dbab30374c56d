#include "status.h"

#include "client/exit_status.h"

namespace py = pybind11;

namespace anydml::python {
namespace {

PyObject* ExceptionFor(Code code) {
  if (code == client::kBadUsage) return PyExc_ValueError;
  switch (code) {
    case Code::kInvalidArgument:
      return PyExc_ValueError;
    case Code::kUnsupported:
    case Code::kNotImplemented:
      return PyExc_NotImplementedError;
    case Code::kOutOfMemory:
      return PyExc_MemoryError;
    default:
      return PyExc_RuntimeError;
  }
}

}  // namespace

py::str Text(std::string_view text) {
  PyObject* const decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(decoded);
}

void Raise(PyObject* type, std::string_view message) {
  // An object, not type and text: if Python has no memory to make one, pybind11 would report an internal
  // error.
  PyObject* const error = PyObject_CallFunctionObjArgs(type, Text(message).ptr(), nullptr);
  if (error != nullptr) {
    PyErr_SetObject(type, error);
    Py_DECREF(error);
  }
  throw py::error_already_set();
}

void Check(const Status& status) {
  // Set by what `body` called back, for example by Ctrl-C.
  if (!status.ok() && PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (!status.ok()) Raise(ExceptionFor(status.code()), status.message());
}

}  // namespace anydml::python
