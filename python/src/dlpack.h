// DLPack: exchange of tensors between libraries without a copy. The structures are those of its stable C
// interface ("dltensor" capsules).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <pybind11/pybind11.h>

#include "device.h"

namespace anydml::python {

namespace dlpack {

inline constexpr int32_t kCpu = 1;
inline constexpr int32_t kCuda = 2;

enum class Code : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBool = 6 };

struct Place {
  int32_t device_type;
  int32_t device_id;
};

struct ElementType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};

struct Tensor {
  void* data;
  Place device;
  int32_t ndim;
  ElementType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: packed
  uint64_t byte_offset;
};

struct ManagedTensor {
  Tensor tensor;
  void* manager;
  void (*deleter)(ManagedTensor* self);
};

inline constexpr int32_t kMostDimensions = 32;  // NumPy's most, before its version 2

// The error of another library's tensor, as the end of a message; empty if it is valid. For a valid tensor
// nothing overflows: the sizes, the strides, and every element's address.
std::string Mistake(const Tensor& tensor);

// The sizes, and the strides in elements. Meaningless strides (of tensors with one element or none) are
// replaced by those of a packed tensor. For valid tensors only.
struct Extents {
  std::array<int64_t, kMostDimensions> sizes;
  std::array<int64_t, kMostDimensions> strides;
};
Extents ExtentsOf(const Tensor& tensor);

// The tensor in an unused "dltensor" capsule, else null.
ManagedTensor* Look(PyObject* capsule);
// Takes the tensor that Look found out of the capsule, which cannot be used again.
void TakeOut(PyObject* capsule);

inline void GiveBack(ManagedTensor* tensor) {
  if (tensor->deleter != nullptr) tensor->deleter(tensor);
}

}  // namespace dlpack

// A valid tensor of another library, released when this object is destroyed. This is a checked copy: the
// other library may change its own structure.
class ImportedTensor {
 public:
  // Takes the tensor out of the capsule, which cannot be used again. `what` names it in error messages.
  ImportedTensor(const pybind11::object& capsule, const std::string& what);
  ~ImportedTensor();
  ImportedTensor(const ImportedTensor&) = delete;
  ImportedTensor& operator=(const ImportedTensor&) = delete;

  uintptr_t address() const;
  pybind11::tuple device() const;  // DLPack's type and number
  pybind11::tuple shape() const;
  pybind11::tuple strides() const;                   // in elements
  const std::string& type() const { return type_; }  // NumPy's spelling: "<f4"

 private:
  pybind11::tuple ToTuple(const std::array<int64_t, dlpack::kMostDimensions>& numbers) const;

  dlpack::ManagedTensor* managed_ = nullptr;
  dlpack::Tensor tensor_;  // its shape and strides must not be used
  dlpack::Extents extents_;
  std::string type_;
};

// A capsule with a packed tensor at the beginning of `memory`, or null. The capsule keeps the memory and a
// use of it alive.
pybind11::capsule ExportTensor(const std::shared_ptr<Memory>& memory, const std::shared_ptr<MemoryUse>& use,
                               const std::string& type, const std::vector<int64_t>& shape,
                               std::pair<int32_t, int32_t> device);

}  // namespace anydml::python
