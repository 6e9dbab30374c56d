// An operator and its data, built from "Field=value" arguments.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "anydml/values/tensor_source.h"
#include "base/status.h"
#include "client/describe/description.h"
#include "client/values/npy.h"
#include "schema/operator_desc.h"

namespace anydml::client {

using FieldArgument = std::pair<std::string, std::string>;  // name, value

struct InputFile {
  size_t field;
  NpyArray array;
};

struct OutputSlot {
  std::string name;
  std::string path;   // empty: print it
  TensorDesc tensor;  // as bound; rank 0: an absent optional tensor
};

// Call the methods in this order.
class Operation {
 public:
  explicit Operation(const OperatorSchema& schema)
      : schema_(schema), texts_(schema.fields.size()), targets_(schema.fields.size()), description_(schema) {}

  // Checks names only: unknown, repeated and missing fields.
  Status MatchFields(const std::vector<FieldArgument>& arguments);

  Status LoadInputs();

  // Makes the description for devices of that level. `index_type`: kUnknown for the operator's default.
  Status Describe(FeatureLevel level, DataType index_type);

  const OperatorDesc& desc() const { return description_.desc(); }

  // In binding order. Moves the data out; an absent optional tensor is empty.
  std::vector<std::vector<std::byte>> TakeInputData();
  std::vector<OutputSlot> Outputs() const;

  // `tensor` without the leading 1s that were added to the first input. If all inputs are 0-dimensional, so
  // are outputs, unless an axis refers to a dimension.
  TensorDesc AsInFile(const TensorDesc& tensor) const;
  const Description& description() const { return description_; }
  // Explains a failure in the caller's terms (describe/explain.h).
  Status Explain(const Status& status) const;

 private:
  Status ReadTargets();
  Status DescribeAt(FeatureLevel level, Description* description) const;
  Status SetAttributes(Description* description) const;
  Status SetAttribute(size_t field, const std::string& text, Description* description) const;
  Status SetOutputs(Description* description) const;

  const OperatorSchema& schema_;
  std::vector<std::optional<std::string>> texts_;   // one per schema field
  std::vector<std::vector<OutputTarget>> targets_;  // likewise, for the given outputs
  std::vector<InputFile> inputs_;                   // in binding order
  FeatureLevel level_ = kLatestFeatureLevel;
  DataType index_type_ = DataType::kUnknown;
  Description description_;
};

}  // namespace anydml::client
