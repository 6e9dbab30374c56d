// DLPack: tensors between libraries, without a copy. The structures are those of its
// stable C interface ("dltensor" capsules).
#pragma once

#include <cstdint>

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

// Takes the tensor out of a capsule, which nobody can use again; null when it is not an unused "dltensor".
ManagedTensor* TakeOut(PyObject* capsule);

inline void GiveBack(ManagedTensor* tensor) {
  if (tensor->deleter != nullptr) tensor->deleter(tensor);
}

}  // namespace dlpack

// A tensor of another library; given back when this object goes.
class ImportedTensor {
 public:
  // Takes it out of the capsule, which nobody can use again.
  explicit ImportedTensor(const pybind11::capsule& capsule);
  ~ImportedTensor();
  ImportedTensor(const ImportedTensor&) = delete;
  ImportedTensor& operator=(const ImportedTensor&) = delete;

  uintptr_t address() const;
  pybind11::tuple device() const;  // DLPack's type and number
  pybind11::tuple shape() const;
  pybind11::tuple strides() const;  // in elements
  // As NumPy spells it: "<f4"; "" for types that NumPy has not.
  std::string type() const;

 private:
  const dlpack::Tensor& tensor() const { return managed_->tensor; }

  dlpack::ManagedTensor* managed_;
};

// A capsule over a packed tensor at the beginning of `memory`, which it keeps, and a use of it, or null.
pybind11::capsule ExportTensor(const std::shared_ptr<Memory>& memory, const std::shared_ptr<MemoryUse>& use,
                               const std::string& type, const std::vector<int64_t>& shape,
                               std::pair<int32_t, int32_t> device);

}  // namespace anydml::python
