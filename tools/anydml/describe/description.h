// An operator's description as people give it: tensors keep their own number of dimensions, axes
// count those, and array lengths, dimension counts and outputs may be left out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "schema/operator_desc.h"

namespace anydml::tools {

// What is known of an output field: its tensors, of which there is one, or as many as an array has, or none
// when it is optional and left out. Those without sizes are inferred; an unknown type is the operator's, or
// its default.
using OutputRequest = std::vector<TensorDesc>;

// Completed in the order of the methods.
class Description {
 public:
  explicit Description(const OperatorSchema& schema);

  // In binding order, an array's one by one.
  void AddInput(size_t field, const TensorDesc& tensor);

  // Makes dimension counts equal the way the pages describe: leading 1s up to the smallest count that
  // the feature level takes, and up to the largest of tensors that must agree.
  Status AlignInputs(FeatureLevel level);

  // Attributes as text (see ParseFieldValue); scalars after the data type that they have.
  Status SetAttribute(size_t field, std::string_view text);
  void SetOperators(size_t field, std::vector<OperatorDesc> operators);
  // Of an attribute that was not given.
  Status SetDefault(size_t field);

  // `requests`: one per schema field; only those of outputs count. Tensors with sizes have as many dimensions
  // as the caller's.
  Status InferOutputs(const std::vector<OutputRequest>& requests);

  const OperatorDesc& desc() const { return desc_; }

  // `tensor` without the leading 1s that were added to the first input.
  TensorDesc AsGiven(const TensorDesc& tensor) const;

  // What AlignInputs added, as one sentence: "InputTensor {3} is taken as {1,1,1,3}"; empty when nothing.
  std::string AddedDimensions() const;

 private:
  struct Input {
    size_t field;
    TensorDesc tensor;
    uint32_t given_rank;  // before leading 1s were added
  };

  Status AlignGroup(const Relation& relation, std::vector<uint32_t>* ranks) const;
  Status ShiftAxes(size_t field);
  Status AddNeutralElements(size_t field);
  uint32_t AddedOnes() const;
  const Input* InputOf(size_t field) const;
  // Of the inputs whose data type output `output` must have; kUnknown where that is not all that decides.
  DataType TypeOfInputsLike(size_t output) const;

  const OperatorSchema& schema_;
  std::vector<Input> inputs_;  // in binding order
  OperatorDesc desc_;
};

}  // namespace anydml::tools
