// Reads, prints and compares tensors of models for the command line.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "anydml/cli/output.h"
#include "base/status.h"
#include "client/values/npy.h"
#include "onnx/run/session.h"

namespace anydml::client {

// Files, literals and random values only have elements of DirectML's types of whole bytes.
Status CheckCanBeGiven(const onnx::Signature& signature);

// Packed, in the model's type and rank where the file cannot express them (booleans, scalars).
Status ToOnnxTensor(const NpyArray& array, const onnx::Signature& signature, onnx::Tensor* out);

// "x=1x3x224x224,mask=1x128"
Status ParseShapes(const std::string& text, std::map<std::string, onnx::Shape>* out);

// The error for a name that is not a known input or output (`kind`).
Status UnknownName(const char* kind, const std::string& name, const std::vector<onnx::Signature>& known);
Status CheckShapeNames(const std::map<std::string, onnx::Shape>& shapes,
                       const std::vector<onnx::Signature>& inputs);

// Uniform between 0 and 1; for integers, which are often indices, 0 and 1.
Status RandomTensor(const onnx::Signature& signature, const std::map<std::string, onnx::Shape>& shapes,
                    uint64_t seed, onnx::Tensor* out);

// Rank 0 if the tools cannot show it: no elements, or too many dimensions.
TensorDesc DescOf(const onnx::Tensor& tensor);

// "2x3 of float"
std::string Describe(const onnx::Tensor& tensor);

struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};
// Empty if they agree; otherwise what is wrong with `actual`.
std::string Difference(const onnx::Tensor& actual, const onnx::Tensor& expected, const Tolerance& tolerance);

}  // namespace anydml::client
