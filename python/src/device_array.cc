#include "device_array.h"

#include <algorithm>

#include "status.h"

namespace py = pybind11;

namespace anydml::python {
namespace {

constexpr uintptr_t kAlignment = 16;  // DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT

// Objects that are looked up often; never freed.
struct Registered {
  PyObject* tensor_type = nullptr;
  std::vector<PyObject*> dtypes;
  PyObject* dlpack = PyUnicode_InternFromString("__dlpack__");
  PyObject* dlpack_device = PyUnicode_InternFromString("__dlpack_device__");
  PyObject* memory = PyUnicode_InternFromString("_memory");
  PyObject* shape = PyUnicode_InternFromString("shape");
  PyObject* dtype = PyUnicode_InternFromString("dtype");
  PyObject* stream_only = Py_BuildValue("(s)", "stream");

  static Registered& Get() {
    static auto* const registered = new Registered;
    return *registered;
  }
};

py::object GetAttribute(PyObject* object, PyObject* name) {
  PyObject* const value = PyObject_GetAttr(object, name);
  if (value == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(value);
}

DataType TypeOf(const dlpack::ElementType& type) {
  if (type.lanes != 1) return DataType::kUnknown;
  const auto choose = [&](DataType one, DataType two, DataType four, DataType eight) {
    switch (type.bits) {
      case 8:
        return one;
      case 16:
        return two;
      case 32:
        return four;
      case 64:
        return eight;
      default:
        return DataType::kUnknown;
    }
  };
  switch (static_cast<dlpack::Code>(type.code)) {
    case dlpack::Code::kInt:
      return choose(DataType::kInt8, DataType::kInt16, DataType::kInt32, DataType::kInt64);
    case dlpack::Code::kUInt:
      return choose(DataType::kUInt8, DataType::kUInt16, DataType::kUInt32, DataType::kUInt64);
    case dlpack::Code::kFloat:
      return choose(DataType::kUnknown, DataType::kFloat16, DataType::kFloat32, DataType::kFloat64);
    default:
      return DataType::kUnknown;
  }
}

}  // namespace

void RegisterTensors(py::object tensor_type, std::vector<py::object> dtypes) {
  Registered& registered = Registered::Get();
  registered.tensor_type = tensor_type.release().ptr();
  for (py::object& dtype : dtypes) registered.dtypes.push_back(dtype.release().ptr());
}

bool IsOnGpu(PyObject* object) {
  const Registered& registered = Registered::Get();
  if (reinterpret_cast<PyObject*>(Py_TYPE(object)) == registered.tensor_type) return true;
  if (const DlpackExchange* const exchange = DlpackExchange::Of(object)) {
    dlpack::Tensor tensor;
    return exchange->View(object, &tensor) && tensor.device.device_type == dlpack::kCuda;
  }
  const py::object device =
      py::reinterpret_steal<py::object>(PyObject_CallMethodNoArgs(object, registered.dlpack_device));
  if (!device || !PyTuple_Check(device.ptr()) || PyTuple_GET_SIZE(device.ptr()) != 2) {
    PyErr_Clear();
    return false;
  }
  const long type = PyLong_AsLong(PyTuple_GET_ITEM(device.ptr(), 0));  // in PyTorch it is an enumeration
  PyErr_Clear();
  return type == dlpack::kCuda;
}

StreamNumber StreamNumber::Of(PyObject* number) {
  if (number == nullptr || number == Py_None) return {py::int_(Stream::kDefault), Stream::kDefault};
  return {py::reinterpret_borrow<py::object>(number), py::handle(number).cast<uintptr_t>()};
}

StreamNumber StreamNumber::None() { return {py::int_(-1), ~uintptr_t{0}}; }

bool DeviceArray::Open(PyObject* object, const StreamNumber& stream) {
  const Registered& registered = Registered::Get();
  if (reinterpret_cast<PyObject*>(Py_TYPE(object)) == registered.tensor_type) return OpenOwn(object);
  if (const DlpackExchange* const exchange = DlpackExchange::Of(object))
    return OpenByExchange(*exchange, object, stream);
  return OpenCapsule(object, stream);
}

bool DeviceArray::OpenByExchange(const DlpackExchange& exchange, PyObject* object,
                                 const StreamNumber& stream) {
  dlpack::Tensor tensor;
  if (!exchange.View(object, &tensor) || !Describe(tensor)) return false;
  if (stream.none()) return true;
  if (!exchange.CurrentStream(tensor.device, &producer_)) return false;
  if (producer_ == 0) producer_ = Stream::kDefault;  // CUDA's other number for it
  if (producer_ == stream.handle) producer_ = 0;
  return true;
}

bool DeviceArray::OpenCapsule(PyObject* object, const StreamNumber& stream) {
  const Registered& registered = Registered::Get();
  PyObject* arguments[] = {object, stream.python.ptr()};
  const py::object capsule = py::reinterpret_steal<py::object>(PyObject_VectorcallMethod(
      registered.dlpack, arguments, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, registered.stream_only));
  if (!capsule) {
    PyErr_Clear();
    return false;
  }
  dlpack::ManagedTensor* const managed = dlpack::Look(capsule.ptr());
  if (managed == nullptr || !Describe(managed->tensor)) return false;
  dlpack::TakeOut(capsule.ptr());
  managed_ = managed;
  return true;
}

bool DeviceArray::Describe(const dlpack::Tensor& tensor) {
  type_ = TypeOf(tensor.dtype);
  if (tensor.device.device_type != dlpack::kCuda || type_ == DataType::kUnknown) return false;
  if (tensor.ndim < 1 || tensor.ndim > static_cast<int32_t>(kMaxDimensions)) return false;
  if (!dlpack::Mistake(tensor).empty()) return false;
  gpu_ = tensor.device.device_id;
  rank_ = static_cast<uint32_t>(tensor.ndim);
  const dlpack::Extents extents = dlpack::ExtentsOf(tensor);
  std::copy_n(extents.sizes.begin(), rank_, sizes_.begin());
  std::copy_n(extents.strides.begin(), rank_, strides_.begin());
  address_ = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
  return address_ % kAlignment == 0;
}

bool DeviceArray::OpenOwn(PyObject* object) {
  const Registered& registered = Registered::Get();
  const py::object dtype = GetAttribute(object, registered.dtype);
  for (size_t i = 0; i < registered.dtypes.size() && type_ == DataType::kUnknown; ++i) {
    if (registered.dtypes[i] == dtype.ptr()) type_ = static_cast<DataType>(i);
  }
  const py::object shape = GetAttribute(object, registered.shape);
  if (type_ == DataType::kUnknown || !PyTuple_CheckExact(shape.ptr())) return false;
  rank_ = static_cast<uint32_t>(PyTuple_GET_SIZE(shape.ptr()));
  if (rank_ < 1 || rank_ > kMaxDimensions) return false;
  int64_t packed = 1;
  for (uint32_t i = rank_; i-- > 0;) {
    sizes_[i] = PyLong_AsLongLong(PyTuple_GET_ITEM(shape.ptr(), i));
    strides_[i] = packed;
    if (sizes_[i] < 0 || __builtin_mul_overflow(packed, sizes_[i], &packed)) {
      PyErr_Clear();  // the size may not be a number
      return false;
    }
  }
  memory_ = GetAttribute(object, registered.memory).cast<std::shared_ptr<Memory>>();
  // Python code can set attributes to anything.
  if (memory_ == nullptr || static_cast<uint64_t>(packed) > memory_->bytes() / (BitSize(type_) / 8))
    return false;
  address_ = memory_->address();
  return true;
}

Status DeviceArray::Use(const Stream& stream, MemoryPool& pool, uintptr_t* ordered) {
  if (memory_) return MemoryUse::Begin(memory_, stream, /*exported=*/false, &use_);
  if (producer_ == 0 || producer_ == *ordered) return {};
  *ordered = producer_;
  Stream producer;
  ANYDML_RETURN_IF_ERROR(pool.Describe(producer_, &producer));
  return pool.Order(producer, stream);
}

bool DeviceArray::Is(const Caller& caller, const TensorDesc& tensor) const {
  const bool here = memory_ ? memory_->pool().get() == &caller.op->device->memory() : gpu_ == caller.gpu;
  if (!here || type_ != tensor.type || rank_ != tensor.rank) return false;
  for (uint32_t i = 0; i < rank_; ++i) {
    if (sizes_[i] != tensor.sizes[i]) return false;
    // The stride of a single element never matters.
    if (sizes_[i] > 1 && strides_[i] != tensor.strides[i]) return false;
  }
  return true;
}

bool DeviceArray::AppendTo(std::string* key) const {
  const auto append = [key](const auto& value) {
    key->append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  key->push_back(memory_ ? 'O' : 'G');
  memory_ ? append(memory_->pool().get()) : append(gpu_);
  append(type_);
  append(rank_);
  for (uint32_t i = 0; i < rank_; ++i) {
    append(sizes_[i]);
    append(strides_[i]);
  }
  return true;
}

}  // namespace anydml::python
