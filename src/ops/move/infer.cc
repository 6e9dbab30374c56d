// The sizes of outputs, from inputs and attributes.
#include <cstdlib>
#include <limits>
#include <variant>

#include "ops/common/checks.h"
#include "ops/move/check.h"

namespace anydml {
namespace {

using Type = OperatorType;

constexpr uint64_t kMostSize = std::numeric_limits<uint32_t>::max();

template <typename T>
const std::vector<T>& Numbers(const OperatorDesc& desc, const char* name) {
  return std::get<std::vector<T>>(desc.fields[static_cast<size_t>(FindField(*desc.schema, name))]);
}

std::vector<TensorDesc>& Tensors(OperatorDesc* desc, const char* name) {
  return std::get<std::vector<TensorDesc>>(desc->fields[static_cast<size_t>(FindField(*desc->schema, name))]);
}

// An array with a number per dimension may be too short; validation reports that later.
template <typename T>
T At(const std::vector<T>& numbers, uint32_t d) {
  return d < numbers.size() ? numbers[d] : T{1};
}

// Outputs without sizes share what the others leave of the axis; the last one also gets the remainder.
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
  uint64_t sum = 0;
  for (const TensorDesc& input : inputs) sum += input.sizes[axis];
  if (sum > kMostSize)
    return TooLarge(*desc, StrCat("the sum of Sizes[Axis=", axis, "] of InputTensors"), sum);
  sizes[axis] = static_cast<uint32_t>(sum);
  FillTensor(desc, "OutputTensor", first.type, sizes, first.rank);
  return {};
}

// Sizes that do not fit are refused here, where the attributes that cause them are known.
Status InferredSize(const OperatorDesc& desc, const TensorDesc& input, uint32_t d, uint64_t* size) {
  *size = input.sizes[d];
  switch (static_cast<Type>(desc.schema->type)) {
    case Type::kSlice:
      *size = At(Numbers<uint32_t>(desc, "Sizes"), d);
      return *size == 0 ? ZeroElement(desc, "Sizes", d) : Status();
    case Type::kSlice1: {
      const int64_t stride = At(Numbers<int32_t>(desc, "InputWindowStrides"), d);
      const uint64_t window = At(Numbers<uint32_t>(desc, "InputWindowSizes"), d);
      if (stride == 0) return ZeroStride(desc, d);
      if (window == 0) return ZeroElement(desc, "InputWindowSizes", d);
      *size = 1 + (window - 1) / static_cast<uint64_t>(std::abs(stride));
      return {};
    }
    case Type::kSliceGrad: {  // the smallest that contains the window
      const uint64_t window = At(Numbers<uint32_t>(desc, "InputWindowSizes"), d);
      if (window == 0) return ZeroElement(desc, "InputWindowSizes", d);
      *size = At(Numbers<uint32_t>(desc, "InputWindowOffsets"), d) + window;
      if (*size <= kMostSize) return {};
      return TooLarge(desc, StrCat("the sum of InputWindowOffsets[", d, "] and InputWindowSizes[", d, "]"),
                      *size);
    }
    case Type::kTile: {
      const uint32_t repeats = At(Numbers<uint32_t>(desc, "Repeats"), d);
      if (repeats == 0) return ZeroElement(desc, "Repeats", d);
      *size *= repeats;
      if (*size <= kMostSize) return {};
      return TooLarge(desc, StrCat("InputTensor.Sizes[", d, "] times Repeats[", d, "]"), *size);
    }
    case Type::kPadding:
    case Type::kPadding1:
      *size += uint64_t{At(Numbers<uint32_t>(desc, "StartPadding"), d)} +
               At(Numbers<uint32_t>(desc, "EndPadding"), d);
      if (*size <= kMostSize) return {};
      return TooLarge(
          desc,
          StrCat("the sum of InputTensor.Sizes[", d, "], StartPadding[", d, "] and EndPadding[", d, "]"),
          *size);
    default:
      return {};
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
    for (uint32_t d = 0; d < input.rank; ++d) {
      uint64_t size = 0;
      ANYDML_RETURN_IF_ERROR(InferredSize(*desc, input, d, &size));
      sizes[d] = static_cast<uint32_t>(size);
    }
  }
  FillTensor(desc, is_gradient ? "OutputGradientTensor" : "OutputTensor", input.type, sizes, input.rank);
  return {};
}

}  // namespace anydml
