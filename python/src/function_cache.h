// Operators that functions have compiled, by everything that they were compiled for: operator, attributes,
// outputs, device, and the types, sizes and strides of arrays, NumPy's or on a GPU. The latest 256.
#pragma once

#include <functional>
#include <span>

#include <pybind11/pybind11.h>

namespace anydml::python {

// The arguments of _call.call: name, inputs, attributes, outputs, out, device, and a stream's number or None.
using FunctionArguments = std::span<PyObject* const, 7>;

// Null: not known yet, or nothing to be remembered, as are calls with other arrays or attributes of types
// that may look the same and be different.
pybind11::object CallFunction(FunctionArguments arguments);

// `make` returns a capsule with a Caller, or null; it is asked where the call can be remembered.
void RememberFunction(FunctionArguments arguments, const std::function<pybind11::object()>& make);

// So that devices end before the interpreter does.
void ForgetFunctions();

}  // namespace anydml::python
