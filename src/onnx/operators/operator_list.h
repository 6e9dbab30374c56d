// All rows of the operator table, for tests.
#pragma once

#include <vector>

#include "onnx/lower/lowering.h"

namespace anydml::onnx {

std::vector<const OperatorRow*> AllOperators();

}  // namespace anydml::onnx
