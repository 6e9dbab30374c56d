#include "caller.h"

#include <pybind11/stl.h>

#include <cstring>

#include "device_array.h"
#include "function_cache.h"
#include "process.h"
#include "status.h"
#include "tensor_tuple.h"

namespace py = pybind11;

namespace anydml::python {
namespace {

// One argument per present input.
bool CountsAgree(const Caller& caller, size_t given) {
  size_t wanted = 0;
  for (const auto& input : caller.inputs) wanted += input ? 1 : 0;
  return wanted == given;
}

py::object Call(const Caller& caller, const py::tuple& inputs, PyObject* out, PyObject* stream) {
  const auto given = static_cast<size_t>(PyTuple_GET_SIZE(inputs.ptr()));
  if (Forked() || !CountsAgree(caller, given)) return {};
  PyObject* arguments[kMaxTensors] = {};
  for (size_t i = 0; i < given; ++i)
    arguments[i] = PyTuple_GET_ITEM(inputs.ptr(), static_cast<Py_ssize_t>(i));
  const std::span<PyObject* const> span(arguments, given);
  if (!caller.on_host()) return CallOnDevice(caller, span, out, stream);
  return stream == Py_None ? CallOnHost(caller, span, out) : py::object();
}

// C++ exceptions end here: Python calls these functions without pybind11, whose overhead would double their
// time.
template <typename Body>
PyObject* Guarded(Body&& body) {
  try {
    py::object result = body();
    return (result ? result : py::reinterpret_borrow<py::object>(Py_NotImplemented)).release().ptr();
  } catch (py::error_already_set& error) {
    error.restore();
  } catch (const py::builtin_exception& error) {
    error.set_error();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    // pybind11 throws its own exception for an object that Python could not make, and keeps Python's error
    // set.
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

// call(inputs, out, stream)
PyObject* CallCaller(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 3 || !PyTuple_Check(arguments[0])) {
    PyErr_SetString(PyExc_TypeError, "a tuple of inputs, out and stream are wanted");
    return nullptr;
  }
  const auto* caller = static_cast<const Caller*>(PyCapsule_GetPointer(self, kCallerName));
  return Guarded([&] {
    return Call(*caller, py::reinterpret_borrow<py::tuple>(arguments[0]), arguments[1], arguments[2]);
  });
}

// call(name, inputs, attributes, outputs, out, device, stream)
PyObject* CallCached(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 7) {
    PyErr_SetString(PyExc_TypeError, "seven arguments are wanted");
    return nullptr;
  }
  return Guarded([&]() -> py::object {
    if (Forked()) return {};
    return CallFunction(FunctionArguments(arguments, 7));
  });
}

// METH_FASTCALL tells Python its actual signature.
PyCFunction AsMethod(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef kCallCaller = {"call", AsMethod(CallCaller), METH_FASTCALL, nullptr};
PyMethodDef kCallCached = {"call_function", AsMethod(CallCached), METH_FASTCALL, nullptr};

using PyTensors =
    std::vector<std::optional<std::tuple<PyTensor, py::object, py::object>>>;  // tensor, shape, dtype

std::vector<std::optional<PyTensorDesc>> ToDescs(const PyTensors& given) {
  std::vector<std::optional<PyTensorDesc>> descs;
  for (const auto& each : given) {
    auto& desc = descs.emplace_back();
    if (!each) continue;
    const auto& [tensor, shape, dtype] = *each;
    desc = PyTensorDesc{ToTensor(tensor), shape, dtype};
    desc->bytes = BitSize(desc->tensor.type) / 8;
    for (uint32_t i = 0; i < desc->tensor.rank; ++i) desc->bytes *= desc->tensor.sizes[i];
  }
  return descs;
}

py::object MakeCaller(const std::shared_ptr<CompiledOperator>& op, const PyTensors& inputs,
                      const PyTensors& outputs, int32_t gpu, const py::object& make_tensor) {
  if (op == nullptr) Raise(PyExc_TypeError, "an operator is wanted, not None");
  if (inputs.size() > kMaxTensors || outputs.size() > kMaxTensors) return py::none();
  auto caller = std::make_unique<Caller>(Caller{op, ToDescs(inputs), ToDescs(outputs), gpu, make_tensor});
  const py::capsule capsule(caller.get(), kCallerName, [](PyObject* self) {
    delete static_cast<const Caller*>(PyCapsule_GetPointer(self, kCallerName));
  });
  caller.release();
  auto call = py::reinterpret_steal<py::object>(PyCFunction_New(&kCallCaller, capsule.ptr()));
  if (!call) throw py::error_already_set();
  return call;
}

}  // namespace

bool SplitOut(PyObject* out, size_t count, Objects* each) {
  if (out == Py_None) return true;
  if (!PyTuple_CheckExact(out) && !PyList_CheckExact(out)) {
    (*each)[0] = py::reinterpret_borrow<py::object>(out);
    return count == 1;
  }
  if (static_cast<size_t>(PySequence_Fast_GET_SIZE(out)) != count) return false;
  for (size_t i = 0; i < count; ++i) {
    PyObject* const item = PySequence_Fast_GET_ITEM(out, static_cast<Py_ssize_t>(i));
    if (item != Py_None) (*each)[i] = py::reinterpret_borrow<py::object>(item);
  }
  return true;
}

py::object Joined(std::span<py::object> results) {
  if (results.size() == 1) return std::move(results[0]);
  py::tuple all(results.size());
  for (size_t i = 0; i < results.size(); ++i) {
    PyTuple_SET_ITEM(all.ptr(), static_cast<Py_ssize_t>(i), results[i].release().ptr());
  }
  return all;
}

bool RunQuickly(const Caller& caller, const Addresses& inputs, const Addresses& outputs, const Stream& stream,
                bool wait) {
  std::string data_error;
  const Status status = WithoutGil([&] {
    return caller.op->device->Run(*caller.op, {inputs.data(), caller.inputs.size()},
                                  {outputs.data(), caller.outputs.size()}, stream, wait, &data_error);
  });
  if (!data_error.empty()) Raise(PyExc_IndexError, data_error);
  return status.ok();
}

void DefineCaller(py::module_* m) {
  m->def("make_caller", MakeCaller);
  m->def("register_tensors", RegisterTensors);
  m->def("forget_functions", ForgetFunctions);
  m->def("check_process", [] { Check(CheckProcess()); });
  m->attr("call_function") = py::reinterpret_steal<py::object>(PyCFunction_New(&kCallCached, nullptr));
  // remember(name, inputs, attributes, outputs, device, make), where make() returns the caller.
  m->def("remember", [](const py::object& name, const py::object& inputs, const py::object& attributes,
                        const py::object& outputs, const py::object& device, const py::function& make) {
    PyObject* const arguments[] = {name.ptr(), inputs.ptr(), attributes.ptr(), outputs.ptr(),
                                   Py_None,    device.ptr(), Py_None};
    RememberFunction(arguments, [&]() -> py::object {
      const py::object call = make();
      if (PyCFunction_Check(call.ptr()) == 0 || PyCFunction_GET_SELF(call.ptr()) == nullptr) return {};
      return py::reinterpret_borrow<py::object>(PyCFunction_GET_SELF(call.ptr()));
    });
  });
}

}  // namespace anydml::python
