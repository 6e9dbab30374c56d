#include "dlpack.h"

#include <memory>

namespace anydml::python {
namespace {

namespace py = pybind11;
using dlpack::ManagedTensor;

constexpr const char* kName = "dltensor";
constexpr const char* kTaken = "used_dltensor";

constexpr struct {
  dlpack::Code code;
  char letter;
} kLetters[] = {{dlpack::Code::kInt, 'i'},
                {dlpack::Code::kUInt, 'u'},
                {dlpack::Code::kFloat, 'f'},
                {dlpack::Code::kBool, 'b'}};

// What an exported tensor points to.
struct Exported {
  ManagedTensor managed{};
  std::shared_ptr<Memory> memory;
  std::shared_ptr<MemoryUse> use;
  std::vector<int64_t> shape;
};

// Without Python: consumers call it from any thread.
void DeleteExported(ManagedTensor* self) { delete static_cast<Exported*>(self->manager); }

// A capsule that nobody took still owns its tensor.
void DestroyCapsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kName) == 0) return;
  auto* managed = static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule, kName));
  managed->deleter(managed);
}

}  // namespace

dlpack::ManagedTensor* dlpack::TakeOut(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kName) == 0) return nullptr;
  auto* const managed = static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule, kName));
  PyCapsule_SetName(capsule, kTaken);
  return managed;
}

ImportedTensor::ImportedTensor(const py::capsule& capsule) : managed_(dlpack::TakeOut(capsule.ptr())) {
  if (managed_ == nullptr) {
    throw py::value_error("__dlpack__ returned something else than an unused 'dltensor' capsule");
  }
}

ImportedTensor::~ImportedTensor() { dlpack::GiveBack(managed_); }

uintptr_t ImportedTensor::address() const {
  return reinterpret_cast<uintptr_t>(tensor().data) + tensor().byte_offset;
}

py::tuple ImportedTensor::device() const {
  return py::make_tuple(tensor().device.device_type, tensor().device.device_id);
}

py::tuple ImportedTensor::shape() const {
  py::tuple shape(tensor().ndim);
  for (int32_t i = 0; i < tensor().ndim; ++i) shape[i] = tensor().shape[i];
  return shape;
}

py::tuple ImportedTensor::strides() const {
  py::tuple strides(tensor().ndim);
  int64_t packed = 1;
  for (int32_t i = tensor().ndim - 1; i >= 0; --i) {
    strides[i] = tensor().strides != nullptr ? tensor().strides[i] : packed;
    packed *= tensor().shape[i];
  }
  return strides;
}

std::string ImportedTensor::type() const {
  const dlpack::ElementType type = tensor().dtype;
  if (type.lanes != 1 || type.bits % 8 != 0) return {};
  for (const auto& [code, letter] : kLetters) {
    if (static_cast<uint8_t>(code) == type.code) {
      return StrCat(type.bits == 8 ? '|' : '<', letter, type.bits / 8);
    }
  }
  return {};
}

py::capsule ExportTensor(const std::shared_ptr<Memory>& memory, const std::shared_ptr<MemoryUse>& use,
                         const std::string& type, const std::vector<int64_t>& shape,
                         std::pair<int32_t, int32_t> device) {
  auto exported = std::make_unique<Exported>();
  exported->memory = memory;
  exported->use = use;
  exported->shape = shape;
  dlpack::Tensor& tensor = exported->managed.tensor;
  tensor.data = reinterpret_cast<void*>(memory->address());
  tensor.device = {device.first, device.second};
  tensor.ndim = static_cast<int32_t>(shape.size());
  for (const auto& [code, letter] : kLetters) {
    if (letter == type.at(1)) tensor.dtype.code = static_cast<uint8_t>(code);
  }
  tensor.dtype.bits = static_cast<uint8_t>((type.at(2) - '0') * 8);
  tensor.dtype.lanes = 1;
  tensor.shape = exported->shape.data();
  exported->managed.manager = exported.get();
  exported->managed.deleter = DeleteExported;
  py::capsule capsule(&exported->managed, kName, DestroyCapsule);
  exported.release();
  return capsule;
}

}  // namespace anydml::python
