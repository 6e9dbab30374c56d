// DLPack's C functions that a tensor type may have: the content of its __dlpack__ without Python. PyTorch's
// __dlpack__ takes ten microseconds per tensor, which is most of a call; these take a tenth of that.
#pragma once

#include <pybind11/pybind11.h>

#include "dlpack.h"

namespace anydml::python {

class DlpackExchange {
 public:
  // The functions of the object's type; null if it has none, or if only __dlpack__ can handle this tensor
  // (one with gradients). Never freed.
  static const DlpackExchange* Of(PyObject* object);

  // False, without a Python error, if it cannot be described. Sizes and strides belong to the object, and are
  // valid until Python runs again.
  bool View(PyObject* object, dlpack::Tensor* tensor) const;
  // The library's present stream: its work on tensors is complete, or ordered before that stream's next work.
  bool CurrentStream(const dlpack::Place& place, uintptr_t* stream) const;

 private:
  friend struct DlpackExchangeTypes;

  int (*view_)(void* object, dlpack::Tensor* out) = nullptr;
  int (*current_stream_)(int32_t device_type, int32_t device_id, void** stream) = nullptr;
  bool gradients_ = false;  // whether its tensors can have them
};

}  // namespace anydml::python
