// The rows of the operator table, by family: operators/<family>.cc.
#pragma once

#include <span>

#include "onnx/lower/lowering.h"

namespace anydml::onnx {

std::span<const OperatorRow> ElementOperators();
std::span<const OperatorRow> ActivationOperators();
std::span<const OperatorRow> ShapeOperators();
std::span<const OperatorRow> MoveOperators();
std::span<const OperatorRow> MatrixOperators();
std::span<const OperatorRow> ConvolutionOperators();
std::span<const OperatorRow> PoolingOperators();
std::span<const OperatorRow> NormalizationOperators();
std::span<const OperatorRow> ReductionOperators();
std::span<const OperatorRow> IndexOperators();
std::span<const OperatorRow> QuantizationOperators();
std::span<const OperatorRow> ResizeOperators();
std::span<const OperatorRow> RecurrentOperators();
std::span<const OperatorRow> GenerateOperators();
std::span<const OperatorRow> AttentionOperators();
std::span<const OperatorRow> MicrosoftFusedOperators();
std::span<const OperatorRow> MicrosoftAttentionOperators();
std::span<const OperatorRow> GroupQueryAttentionOperators();
std::span<const OperatorRow> MicrosoftQuantizedOperators();
std::span<const OperatorRow> EinsumOperators();
std::span<const OperatorRow> LossOperators();
std::span<const OperatorRow> ImageRegionOperators();
std::span<const OperatorRow> SelectOperators();
std::span<const OperatorRow> SignalOperators();
std::span<const OperatorRow> SpectrumOperators();
std::span<const OperatorRow> DeformConvolutionOperators();
std::span<const OperatorRow> GridCropCacheOperators();
std::span<const OperatorRow> RandomOperators();
std::span<const OperatorRow> TextOperators();
std::span<const OperatorRow> OldestAndNewestOperators();
std::span<const OperatorRow> LinearAttentionOperators();

inline constexpr const char* kOnnx = "";
inline constexpr const char* kMicrosoft = "com.microsoft";

// An operator that the host computes between two parts.
constexpr OperatorRow HostRow(const char* name, uint8_t least, uint8_t most, Status (*evaluate)(HostCall&)) {
  return {.domain = kOnnx,
          .name = name,
          .min_inputs = least,
          .max_inputs = most,
          .lower = OnHost,
          .evaluate = evaluate,
          .on_host = true};
}

}  // namespace anydml::onnx
