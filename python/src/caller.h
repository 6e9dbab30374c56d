// Calls of compiled operators that cost as little as Python allows. They take arrays that lie as the
// operator was compiled for; what is different in any way (other strides, lists, wrong arguments) is
// Python's affair, which copies, or says what is wrong (_compiled.py).
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
  uint64_t bytes = 0;      // of the elements, where they are packed
};

struct Caller {
  std::shared_ptr<CompiledOperator> op;
  // In binding order, absent ones included. Outputs are packed.
  std::vector<std::optional<PyTensorDesc>> inputs;
  std::vector<std::optional<PyTensorDesc>> outputs;
  // On a GPU: its number, and what makes a tensor of (memory, shape, dtype).
  int32_t gpu = -1;
  pybind11::object make_tensor;

  bool on_host() const { return gpu < 0; }
};

inline constexpr const char* kCallerName = "anydml.caller";  // of capsules with a Caller

// What a call has at most; operators with more tensors take the long way.
inline constexpr size_t kMaxTensors = 16;
using Addresses = std::array<void*, kMaxTensors>;

// Where results go: `out` as a caller gives it, a tensor each, or null where that is new. They are held: what
// a list has may change while Python runs. False when it is not to be had like this.
using Objects = std::array<pybind11::object, kMaxTensors>;
bool SplitOut(PyObject* out, size_t count, Objects* each);

// The results of a call, or the only one.
pybind11::object Joined(std::span<pybind11::object> results);

// Runs without the GIL. False: the long way (`Check` knows more there). Throws an IndexError.
bool RunQuickly(const Caller& caller, const Addresses& inputs, const Addresses& outputs, const Stream& stream,
                bool wait);

// A NumPy array's memory, for as long as it is needed.
class HostArray {
 public:
  HostArray() = default;
  ~HostArray() {
    if (open_) PyBuffer_Release(&buffer_);
  }
  HostArray(const HostArray&) = delete;
  HostArray& operator=(const HostArray&) = delete;

  // False, and no error of Python's, unless it is one (no subclass) of numbers, aligned, of this machine's
  // byte order and, if that is asked for, writable.
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

// Null: the long way.
pybind11::object CallOnHost(const Caller& caller, std::span<PyObject* const> inputs, PyObject* out);
// The same with inputs that are as they should be.
pybind11::object CallOnHost(const Caller& caller, const HostArrays& inputs, PyObject* out);
// `stream`: a number of DLPack's; null: CUDA's default one, for whose end the call waits.
pybind11::object CallOnDevice(const Caller& caller, std::span<PyObject* const> inputs, PyObject* out,
                              PyObject* stream);

void DefineCaller(pybind11::module_* m);

}  // namespace anydml::python
