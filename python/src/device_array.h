// Tensors in a GPU's memory: the package's own, and those of others through DLPack.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "caller.h"
#include "dlpack.h"
#include "dlpack_exchange.h"

namespace anydml::python {

// Registers the package's tensor type, and NumPy's data types in the order of DataType, null where NumPy has
// none.
void RegisterTensors(pybind11::object tensor_type, std::vector<pybind11::object> dtypes);

// Whether the object declares it, or is our own.
bool IsOnGpu(PyObject* object);

// A stream by DLPack's number, which is also CUDA's handle.
struct StreamNumber {
  pybind11::object python;
  uintptr_t handle = 0;

  // Null or None: the default one.
  static StreamNumber Of(PyObject* number);
  // No ordering at all: to inspect a tensor's layout without reading its elements.
  static StreamNumber None();
  bool none() const { return handle == ~uintptr_t{0}; }
};

// For the duration of a call.
class DeviceArray {
 public:
  DeviceArray() = default;
  ~DeviceArray() {
    if (managed_ != nullptr) dlpack::GiveBack(managed_);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  // False unless it is an aligned tensor of numbers on a GPU; without a Python error, which the slow path
  // raises.
  bool Open(PyObject* object, const StreamNumber& stream);
  // Begins a use in the stream for which the object was opened; the use ends with this object. Work on the
  // tensor in other streams is ordered before the stream's next work. `ordered`: a handle whose work the
  // stream already follows, or 0; tensors of one library have the same handle.
  Status Use(const Stream& stream, MemoryPool& pool, uintptr_t* ordered);
  // Whether it is on the operator's device, with the expected layout.
  bool Is(const Caller& caller, const TensorDesc& tensor) const;
  // Everything that Is() compares.
  bool AppendTo(std::string* key) const;
  void* address() const { return reinterpret_cast<void*>(address_); }

 private:
  bool OpenOwn(PyObject* object);
  bool OpenByExchange(const DlpackExchange& exchange, PyObject* object, const StreamNumber& stream);
  bool OpenCapsule(PyObject* object, const StreamNumber& stream);
  bool Describe(const dlpack::Tensor& tensor);

  dlpack::ManagedTensor* managed_ = nullptr;  // of other libraries, if it came in a capsule
  std::shared_ptr<Memory> memory_;            // of our own
  std::shared_ptr<MemoryUse> use_;
  int32_t gpu_ = -1;  // of others
  DataType type_ = DataType::kUnknown;
  uint32_t rank_ = 0;
  std::array<int64_t, kMaxDimensions> sizes_;
  std::array<int64_t, kMaxDimensions> strides_;
  uintptr_t address_ = 0;
  // The library's working stream, if the call must wait for it.
  uintptr_t producer_ = 0;
};

using DeviceArrays = std::array<DeviceArray, kMaxTensors>;

// With inputs whose layout was already checked. `wait`: for completion.
pybind11::object CallOnDevice(const Caller& caller, DeviceArrays* inputs, PyObject* out,
                              const StreamNumber& number, bool wait);

}  // namespace anydml::python
