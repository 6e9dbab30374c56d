#include "sealed_types.h"

#include <pybind11/pybind11.h>

#include <map>

namespace py = pybind11;

namespace anydml::python {
namespace {

PyObject* RefuseNew(PyTypeObject* type, PyObject*, PyObject*) {
  PyErr_Format(PyExc_TypeError, "%s objects come from functions of the module; the class makes none",
               type->tp_name);
  return nullptr;
}

PyObject* RefusePickling(PyObject* self, PyObject*) {
  PyErr_Format(PyExc_TypeError, "cannot pickle or copy %s objects", Py_TYPE(self)->tp_name);
  return nullptr;
}

// Only pybind11 calls it; RefuseNew does not.
PyObject* AllocateObject(PyTypeObject* type, Py_ssize_t items) {
  PyObject* const object = PyType_GenericAlloc(type, items);
  if (object == nullptr) throw py::error_already_set();
  return object;
}

using Dealloc = void (*)(py::detail::value_and_holder&);

// pybind11's original functions, by class.
std::map<const py::detail::type_info*, Dealloc>& Deallocs() {
  static auto* const deallocs = new std::map<const py::detail::type_info*, Dealloc>;
  return *deallocs;
}

// If memory runs out between an object and its holder, another owner still has the object that pybind11 would
// delete.
void DeallocHeld(py::detail::value_and_holder& held) {
  if (held.holder_constructed()) Deallocs().at(held.type)(held);
}

PyMethodDef kRefusals[] = {{"__reduce__", RefusePickling, METH_NOARGS, nullptr},
                           {"__reduce_ex__", RefusePickling, METH_O, nullptr}};

void Seal(PyTypeObject* type) {
  type->tp_new = RefuseNew;
  type->tp_alloc = AllocateObject;
  type->tp_flags &= ~Py_TPFLAGS_BASETYPE;
#ifdef Py_TPFLAGS_IMMUTABLETYPE  // since Python 3.10
  type->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
#endif
  PyType_Modified(type);
}

}  // namespace

void SealTypes() {
  // The types of this module only: see PYBIND11_COMPILER_TYPE in CMakeLists.txt.
  PyObject* const base = py::detail::get_internals().instance_base;
  auto* const base_type = reinterpret_cast<PyTypeObject*>(base);
  for (PyMethodDef& method : kRefusals) {
    py::setattr(base, method.ml_name,
                py::reinterpret_steal<py::object>(PyDescr_NewMethod(base_type, &method)));
  }
  for (const py::handle type : py::handle(base).attr("__subclasses__")()) {
    py::detail::type_info* const info =
        py::detail::get_type_info(reinterpret_cast<PyTypeObject*>(type.ptr()));
    Deallocs().emplace(info, info->dealloc);
    info->dealloc = DeallocHeld;
    Seal(info->type);
  }
  Seal(base_type);
}

}  // namespace anydml::python
