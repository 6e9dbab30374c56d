// ONNX models for Python. Each has a session of its own, used by one thread at a time.
#pragma once

#include <pybind11/pybind11.h>

namespace anydml::python {

void DefineOnnxModel(pybind11::module_* m);

}  // namespace anydml::python
