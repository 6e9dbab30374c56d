// The sizes of outputs, from inputs and attributes.
#include <cstdlib>
#include <variant>

#include "ops/common/checks.h"
#include "ops/move/check.h"

namespace anydml {
namespace {

using Type = OperatorType;

template <typename T>
const std::vector<T>& Numbers(const OperatorDesc& desc, const char* name) {
  return std::get<std::vector<T>>(desc.fields[static_cast<size_t>(FindField(*desc.schema, name))]);
}

std::vector<TensorDesc>& Tensors(OperatorDesc* desc, const char* name) {
  return std::get<std::vector<TensorDesc>>(desc->fields[static_cast<size_t>(FindField(*desc->schema, name))]);
}

// Numbers per dimension that may be fewer than the dimensions: validation says so later.
template <typename T>
T At(const std::vector<T>& numbers, uint32_t d) {
  return d < numbers.size() ? numbers[d] : T{1};
}

// Outputs without sizes share what the others leave of the axis; the last one gets the rest, too.
Status InferSplit(OperatorDesc* desc) {
  const TensorDesc* input = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, "InputTensor", &input));
  const uint32_t axis = desc->uint("Axis");
  if (axis >= input->rank) return {};
  auto& outputs = Tensors(desc, "OutputTensors");
  uint32_t rest = input->sizes[axis], open = 0;
  for (const TensorDesc& output : outputs) {
    if (output.rank == 0) ++open;
    if (output.rank > axis) rest -= std::min(rest, output.sizes[axis]);
  }
  for (TensorDesc& output : outputs) {
    if (output.rank > 0) continue;
    Dimensions sizes = input->sizes;
    sizes[axis] = rest / open;
    rest -= rest / open--;
    const DataType type = output.type != DataType::kUnknown ? output.type : input->type;
    output = PackedTensor(type, sizes.data(), input->rank);
  }
  return {};
}

Status InferJoin(OperatorDesc* desc) {
  const auto& inputs = Tensors(desc, "InputTensors");
  const uint32_t axis = desc->uint("Axis");
  if (inputs.empty() || axis >= inputs[0].rank) return {};
  const TensorDesc first = inputs[0];
  Dimensions sizes = first.sizes;
  sizes[axis] = 0;
  for (const TensorDesc& input : inputs) sizes[axis] += input.sizes[axis];
  FillTensor(desc, "OutputTensor", first.type, sizes, first.rank);
  return {};
}

uint32_t InferredSize(const OperatorDesc& desc, const TensorDesc& input, uint32_t d) {
  const uint32_t size = input.sizes[d];
  switch (static_cast<Type>(desc.schema->type)) {
    case Type::kSlice:
      return At(Numbers<uint32_t>(desc, "Sizes"), d);
    case Type::kSlice1: {
      const auto stride = std::abs(int64_t{At(Numbers<int32_t>(desc, "InputWindowStrides"), d)});
      const int64_t window = At(Numbers<uint32_t>(desc, "InputWindowSizes"), d);
      return window == 0 || stride == 0 ? 0 : static_cast<uint32_t>(1 + (window - 1) / stride);
    }
    case Type::kSliceGrad:  // the smallest that has the window
      return At(Numbers<uint32_t>(desc, "InputWindowOffsets"), d) +
             At(Numbers<uint32_t>(desc, "InputWindowSizes"), d);
    case Type::kTile:
      return size * At(Numbers<uint32_t>(desc, "Repeats"), d);
    case Type::kPadding:
    case Type::kPadding1:
      return size + At(Numbers<uint32_t>(desc, "StartPadding"), d) +
             At(Numbers<uint32_t>(desc, "EndPadding"), d);
    default:
      return size;
  }
}

}  // namespace

Status InferMove(OperatorDesc* desc) {
  const auto type = static_cast<Type>(desc->schema->type);
  if (type == Type::kSplit) return InferSplit(desc);
  if (type == Type::kJoin) return InferJoin(desc);
  const bool is_gradient = type == Type::kSliceGrad;
  const TensorDesc* given = nullptr;
  ANYDML_RETURN_IF_ERROR(RequireTensor(*desc, is_gradient ? "InputGradientTensor" : "InputTensor", &given));
  const TensorDesc input = *given;
  Dimensions sizes{};
  if (FindField(*desc->schema, "BlockSize") >= 0) {
    ANYDML_RETURN_IF_ERROR(DepthSpaceSizes(*desc, input, &sizes));
  } else {
    for (uint32_t d = 0; d < input.rank; ++d) sizes[d] = InferredSize(*desc, input, d);
  }
  FillTensor(desc, is_gradient ? "OutputGradientTensor" : "OutputTensor", input.type, sizes, input.rank);
  return {};
}

}  // namespace anydml
