// ONNX models for Python. Each has its own session, which one thread at a time uses.
#pragma once

#include <pybind11/pybind11.h>

namespace anydml::python {

void DefineOnnxModel(pybind11::module_* m);

}  // namespace anydml::python
