// An operator's description as people give it: tensors keep their own rank, axes refer to that, and array
// lengths, dimension counts and outputs may be omitted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "schema/operator_desc.h"

namespace anydml::client {

// The tensors of an output field as far as the caller gives them: one, or as many as an array has, or none if
// the field is optional and omitted. Missing sizes are inferred. An unknown type becomes the type that the
// operator determines, or its default.
using OutputRequest = std::vector<TensorDesc>;

// Call the methods in this order.
class Description {
 public:
  explicit Description(const OperatorSchema& schema);

  // In binding order, an array's elements one by one.
  void AddInput(size_t field, const TensorDesc& tensor);

  // Makes ranks equal as the documentation describes: leading 1s up to the smallest rank that the feature
  // level takes, and up to the largest rank of tensors that must agree.
  Status AlignInputs(FeatureLevel level);

  // Attributes as text (see ParseFieldValue); set scalars after the data type that determines theirs.
  Status SetAttribute(size_t field, std::string_view text);
  void SetOperators(size_t field, std::vector<OperatorDesc> operators);
  // For an attribute that was not given.
  Status SetDefault(size_t field);

  // `requests`: one per schema field; only those of outputs are used. Tensors with sizes have the caller's
  // rank.
  Status InferOutputs(const std::vector<OutputRequest>& requests);

  const OperatorDesc& desc() const { return desc_; }

  // `tensor` without the leading 1s that were added to the first input.
  TensorDesc AsGiven(const TensorDesc& tensor) const;

  // The additions of AlignInputs as a sentence: "InputTensor {3} is taken as {1,1,1,3}"; empty if there were
  // none.
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
  // The common data type of the inputs whose type output `output` must have; kUnknown if that is not the only
  // rule.
  DataType TypeOfInputsLike(size_t output) const;

  const OperatorSchema& schema_;
  std::vector<Input> inputs_;  // in binding order
  OperatorDesc desc_;
};

}  // namespace anydml::client
