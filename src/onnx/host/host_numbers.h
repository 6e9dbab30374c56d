// Shared by the files of arithmetic on the host.
#pragma once

#include "onnx/host/host.h"

namespace anydml::onnx::host {

// A limit for what is computed in vectors of numbers, which take several times the tensor's memory.
inline constexpr int64_t kMostHostNumbers = int64_t{1} << 24;

// For every element of `shape`, the position in a broadcast input.
std::vector<size_t> Positions(const onnx::Shape& input, const onnx::Shape& shape);

// Whether the host computes with elements of this type.
bool IsNumber(ElementType type);
// Checks that all inputs are present and numbers.
Status CheckNumbers(const HostCall& call);

}  // namespace anydml::onnx::host
