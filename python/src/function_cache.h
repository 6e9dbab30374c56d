// A cache of the operators that functions have compiled, keyed by everything on which the compilation
// depends: operator, attributes, outputs, device, and the types, sizes and strides of arrays, NumPy's or on a
// GPU. Keeps the latest 256.
#pragma once

#include <functional>
#include <span>

#include <pybind11/pybind11.h>

namespace anydml::python {

// The arguments of _call.call: name, inputs, attributes, outputs, out, device, and a stream's number or None.
using FunctionArguments = std::span<PyObject* const, 7>;

// Null: not cached yet, or not cacheable, such as calls with other arrays, or with attribute types whose
// different values may look the same.
pybind11::object CallFunction(FunctionArguments arguments);

// `make` returns a capsule with a Caller, or null; it is called if the call can be cached.
void RememberFunction(FunctionArguments arguments, const std::function<pybind11::object()>& make);

// Clears the cache, so that devices are destroyed before the interpreter.
void ForgetFunctions();

}  // namespace anydml::python
