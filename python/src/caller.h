// Calls of compiled operators with as little overhead as Python allows. They take arrays with exactly the
// layout for which the operator was compiled; everything else (other strides, lists, wrong arguments) is
// handled in Python, which copies or reports the error (_compiled.py).
#pragma once

#include <pybind11/pybind11.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "device.h"

namespace anydml::python {

// A tensor as Python sees it.
struct PyTensorDesc {
  TensorDesc tensor;
  pybind11::object shape;  // a tuple
  pybind11::object dtype;  // NumPy's
  uint64_t bytes = 0;      // of the elements, if packed
};

struct Caller {
  std::shared_ptr<CompiledOperator> op;
  // In binding order, including absent ones. Outputs are packed.
  std::vector<std::optional<PyTensorDesc>> inputs;
  std::vector<std::optional<PyTensorDesc>> outputs;
  // On a GPU: its index, and the function that makes a tensor from (memory, shape, dtype).
  int32_t gpu = -1;
  pybind11::object make_tensor;

  bool on_host() const { return gpu < 0; }
};

inline constexpr const char* kCallerName = "anydml.caller";  // of capsules with a Caller

// The most tensors of a call; operators with more take the slow path.
inline constexpr size_t kMaxTensors = 16;
using Addresses = std::array<void*, kMaxTensors>;

// The targets of results: a caller's `out`, one tensor each, or null for new ones. The references are owned,
// because a list may change while Python runs. False if this is not possible.
using Objects = std::array<pybind11::object, kMaxTensors>;
bool SplitOut(PyObject* out, size_t count, Objects* each);

// The results of a call as a tuple, or the only one.
pybind11::object Joined(std::span<pybind11::object> results);

// Runs without the GIL. False: the slow path is needed (`Check` knows the reason). Throws an IndexError.
bool RunQuickly(const Caller& caller, const Addresses& inputs, const Addresses& outputs, const Stream& stream,
                bool wait);

// A NumPy array's memory, while it is needed.
class HostArray {
 public:
  HostArray() = default;
  ~HostArray() {
    if (open_) PyBuffer_Release(&buffer_);
  }
  HostArray(const HostArray&) = delete;
  HostArray& operator=(const HostArray&) = delete;

  // False, without a Python error, unless it is an array (no subclass) of numbers that is aligned, in this
  // machine's byte order and, if requested, writable.
  bool Open(PyObject* object, bool writable);
  bool Is(const TensorDesc& tensor) const;
  void* data() const { return buffer_.buf; }
  DataType type() const { return type_; }
  const Py_buffer& buffer() const { return buffer_; }

 private:
  Py_buffer buffer_;
  bool open_ = false;
  DataType type_ = DataType::kUnknown;
};

using HostArrays = std::array<HostArray, kMaxTensors>;

// Null: the slow path is needed.
pybind11::object CallOnHost(const Caller& caller, std::span<PyObject* const> inputs, PyObject* out);
// The same with inputs whose layout was already checked.
pybind11::object CallOnHost(const Caller& caller, const HostArrays& inputs, PyObject* out);
// `stream`: a DLPack stream number; null: CUDA's default stream, with which the call synchronizes.
pybind11::object CallOnDevice(const Caller& caller, std::span<PyObject* const> inputs, PyObject* out,
                              PyObject* stream);

void DefineCaller(pybind11::module_* m);

}  // namespace anydml::python
