#include "dlpack.h"

#include <memory>

#include "status.h"

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

// An exported tensor and everything that it refers to; its deleter frees it.
struct Exported {
  ManagedTensor managed{};
  std::shared_ptr<Memory> memory;
  std::shared_ptr<MemoryUse> use;
  std::vector<int64_t> shape;
};

// Must not use Python: consumers call it from any thread.
void DeleteExported(ManagedTensor* self) { delete static_cast<Exported*>(self->manager); }

// An unused capsule still owns its tensor.
void DestroyCapsule(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kName) == 0) return;
  auto* managed = static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule, kName));
  dlpack::GiveBack(managed);
}

// NumPy's spelling of the type: "<f4"; "" for types that operators and models do not have.
std::string NumpyName(const dlpack::ElementType& type) {
  const bool whole = type.bits == 8 || type.bits == 16 || type.bits == 32 || type.bits == 64;
  if (type.lanes != 1 || !whole) return {};
  for (const auto& [code, letter] : kLetters) {
    if (static_cast<uint8_t>(code) != type.code) continue;
    if ((letter == 'f' && type.bits == 8) || (letter == 'b' && type.bits != 8)) return {};
    return StrCat(type.bits == 8 ? '|' : '<', letter, type.bits / 8);
  }
  return {};
}

}  // namespace

dlpack::ManagedTensor* dlpack::Look(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, kName) == 0) return nullptr;
  return static_cast<ManagedTensor*>(PyCapsule_GetPointer(capsule, kName));
}

void dlpack::TakeOut(PyObject* capsule) { PyCapsule_SetName(capsule, kTaken); }

ImportedTensor::ImportedTensor(const py::object& capsule, const std::string& what) {
  ManagedTensor* const managed = dlpack::Look(capsule.ptr());
  if (managed == nullptr) {
    Raise(PyExc_ValueError,
          StrCat(what, ": __dlpack__ returned something else than an unused 'dltensor' capsule"));
  }
  tensor_ = managed->tensor;
  type_ = NumpyName(tensor_.dtype);
  if (type_.empty()) Raise(PyExc_TypeError, StrCat(what, " has a data type that DirectML does not have"));
  const std::string mistake = dlpack::Mistake(tensor_);
  if (!mistake.empty()) Raise(PyExc_ValueError, StrCat(what, " ", mistake));
  extents_ = dlpack::ExtentsOf(tensor_);
  dlpack::TakeOut(capsule.ptr());
  managed_ = managed;
}

ImportedTensor::~ImportedTensor() { dlpack::GiveBack(managed_); }

uintptr_t ImportedTensor::address() const {
  return reinterpret_cast<uintptr_t>(tensor_.data) + tensor_.byte_offset;
}

py::tuple ImportedTensor::device() const {
  return py::make_tuple(tensor_.device.device_type, tensor_.device.device_id);
}

py::tuple ImportedTensor::shape() const { return ToTuple(extents_.sizes); }

py::tuple ImportedTensor::strides() const { return ToTuple(extents_.strides); }

py::tuple ImportedTensor::ToTuple(const std::array<int64_t, dlpack::kMostDimensions>& numbers) const {
  py::tuple tuple(tensor_.ndim);
  for (int32_t i = 0; i < tensor_.ndim; ++i) tuple[i] = numbers[i];
  return tuple;
}

py::capsule ExportTensor(const std::shared_ptr<Memory>& memory, const std::shared_ptr<MemoryUse>& use,
                         const std::string& type, const std::vector<int64_t>& shape,
                         std::pair<int32_t, int32_t> device) {
  if (memory == nullptr) Raise(PyExc_TypeError, "memory is wanted, not None");
  auto exported = std::make_unique<Exported>();
  exported->memory = memory;
  exported->use = use;
  exported->shape = shape;
  dlpack::Tensor& tensor = exported->managed.tensor;
  for (const auto& [code, letter] : kLetters) {
    if (letter == type.at(1)) tensor.dtype.code = static_cast<uint8_t>(code);
  }
  tensor.dtype.bits = static_cast<uint8_t>((type.at(2) - '0') * 8);
  tensor.dtype.lanes = 1;
  uint64_t bytes = uint64_t{tensor.dtype.bits} / 8;
  bool fits = true;
  for (const int64_t size : shape)
    fits &= size >= 0 && !__builtin_mul_overflow(bytes, uint64_t(size), &bytes);
  if (!fits || bytes > memory->bytes()) {
    Raise(PyExc_ValueError,
          StrCat("the tensor has more bytes by its shape than its memory, which has ", memory->bytes()));
  }
  tensor.data = reinterpret_cast<void*>(memory->address());
  tensor.device = {device.first, device.second};
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.shape = exported->shape.data();
  exported->managed.manager = exported.get();
  exported->managed.deleter = DeleteExported;
  py::capsule capsule(&exported->managed, kName, DestroyCapsule);
  exported.release();
  return capsule;
}

}  // namespace anydml::python
