#include "ops/common/checks.h"
#include "ops/top_k/top_k.h"

namespace anydml {
namespace {

// The documentation requires K to be less than the axis, but clients use full sorts every day.
Status CheckK(const OperatorDesc& desc) {
  const uint32_t axis = desc.uint("Axis");
  const uint32_t k = desc.uint("K");
  const uint32_t n = desc.tensor("InputTensor")->sizes[axis];
  if (k >= 1 && k <= n) return {};
  return InvalidArgument(desc.schema->name, ": K is ", k, " but InputTensor.Sizes[Axis=", axis, "] is ", n,
                         "; K must be in [1, ", n, "]");
}

Dimensions OutputSizes(const OperatorDesc& desc) {
  Dimensions sizes = desc.tensor("InputTensor")->sizes;
  sizes[desc.uint("Axis")] = desc.uint("K");
  return sizes;
}

}  // namespace

Status CheckTopK(const OperatorDesc& desc, FeatureLevel) {
  ANYDML_RETURN_IF_ERROR(CheckAxis(desc));
  ANYDML_RETURN_IF_ERROR(CheckK(desc));
  const Dimensions sizes = OutputSizes(desc);
  constexpr const char* kRule = "the sizes of InputTensor with K along Axis";
  ANYDML_RETURN_IF_ERROR(CheckSizes(desc, "OutputValueTensor", sizes, kRule));
  return CheckSizes(desc, "OutputIndexTensor", sizes, kRule);
}

Status InferTopK(OperatorDesc* desc) {
  const TensorDesc* input = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &input));
  ANYDML_RETURN_IF_ERROR(CheckAxis(*desc));
  ANYDML_RETURN_IF_ERROR(CheckK(*desc));
  const Dimensions sizes = OutputSizes(*desc);
  FillTensor(desc, "OutputValueTensor", input->type, sizes, input->rank);
  FillTensor(desc, "OutputIndexTensor", DataType::kUInt32, sizes, input->rank);
  return {};
}

}  // namespace anydml
