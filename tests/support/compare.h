// Whether a result is as close to the reference's as its implementation declares.
#pragma once

#include <string>
#include <vector>

#include "ops/exactness.h"
#include "schema/operator_desc.h"
#include "support/guarded_buffer.h"

namespace anydml::testing {

// Describes the first difference between a tensor's bytes and the reference's that `exactness` does not
// allow; empty if there is none. Bytes outside elements must be equal.
std::string Difference(const TensorDesc& tensor, const Bytes& got, const Bytes& want,
                       const Exactness& exactness, const std::vector<double>& errors = {});

// How far each element of each output may be off for these inputs, at the elements' offsets (ops/errors.h).
// Empty for operators whose Exactness says it.
using Errors = std::vector<std::vector<double>>;
Errors ErrorsOf(const OperatorDesc& desc, const std::vector<Bytes>& inputs);

// The same for all outputs of an operator; absent ones have no bytes.
std::string Difference(const OperatorDesc& desc, const std::vector<Bytes>& got,
                       const std::vector<Bytes>& want, const Exactness& exactness, const Errors& errors = {});

// The distance in representable numbers: 0 for equal ones and for zeros of either sign.
uint64_t UlpsApart(float a, float b);
uint64_t HalfUlpsApart(uint16_t a, uint16_t b);

}  // namespace anydml::testing
