// DirectML operators of which lowered nodes consist, one call each. Results are packed; one may replace an
// input.
#pragma once

#include "onnx/lower/lowering.h"

namespace anydml::onnx {

Shape ShapeOf(const View& view);

// The operator that the node's row of the table names.
inline DML_OPERATOR_TYPE TypeOf(const Lowering& n) {
  return static_cast<DML_OPERATOR_TYPE>(n.row().parameter);
}

inline constexpr DML_OPERATOR_TYPE kAdd = DML_OPERATOR_ELEMENT_WISE_ADD;

// Operators with InputTensor, OutputTensor and possibly ScaleBias: x * scale + bias is applied first.
Status Unary(Lowering& n, DML_OPERATOR_TYPE type, const View& x, View* y, float scale = 1, float bias = 0);
// Operators with InputTensor, OutputTensor and up to two numbers.
Status Activate(Lowering& n, DML_OPERATOR_TYPE type, const View& x, View* y, float alpha = 0, float beta = 0);
// Operators with ATensor, BTensor, OutputTensor. `a` and `b` have the same sizes.
Status Binary(Lowering& n, DML_OPERATOR_TYPE type, const View& a, const View& b, View* y);
// The same with `b`, whose sizes are 1 or those of `a`, broadcast to `a`.
Status BinaryTo(Lowering& n, DML_OPERATOR_TYPE type, const View& a, const View& b, View* y);
// UINT8, 0 and 1.
Status Compare(Lowering& n, DML_OPERATOR_TYPE type, const View& a, const View& b, View* y);
Status Cast(Lowering& n, const View& x, DataType type, View* y);
// Packs strided views; packed ones are returned as they are.
Status Pack(Lowering& n, const View& x, View* y);
Status Fill(Lowering& n, DataType type, const Shape& shape, double value, View* y);
Status Reduce(Lowering& n, DML_REDUCE_FUNCTION function, const View& x, std::span<const uint32_t> axes,
              View* y);

// `a` where `condition` is not 0, otherwise `b`; both are broadcast to it.
Status If(Lowering& n, const View& condition, const View& a, const View& b, View* y);
Status Join(Lowering& n, std::span<const View> parts, uint32_t axis, View* y);
// `count` elements along an axis, every `step`-th.
Status Part(Lowering& n, const View& x, uint32_t axis, int64_t begin, int64_t count, View* y,
            int64_t step = 1);
Status Softmax(Lowering& n, const View& x, uint32_t axis, View* y);

// The activations by the names in com.microsoft's fused operators; "" is none. `numbers` are alpha and beta.
Status ActivateNamed(Lowering& n, const std::string& name, std::span<const float> numbers, const View& x,
                     View* y);

// Inputs i and j, broadcast to each other.
Status BroadcastInputs(Lowering& n, size_t i, size_t j, View* a, View* b, Shape* shape);

// A number as attributes store it.
DML_SCALAR_UNION Scalar(DataType type, double value);
DML_SCALAR_UNION ScalarBits(const Tensor& tensor, size_t index);

// A one-dimensional parameter with `rank` dimensions, along `axis`, broadcast to `shape` unless that is
// empty.
View AlongAxis(const View& parameter, size_t rank, size_t axis);

// Checks the shape of an input; `name` is the operator's name for it.
Status CheckShape(const Lowering& n, size_t input, const char* name, const Shape& allowed);

}  // namespace anydml::onnx
