// Operator descriptions for tests, made from the schema: a valid one for any operator and level, which the
// test then breaks or refines, in the C structs that a program would pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string_view>
#include <vector>

#include "schema/schema.h"
#include "schema/tensor_desc.h"

struct DML_OPERATOR_DESC;

namespace anydml::testing {

// A DML_TENSOR_DESC with its DML_BUFFER_TENSOR_DESC; every member may be invalid.
struct TensorSpec {
  uint32_t tensor_type = 1;  // DML_TENSOR_TYPE_BUFFER
  bool null_desc = false;
  uint32_t data_type = 0;
  uint32_t flags = 0;
  uint32_t dimension_count = 0;
  std::optional<std::vector<uint32_t>> sizes;
  std::optional<std::vector<uint32_t>> strides;
  uint64_t total_bytes = 0;
  uint32_t alignment = 0;

  // Sets dimension count, sizes and total size of a tensor that is packed or has `strides`.
  void SetSizes(const std::vector<uint32_t>& new_sizes);
  void SetStrides(const std::vector<uint32_t>& new_strides);
  void SetDataType(uint32_t new_type);
  TensorDesc ToTensorDesc() const;

 private:
  void UpdateTotal();
};

class DescBuilder;

struct FieldSpec {
  bool null = false;                // of pointers
  std::vector<TensorSpec> tensors;  // one, or an array's
  std::vector<uint32_t> words;      // scalars and arrays of them, 32 bits each
  std::vector<DescBuilder> fused;   // operator descriptions: one, or an array's
};

class DescBuilder {
 public:
  // A description that obeys every rule of the schema at `level`: all tensors present, sizes 2, the largest
  // allowed rank, the first allowed data type; arrays of length 2; no fused activation. `variant` is the
  // value of the operator's variant field, if it has one.
  DescBuilder(const OperatorSchema& schema, FeatureLevel level, uint32_t variant = 0);

  // A fused activation: no tensors.
  static DescBuilder Fused(const OperatorSchema& schema, FeatureLevel level);

  const OperatorSchema& schema() const { return *schema_; }
  FieldSpec& field(std::string_view name);
  FieldSpec& field(size_t index) { return fields_[index]; }
  TensorSpec& tensor(std::string_view name, size_t index = 0) { return field(name).tensors.at(index); }
  void SetWord(std::string_view name, uint32_t value) { field(name).words = {value}; }

  // The types that all tensors related to `field` may have, and setting one for all of them.
  uint32_t AllowedTypes(size_t field) const;
  uint32_t MinDimensions(size_t field) const;
  uint32_t MaxDimensions(size_t field) const;
  void SetDataType(size_t field, uint32_t type);
  void SetSizes(size_t field, const std::vector<uint32_t>& sizes);

  // Whether everything that pointers lead to is at odd addresses: still valid memory.
  void set_misaligned(bool misaligned) { misaligned_ = misaligned; }

  // The C structs; they live until the next Build or the builder's end.
  const DML_OPERATOR_DESC* Build();

 private:
  std::vector<size_t> RelatedFields(size_t field, bool data_type) const;
  void InitializeField(size_t index);
  const void* Store(const void* data, size_t size);
  const void* StoreTensors(const std::vector<TensorSpec>& tensors);
  const void* StoreField(size_t index);

  const OperatorSchema* schema_;
  FeatureLevel level_;
  uint32_t variant_;
  bool misaligned_ = false;
  std::vector<FieldSpec> fields_;
  std::deque<std::vector<std::byte>> storage_;
};

}  // namespace anydml::testing
