// The C structs of an operator description, for CreateOperator.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include <DirectML.h>

#include "schema/operator_desc.h"

namespace anydml::client {

// Owns everything that the structs point to, except the description's arrays: `desc` must stay alive and
// unchanged.
class CDesc {
 public:
  explicit CDesc(const OperatorDesc& desc);
  CDesc(const CDesc&) = delete;
  CDesc& operator=(const CDesc&) = delete;

  const DML_OPERATOR_DESC& get() const { return operator_; }

 private:
  const DML_TENSOR_DESC* Tensors(const TensorDesc* tensors, size_t count);
  const DML_OPERATOR_DESC* Operators(const OperatorDesc* operators, size_t count);
  void Write(const FieldSchema& field, const FieldValue& value);

  template <typename T>
  void Store(const FieldSchema& field, const T& value);

  std::vector<std::byte> bytes_;
  // Deques, because pointers to elements must stay valid while more are added.
  std::deque<DML_BUFFER_TENSOR_DESC> buffers_;
  std::deque<std::vector<DML_TENSOR_DESC>> tensors_;
  std::vector<std::unique_ptr<CDesc>> nested_;
  std::deque<std::vector<DML_OPERATOR_DESC>> operators_;
  DML_OPERATOR_DESC operator_{};
};

}  // namespace anydml::client
