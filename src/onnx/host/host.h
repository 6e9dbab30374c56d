// Nodes that the host computes: shape arithmetic, and other nodes that depend on constants alone.
#pragma once

#include "onnx/lower/lowering.h"

namespace anydml::onnx::host {

Status ConstantOfShape(HostCall& call);
Status Range(HostCall& call);

Status Cast(HostCall& call);
Status Binary(HostCall& call);     // Add, Sub, Mul, Div, Mod, Pow, Min, Max, And, Or, Xor
Status Compare(HostCall& call);    // Equal, Less, Greater, LessOrEqual, GreaterOrEqual
Status Unary(HostCall& call);      // Neg, Abs, Sqrt, Floor, Ceil, Round, Not, Exp, Log, Reciprocal, Sign
Status OfDoubles(HostCall& call);  // Sin, Cos, Tan, Tanh, Erf, Sigmoid, Relu, IsNaN, IsInf
Status Where(HostCall& call);
Status Reduce(HostCall& call);

Status CumSum(HostCall& call);  // CumProd
Status MatMul(HostCall& call);
Status Gemm(HostCall& call);

Status Gather(HostCall& call);
Status Concat(HostCall& call);
Status Slice(HostCall& call);
Status Split(HostCall& call);
Status Expand(HostCall& call);
Status Tile(HostCall& call);
Status Transpose(HostCall& call);
Status NonZero(HostCall& call);

Status ScatterElements(HostCall& call);
Status ScatterNd(HostCall& call);

// Whether it is for types that DirectML lacks, and refuses FLOAT32 and FLOAT16.
inline bool LeavesFloats(Status (*evaluate)(HostCall&)) {
  return evaluate == Reduce || evaluate == MatMul || evaluate == Gemm || evaluate == OfDoubles;
}

}  // namespace anydml::onnx::host
