#include "ops/element/cuda/flat.cuh"

namespace anydml::element_cuda {

FlatLaunch* FindFlatTranscendental(ElementFunction function, uint32_t varying, DataType from, DataType to) {
  using F = ElementFunction;
  if (varying != 1) return nullptr;
  switch (function) {
    case F::kExp:
      return FlatOfFloats<rows::Exp, 1>(from, to);
    case F::kLog:
      return FlatOfFloats<rows::Log, 1>(from, to);
    case F::kSin:
      return FlatOfFloats<rows::Sin, 1>(from, to);
    case F::kCos:
      return FlatOfFloats<rows::Cos, 1>(from, to);
    case F::kTanh:
      return FlatOfFloats<rows::Tanh, 1>(from, to);
    case F::kErf:
      return FlatOfFloats<rows::Erf, 1>(from, to);
    case F::kErfOfHalf:
      return FlatOfFloats<rows::ErfOfHalf, 1>(from, to);
    case F::kSigmoid:
      return FlatOfFloats<rows::Sigmoid, 1>(from, to);
    case F::kGelu:
      return FlatOfFloats<rows::Gelu, 1, 2>(from, to);
    case F::kGeluOfHalf:
      return FlatOfFloats<rows::GeluOfHalf, 1, 2>(from, to);
    case F::kSwish:
      return FlatOfFloats<rows::Swish, 1>(from, to);
    case F::kElu:
      return FlatOfFloats<rows::Elu, 1>(from, to);
    default:
      return nullptr;
  }
}

}  // namespace anydml::element_cuda
