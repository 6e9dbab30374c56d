// An operator and its data, put together from "Field=value" arguments.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "anydml/describe/description.h"
#include "anydml/values/npy.h"
#include "anydml/values/tensor_source.h"
#include "base/status.h"
#include "schema/operator_desc.h"

namespace anydml::tools {

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

// Built in the order of the methods.
class Operation {
 public:
  explicit Operation(const OperatorSchema& schema)
      : schema_(schema), texts_(schema.fields.size()), targets_(schema.fields.size()), description_(schema) {}

  // Names only: unknown, repeated and missing fields.
  Status MatchFields(const std::vector<FieldArgument>& arguments);

  Status LoadInputs();

  // Makes the description, for devices of that level. `index_type` is kUnknown for the operator's default.
  Status Describe(FeatureLevel level, DataType index_type);

  const OperatorDesc& desc() const { return description_.desc(); }

  // In binding order. Takes the data out; an absent optional tensor is empty.
  std::vector<std::vector<std::byte>> TakeInputData();
  std::vector<OutputSlot> Outputs() const;

  // `tensor` without the leading 1s that were added to the first input.
  // Of 0-d inputs alone come 0-d outputs, where no axis speaks of a dimension.
  TensorDesc AsInFile(const TensorDesc& tensor) const;
  const Description& description() const { return description_; }
  // A failure in the caller's terms (describe/explain.h).
  Status Explain(const Status& status) const;

 private:
  Status ReadTargets();
  Status DescribeAt(FeatureLevel level, Description* description) const;
  Status SetAttributes(Description* description) const;
  Status SetAttribute(size_t field, const std::string& text, Description* description) const;
  Status SetOutputs(Description* description) const;

  const OperatorSchema& schema_;
  std::vector<std::optional<std::string>> texts_;   // one per schema field
  std::vector<std::vector<OutputTarget>> targets_;  // likewise, of the outputs that were given
  std::vector<InputFile> inputs_;                   // in binding order
  FeatureLevel level_ = kLatestFeatureLevel;
  DataType index_type_ = DataType::kUnknown;
  Description description_;
};

}  // namespace anydml::tools
