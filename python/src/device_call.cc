// Calls on tensors in a GPU's memory: the package's own, and those of others through DLPack. The operator is
// enqueued in the stream that the producers are told of; without one the call waits for its end.
#include "caller.h"
#include "dlpack.h"
#include "status.h"

namespace py = pybind11;

namespace anydml::python {
namespace {

constexpr uintptr_t kDefaultStream = 1;  // DLPack's and CUDA's number for it
constexpr uintptr_t kAlignment = 16;     // DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT

// Names that are looked up often.
struct Names {
  PyObject* dlpack = PyUnicode_InternFromString("__dlpack__");
  PyObject* memory = PyUnicode_InternFromString("_memory");
  PyObject* shape = PyUnicode_InternFromString("shape");
  PyObject* dtype = PyUnicode_InternFromString("dtype");
  PyObject* stream_only = Py_BuildValue("(s)", "stream");

  static const Names& Get() {
    static const Names names;
    return names;
  }
};

py::object Attribute(PyObject* object, PyObject* name) {
  PyObject* const value = PyObject_GetAttr(object, name);
  if (value == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(value);
}

DataType TypeOf(const dlpack::ElementType& type) {
  if (type.lanes != 1) return DataType::kUnknown;
  using dlpack::Code;
  const auto choose = [&](DataType one, DataType two, DataType four, DataType eight) {
    return type.bits == 8    ? one
           : type.bits == 16 ? two
           : type.bits == 32 ? four
           : type.bits == 64 ? eight
                             : DataType::kUnknown;
  };
  switch (static_cast<Code>(type.code)) {
    case Code::kInt:
      return choose(DataType::kInt8, DataType::kInt16, DataType::kInt32, DataType::kInt64);
    case Code::kUInt:
      return choose(DataType::kUInt8, DataType::kUInt16, DataType::kUInt32, DataType::kUInt64);
    case Code::kFloat:
      return choose(DataType::kUnknown, DataType::kFloat16, DataType::kFloat32, DataType::kFloat64);
    default:
      return DataType::kUnknown;
  }
}

bool IsPacked(const TensorDesc& tensor) {
  uint64_t packed = 1;
  for (uint32_t i = tensor.rank; i-- > 0;) {
    if (tensor.sizes[i] > 1 && tensor.strides[i] != packed) return false;
    packed *= tensor.sizes[i];
  }
  return true;
}

bool Matches(const dlpack::Tensor& given, int32_t gpu, const TensorDesc& wanted) {
  if (given.device.device_type != dlpack::kCuda || given.device.device_id != gpu) return false;
  if (TypeOf(given.dtype) != wanted.type || static_cast<uint32_t>(given.ndim) != wanted.rank) return false;
  for (uint32_t i = 0; i < wanted.rank; ++i) {
    if (given.shape[i] != wanted.sizes[i]) return false;
    if (given.strides == nullptr || wanted.sizes[i] <= 1) continue;
    if (given.strides[i] != wanted.strides[i]) return false;
  }
  return given.strides != nullptr || IsPacked(wanted);
}

// A tensor on the GPU, for as long as the call needs it.
class DeviceArray {
 public:
  DeviceArray() = default;
  ~DeviceArray() {
    if (managed_ != nullptr) dlpack::GiveBack(managed_);
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  // False, and no error of Python's, unless it is as the operator wants it. What is done to it in other
  // streams comes before what `stream` (a number of Python's: `stream_number`) does next.
  bool Open(const Caller& caller, const PyTensorDesc& wanted, PyObject* object, uintptr_t stream,
            PyObject* stream_number) {
    if (Py_TYPE(object) == reinterpret_cast<PyTypeObject*>(caller.tensor_type.ptr())) {
      return OpenOwn(wanted, object, stream);
    }
    PyObject* arguments[] = {object, stream_number};
    const py::object capsule = py::reinterpret_steal<py::object>(PyObject_VectorcallMethod(
        Names::Get().dlpack, arguments, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, Names::Get().stream_only));
    if (!capsule) {
      PyErr_Clear();
      return false;
    }
    managed_ = dlpack::TakeOut(capsule.ptr());
    if (managed_ == nullptr || !Matches(managed_->tensor, caller.gpu, wanted.tensor)) return false;
    address_ = reinterpret_cast<uintptr_t>(managed_->tensor.data) + managed_->tensor.byte_offset;
    return address_ % kAlignment == 0;
  }

  void* address() const { return reinterpret_cast<void*>(address_); }

 private:
  bool OpenOwn(const PyTensorDesc& wanted, PyObject* object, uintptr_t stream) {
    const Names& names = Names::Get();
    if (!Attribute(object, names.shape).equal(wanted.shape) ||
        !Attribute(object, names.dtype).equal(wanted.dtype) || !IsPacked(wanted.tensor)) {
      return false;
    }
    memory_ = Attribute(object, names.memory).cast<std::shared_ptr<Memory>>();
    Check(memory_->UseIn(stream));
    address_ = memory_->address();
    return true;
  }

  dlpack::ManagedTensor* managed_ = nullptr;
  std::shared_ptr<Memory> memory_;
  uintptr_t address_ = 0;
};

using DeviceArrays = std::array<DeviceArray, kMaxTensors>;

}  // namespace

py::object CallOnDevice(const Caller& caller, std::span<PyObject* const> inputs, PyObject* out,
                        PyObject* stream) {
  const bool wait = stream == Py_None;
  const py::object number = wait ? py::reinterpret_steal<py::object>(PyLong_FromLong(kDefaultStream))
                                 : py::reinterpret_borrow<py::object>(stream);
  const auto handle = number.cast<uintptr_t>();
  DeviceArrays from, places;
  Addresses from_addresses{}, to_addresses{};
  size_t given = 0;
  for (size_t i = 0; i < caller.inputs.size(); ++i) {
    if (!caller.inputs[i]) continue;
    if (!from[i].Open(caller, *caller.inputs[i], inputs[given++], handle, number.ptr())) return {};
    from_addresses[i] = from[i].address();
  }
  const size_t count = caller.outputs.size();
  std::array<PyObject*, kMaxTensors> outs;
  if (!SplitOut(out, count, &outs)) return {};
  std::array<std::shared_ptr<Memory>, kMaxTensors> memory;
  for (size_t i = 0; i < count; ++i) {
    if (!caller.outputs[i]) {
      if (outs[i] != nullptr) return {};
    } else if (outs[i] != nullptr) {
      if (!places[i].Open(caller, *caller.outputs[i], outs[i], handle, number.ptr())) return {};
      to_addresses[i] = places[i].address();
    } else {
      Check(caller.op->device->memory().Take(caller.outputs[i]->bytes, handle, &memory[i]));
      to_addresses[i] = reinterpret_cast<void*>(memory[i]->address());
    }
  }
  if (!RunQuickly(caller, from_addresses, to_addresses, handle, wait)) return {};
  std::array<py::object, kMaxTensors> results;
  for (size_t i = 0; i < count; ++i) {
    if (memory[i]) {
      results[i] = caller.make_tensor(memory[i], caller.outputs[i]->shape, caller.outputs[i]->dtype);
    } else {
      results[i] = outs[i] != nullptr ? py::reinterpret_borrow<py::object>(outs[i]) : py::none();
    }
  }
  return Joined({results.data(), count});
}

}  // namespace anydml::python
