// How descriptions.generated.cc reads fields of an OperatorDesc; not for other files.
#pragma once

#include <span>
#include <stdexcept>
#include <string>

#include "schema/operator_desc.h"

namespace anydml {

class DescriptionFields {
 public:
  DescriptionFields(const OperatorDesc& desc, OperatorType type) : fields_(desc.fields) {
    if (desc.schema->type != static_cast<uint32_t>(type)) {
      throw std::invalid_argument(std::string("the description is one of ") + desc.schema->name);
    }
  }

  // Throws if the field is absent.
  template <typename T>
  const T& Value(size_t index) const {
    return std::get<T>(fields_.at(index));
  }

  bool Bool(size_t index) const { return Value<uint32_t>(index) != 0; }

  template <typename T>
  T Enum(size_t index) const {
    return static_cast<T>(Value<uint32_t>(index));
  }

  template <typename T>
  const T* Optional(size_t index) const {
    return std::get_if<T>(&fields_.at(index));
  }

  template <typename T>
  std::span<const T> Array(size_t index) const {
    return Value<std::vector<T>>(index);
  }

  const OperatorDesc* Fused(size_t index) const {
    const auto* fused = Optional<std::shared_ptr<const OperatorDesc>>(index);
    return fused ? fused->get() : nullptr;
  }

  const TensorDesc& Tensor(size_t index) const {
    static const TensorDesc kAbsent;
    const auto* tensor = Optional<TensorDesc>(index);
    return tensor ? *tensor : kAbsent;
  }

 private:
  const std::vector<FieldValue>& fields_;
};

}  // namespace anydml
