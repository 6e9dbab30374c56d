#include "dlpack_exchange.h"

#include <vector>

namespace py = pybind11;

namespace anydml::python {
namespace {

constexpr uint32_t kMajor = 1;
constexpr size_t kMostTypes = 32;
constexpr const char* kCapsule = "dlpack_exchange_api";

// As in a type's `__dlpack_c_exchange_api__`.
struct Header {
  uint32_t major;
  uint32_t minor;
  const Header* previous;  // of an older version
};

struct Table {
  Header header;
  void* allocate;
  void* export_tensor;
  void* import_tensor;
  int (*view)(void* object, dlpack::Tensor* out);  // may be null
  int (*current_stream)(int32_t device_type, int32_t device_id, void** stream);
};

const Table* TableOf(PyObject* type) {
  const auto capsule =
      py::reinterpret_steal<py::object>(PyObject_GetAttrString(type, "__dlpack_c_exchange_api__"));
  if (!capsule || PyCapsule_IsValid(capsule.ptr(), kCapsule) == 0) {
    PyErr_Clear();
    return nullptr;
  }
  const auto* header = static_cast<const Header*>(PyCapsule_GetPointer(capsule.ptr(), kCapsule));
  while (header != nullptr && header->major != kMajor) header = header->previous;
  return reinterpret_cast<const Table*>(header);
}

bool HasGradients(PyObject* object) {
  static PyObject* const name = PyUnicode_InternFromString("requires_grad");
  const auto value = py::reinterpret_steal<py::object>(PyObject_GetAttr(object, name));
  if (!value) PyErr_Clear();
  return value.ptr() != Py_False;
}

}  // namespace

// The types seen so far, also those without functions. Guarded by the GIL; never destroyed.
struct DlpackExchangeTypes {
  struct Known {
    PyTypeObject* type;  // owned
    DlpackExchange exchange;
  };

  static const DlpackExchange* Find(PyTypeObject* type) {
    static auto* const known = [] {
      auto* const list = new std::vector<Known>;
      list->reserve(kMostTypes);  // entries never move
      return list;
    }();
    for (const Known& each : *known) {
      if (each.type == type) return &each.exchange;
    }
    auto* const object = reinterpret_cast<PyObject*>(type);
    DlpackExchange exchange;
    if (const Table* const table = TableOf(object); table != nullptr && table->view != nullptr) {
      exchange.view_ = table->view;
      exchange.current_stream_ = table->current_stream;
      exchange.gradients_ = PyObject_HasAttrString(object, "requires_grad") != 0;
    }
    if (known->size() == kMostTypes) return nullptr;
    Py_INCREF(object);
    known->push_back({type, exchange});
    return &known->back().exchange;
  }
};

const DlpackExchange* DlpackExchange::Of(PyObject* object) {
  const DlpackExchange* const exchange = DlpackExchangeTypes::Find(Py_TYPE(object));
  if (exchange == nullptr || exchange->view_ == nullptr) return nullptr;
  return exchange->gradients_ && HasGradients(object) ? nullptr : exchange;
}

bool DlpackExchange::View(PyObject* object, dlpack::Tensor* tensor) const {
  if (view_(object, tensor) == 0) return true;
  PyErr_Clear();
  return false;
}

bool DlpackExchange::CurrentStream(const dlpack::Place& place, uintptr_t* stream) const {
  void* current = nullptr;
  if (current_stream_(place.device_type, place.device_id, &current) != 0) {
    PyErr_Clear();
    return false;
  }
  *stream = reinterpret_cast<uintptr_t>(current);
  return true;
}

}  // namespace anydml::python
