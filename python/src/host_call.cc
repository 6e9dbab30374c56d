// Calls on NumPy arrays, which are read and written in place.
#include <bit>
#include <cstring>
#include <list>

#include "caller.h"

namespace py = pybind11;

namespace anydml::python {
namespace {

// From this size on, memory of results is reused: for smaller results, searching takes longer than
// allocating.
constexpr uint64_t kLeastKeptBytes = uint64_t{256} << 10;
constexpr uint64_t kMaxKeptBytes = uint64_t{512} << 20;
constexpr size_t kMaxKept = 32;

// The required objects of NumPy; never freed.
struct Numpy {
  PyObject* ndarray;
  PyObject* empty;
  PyObject* uint8;

  static const Numpy& Get() {
    static const Numpy numpy = [] {
      const py::module_ module = py::module_::import("numpy");
      return Numpy{module.attr("ndarray").cast<py::object>().release().ptr(),
                   module.attr("empty").cast<py::object>().release().ptr(),
                   module.attr("uint8").cast<py::object>().release().ptr()};
    }();
    return numpy;
  }
};

template <typename... Arguments>
py::object CallPython(PyObject* function, Arguments... arguments) {
  PyObject* list[] = {nullptr, arguments...};  // the callee may use the first one
  PyObject* const result =
      PyObject_Vectorcall(function, list + 1, sizeof...(arguments) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
  if (result == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(result);
}

// From a buffer's format: a letter, optionally after a byte order.
DataType TypeOf(const char* format, Py_ssize_t bytes) {
  if (format == nullptr) return DataType::kUInt8;
  if (*format == '@' || *format == '=' ||
      *format == (std::endian::native == std::endian::little ? '<' : '>')) {
    ++format;
  }
  if (format[0] == '\0' || format[1] != '\0') return DataType::kUnknown;
  const auto choose = [bytes](DataType one, DataType two, DataType four, DataType eight) {
    return bytes == 1 ? one : bytes == 2 ? two : bytes == 4 ? four : bytes == 8 ? eight : DataType::kUnknown;
  };
  switch (*format) {
    case 'e':
    case 'f':
    case 'd':
      return choose(DataType::kUnknown, DataType::kFloat16, DataType::kFloat32, DataType::kFloat64);
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
      return choose(DataType::kInt8, DataType::kInt16, DataType::kInt32, DataType::kInt64);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
      return choose(DataType::kUInt8, DataType::kUInt16, DataType::kUInt32, DataType::kUInt64);
    default:
      return DataType::kUnknown;
  }
}

// Memory of large results, as byte arrays that results are views of. A result, a view of it or an export of
// its memory also references the byte array: if only this list references it, it is free. Guarded by the GIL;
// never destroyed.
class ResultMemory {
 public:
  static ResultMemory& Get() {
    static auto* const memory = new ResultMemory;
    return *memory;
  }

  py::object Take(uint64_t bytes) {
    for (auto each = kept_.begin(); each != kept_.end(); ++each) {
      if (each->bytes == bytes && Py_REFCNT(each->array.ptr()) == 1) {
        kept_.splice(kept_.begin(), kept_, each);
        return each->array;
      }
    }
    const py::object count = py::reinterpret_steal<py::object>(PyLong_FromUnsignedLongLong(bytes));
    py::object array = CallPython(Numpy::Get().empty, count.ptr(), Numpy::Get().uint8);
    if (bytes > kMaxKeptBytes) return array;
    kept_.push_front({bytes, array});
    kept_bytes_ += bytes;
    while (kept_bytes_ > kMaxKeptBytes || kept_.size() > kMaxKept) {
      kept_bytes_ -= kept_.back().bytes;
      kept_.pop_back();
    }
    return array;
  }

 private:
  struct Kept {
    uint64_t bytes;
    py::object array;
  };

  std::list<Kept> kept_;  // most recently used first
  uint64_t kept_bytes_ = 0;
};

py::object NewResult(const PyTensorDesc& desc) {
  const Numpy& numpy = Numpy::Get();
  if (desc.bytes < kLeastKeptBytes) return CallPython(numpy.empty, desc.shape.ptr(), desc.dtype.ptr());
  const py::object bytes = ResultMemory::Get().Take(desc.bytes);
  return CallPython(numpy.ndarray, desc.shape.ptr(), desc.dtype.ptr(), bytes.ptr());
}

}  // namespace

bool HostArray::Open(PyObject* object, bool writable) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != Numpy::Get().ndarray) return false;
  if (PyObject_GetBuffer(object, &buffer_, PyBUF_STRIDES | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) !=
      0) {
    PyErr_Clear();
    return false;
  }
  open_ = true;
  type_ = TypeOf(buffer_.format, buffer_.itemsize);
  return type_ != DataType::kUnknown &&
         reinterpret_cast<uintptr_t>(buffer_.buf) % static_cast<size_t>(buffer_.itemsize) == 0;
}

bool HostArray::Is(const TensorDesc& tensor) const {
  if (type_ != tensor.type || static_cast<uint32_t>(buffer_.ndim) != tensor.rank) return false;
  for (uint32_t i = 0; i < tensor.rank; ++i) {
    if (buffer_.shape[i] != tensor.sizes[i]) return false;
    // The stride of a single element never matters.
    if (tensor.sizes[i] > 1 && buffer_.strides[i] != Py_ssize_t{tensor.strides[i]} * buffer_.itemsize)
      return false;
  }
  return true;
}

py::object CallOnHost(const Caller& caller, std::span<PyObject* const> inputs, PyObject* out) {
  HostArrays arrays;
  size_t given = 0;
  for (size_t i = 0; i < caller.inputs.size(); ++i) {
    if (!caller.inputs[i]) continue;
    if (!arrays[i].Open(inputs[given++], false) || !arrays[i].Is(caller.inputs[i]->tensor)) return {};
  }
  return CallOnHost(caller, arrays, out);
}

py::object CallOnHost(const Caller& caller, const HostArrays& inputs, PyObject* out) {
  Addresses from{}, to{};
  for (size_t i = 0; i < caller.inputs.size(); ++i) {
    if (caller.inputs[i]) from[i] = inputs[i].data();
  }
  const size_t count = caller.outputs.size();
  Objects results;  // first the given ones
  if (!SplitOut(out, count, &results)) return {};
  HostArrays places;
  for (size_t i = 0; i < count; ++i) {
    if (!caller.outputs[i]) {
      if (results[i]) return {};
      results[i] = py::none();
      continue;
    }
    const PyTensorDesc& desc = *caller.outputs[i];
    if (!results[i]) results[i] = NewResult(desc);
    if (!places[i].Open(results[i].ptr(), true) || !places[i].Is(desc.tensor)) return {};
    to[i] = places[i].data();
  }
  if (!RunQuickly(caller, from, to, {}, true)) return {};
  return Joined({results.data(), count});
}

}  // namespace anydml::python
