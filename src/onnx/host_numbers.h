// What the files of arithmetic on the host have in common.
#pragma once

#include "onnx/host.h"

namespace anydml::onnx::host {

// What is computed as vectors of numbers, which take several times the memory of the tensor.
inline constexpr int64_t kMostHostNumbers = int64_t{1} << 24;

// Positions of a broadcast input for every element of `shape`.
std::vector<size_t> Positions(const onnx::Shape& input, const onnx::Shape& shape);

// Whether the host computes with elements of it.
bool IsNumber(ElementType type);
// All inputs are there, and are such.
Status CheckNumbers(const HostCall& call);

}  // namespace anydml::onnx::host
