// DLPack's functions in C that a type of tensors may have: what its __dlpack__ says, without Python.
// PyTorch's takes ten microseconds for each tensor, which is most of a call; these take a tenth of one.
#pragma once

#include <pybind11/pybind11.h>

#include "dlpack.h"

namespace anydml::python {

class DlpackExchange {
 public:
  // Of the object's type; null when that has none, or when this tensor (one with gradients) is one that only
  // __dlpack__ knows what to say about. It stays for ever.
  static const DlpackExchange* Of(PyObject* object);

  // False, without an error of Python's, when it cannot be described. Sizes and strides are the object's, and
  // stay until Python runs again.
  bool View(PyObject* object, dlpack::Tensor* tensor) const;
  // The stream that the library works in now: what it has done to tensors is there, or comes before it.
  bool CurrentStream(const dlpack::Place& place, uintptr_t* stream) const;

 private:
  friend struct DlpackExchangeTypes;

  int (*view_)(void* object, dlpack::Tensor* out) = nullptr;
  int (*current_stream_)(int32_t device_type, int32_t device_id, void** stream) = nullptr;
  bool gradients_ = false;  // whether its tensors can have them
};

}  // namespace anydml::python
