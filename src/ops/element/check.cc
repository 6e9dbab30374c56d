#include "ops/element/check.h"

#include <algorithm>
#include <variant>

#include "ops/common/checks.h"
#include "ops/element/problem.h"

namespace anydml {
namespace {

using Type = OperatorType;

Status CheckSameType(const OperatorDesc& desc, const char* name, DataType given, const char* as,
                     DataType wanted) {
  if (given == wanted) return {};
  return InvalidArgument(desc.schema->name, ": ", name, ".DataType is ", Name(given), " but must be ",
                         Name(wanted), ", that of ", as);
}

// INT32 input takes FLOAT32 scales; floating point takes scales of its own type.
Status CheckQuantizeLinear(const OperatorDesc& desc) {
  const DataType input = desc.tensor("InputTensor")->type;
  const DataType scale = desc.tensor("ScaleTensor")->type;
  if (input != DataType::kInt32) return CheckSameType(desc, "ScaleTensor", scale, "InputTensor", input);
  if (scale == DataType::kFloat32) return {};
  return InvalidArgument(desc.schema->name, ": ScaleTensor.DataType is ", Name(scale),
                         " but must be FLOAT32 where InputTensor.DataType is INT32");
}

// Parameters for blocks: their sizes divide the input's.
Status CheckBlocks(const OperatorDesc& desc, const std::string& name, const TensorDesc& tensor) {
  const TensorDesc& input = *desc.tensor("InputTensor");
  for (uint32_t d = 0; d < input.rank; ++d) {
    if (input.sizes[d] % tensor.sizes[d] == 0) continue;
    return InvalidArgument(desc.schema->name, ": ", name, ".Sizes[", d, "] is ", tensor.sizes[d],
                           " but must divide InputTensor.Sizes[", d, "], which is ", input.sizes[d]);
  }
  return {};
}

// The loops over one tensor's blocks are divided into those of the other.
Status CheckBlocksOfBoth(const OperatorDesc& desc, const TensorDesc& scale, const TensorDesc& zero_point) {
  const TensorDesc& input = *desc.tensor("InputTensor");
  uint32_t loops = 0;
  for (uint32_t d = 0; d < input.rank; ++d) {
    const auto [fewer, more] = std::minmax(scale.sizes[d], zero_point.sizes[d]);
    if (more % fewer != 0) {
      return InvalidArgument(desc.schema->name, ": QuantizationTensors[1].Sizes[", d, "] is ",
                             zero_point.sizes[d], " and QuantizationTensors[0].Sizes[", d, "] is ",
                             scale.sizes[d], " but one must divide the other");
    }
    loops += 1 + (fewer > 1 && fewer < more) + (more > 1 && more < input.sizes[d]);
  }
  if (loops <= kMaxElementLoops) return {};
  return InvalidArgument(
      desc.schema->name, ": scale and zero point have blocks of different sizes in so many ",
      "dimensions that there are ", loops, " loops over them, but there may be ", kMaxElementLoops);
}

Status CheckQuantizationTensors(const OperatorDesc& desc) {
  const uint32_t type = desc.uint("QuantizationType");
  const auto& tensors = std::get<std::vector<TensorDesc>>(
      desc.fields[static_cast<size_t>(FindField(*desc.schema, "QuantizationTensors"))]);
  if (type == 0) {
    return InvalidArgument(desc.schema->name,
                           ": QuantizationType is DML_QUANTIZATION_TYPE_NONE (0) but must be "
                           "DML_QUANTIZATION_TYPE_SCALE (1) or DML_QUANTIZATION_TYPE_SCALE_ZERO_POINT (2)");
  }
  if (tensors.size() != type) {
    return InvalidArgument(
        desc.schema->name, ": QuantizationTensorCount is ", tensors.size(), " but must be ", type, " for ",
        type == 1 ? "DML_QUANTIZATION_TYPE_SCALE" : "DML_QUANTIZATION_TYPE_SCALE_ZERO_POINT");
  }
  const bool quantizes = desc.schema->type == static_cast<uint32_t>(Type::kQuantize);
  const DataType quantized = desc.tensor(quantizes ? "OutputTensor" : "InputTensor")->type;
  const TensorDesc& scale = tensors[0];
  if (scale.type != DataType::kFloat32 && scale.type != DataType::kFloat16) {
    return InvalidArgument(desc.schema->name, ": QuantizationTensors[0] (the scale).DataType is ",
                           Name(scale.type), " but must be FLOAT32 or FLOAT16");
  }
  if (!quantizes) {
    ANYDML_RETURN_IF_ERROR(CheckSameType(desc, "OutputTensor", desc.tensor("OutputTensor")->type,
                                         "QuantizationTensors[0] (the scale)", scale.type));
  }
  ANYDML_RETURN_IF_ERROR(CheckBlocks(desc, "QuantizationTensors[0]", scale));
  if (tensors.size() < 2) return {};
  ANYDML_RETURN_IF_ERROR(CheckSameType(desc, "QuantizationTensors[1] (the zero point)", tensors[1].type,
                                       quantizes ? "OutputTensor" : "InputTensor", quantized));
  ANYDML_RETURN_IF_ERROR(CheckBlocks(desc, "QuantizationTensors[1]", tensors[1]));
  return CheckBlocksOfBoth(desc, scale, tensors[1]);
}

Status CheckSoftplus(const OperatorDesc& desc, FeatureLevel level) {
  const auto steepness =
      std::get<float>(desc.fields[static_cast<size_t>(FindField(*desc.schema, "Steepness"))]);
  constexpr FeatureLevel kAnySteepness = 0x6400;
  if (level >= kAnySteepness || steepness >= 1) return {};
  return InvalidArgument(desc.schema->name, ": Steepness is ", steepness,
                         " but must be at least 1 at feature level ", FeatureLevelName(level),
                         " (any number from 6.4 on)");
}

// All tensors have the output's sizes: kernels rely on it, whatever the schema's relations say.
Status CheckEqualSizes(const OperatorDesc& desc, const char* except = nullptr) {
  const TensorDesc& output = *desc.outputs()[0];
  for (size_t i = 0; i < desc.fields.size(); ++i) {
    const auto* tensor = std::get_if<TensorDesc>(&desc.fields[i]);
    const char* name = desc.schema->fields[i].name;
    if (tensor == nullptr || (except != nullptr && std::string_view(name) == except)) continue;
    if (tensor->rank != output.rank) {
      return InvalidArgument(desc.schema->name, ": ", name, ".DimensionCount is ", tensor->rank,
                             " but must be ", output.rank, ", that of the output");
    }
    ANYDML_RETURN_IF_ERROR(CheckSizes(desc, name, output.sizes, "all tensors have the same sizes"));
  }
  return {};
}

}  // namespace

Status CheckElementOperator(const OperatorDesc& desc, FeatureLevel level) {
  switch (static_cast<OperatorType>(desc.schema->type)) {
    case Type::kElementWiseQuantizeLinear:
      ANYDML_RETURN_IF_ERROR(CheckQuantizeLinear(desc));
      return CheckEqualSizes(desc);
    case Type::kQuantize:
    case Type::kDequantize:
      ANYDML_RETURN_IF_ERROR(CheckQuantizationTensors(desc));
      return CheckEqualSizes(desc);
    case Type::kElementWiseQuantizedLinearAdd:
      for (const char* name : {"AScaleTensor", "AZeroPointTensor", "BScaleTensor", "BZeroPointTensor",
                               "OutputScaleTensor", "OutputZeroPointTensor"}) {
        ANYDML_RETURN_IF_ERROR(CheckOneElement(desc, name));
      }
      ANYDML_RETURN_IF_ERROR(
          CheckSizes(desc, "BTensor", desc.tensor("ATensor")->sizes, "it is added to ATensor"));
      return CheckSizes(desc, "OutputTensor", desc.tensor("ATensor")->sizes, "it has the sizes of ATensor");
    case Type::kAdamOptimizer:
      ANYDML_RETURN_IF_ERROR(CheckOneElement(desc, "TrainingStepTensor"));
      return CheckEqualSizes(desc, "TrainingStepTensor");
    case Type::kActivationSoftplus:
      ANYDML_RETURN_IF_ERROR(CheckSoftplus(desc, level));
      return CheckEqualSizes(desc);
    default:
      return CheckEqualSizes(desc);
  }
}

}  // namespace anydml
