// Runs operators on a few numbers and compares with literals that were derived from the specification (by
// hand, or in higher precision), not with this code.
#pragma once

#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/operator_runner.h"

namespace anydml::testing {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();  // 0x7FC00000, as all NaN results

// A tensor with its elements. Rank 0: absent.
struct Values {
  TensorDesc tensor;
  Bytes bytes;
};

// Packed, one-dimensional.
Values F32(std::initializer_list<float> elements);
Values F16(std::initializer_list<float> elements);  // all of them halves
Values F64(std::initializer_list<double> elements);
Values I64(std::initializer_list<int64_t> elements);
Values I32(std::initializer_list<int32_t> elements);
Values I16(std::initializer_list<int16_t> elements);
Values I8(std::initializer_list<int8_t> elements);
Values U64(std::initializer_list<uint64_t> elements);
Values U32(std::initializer_list<uint32_t> elements);
Values U16(std::initializer_list<uint16_t> elements);
Values U8(std::initializer_list<uint8_t> elements);
Values I4(std::initializer_list<int8_t> elements);
Values U4(std::initializer_list<uint8_t> elements);
// Floating point given as bits.
Values F32Bits(std::initializer_list<uint32_t> elements);
Values F16Bits(std::initializer_list<uint16_t> elements);
Values F64Bits(std::initializer_list<uint64_t> elements);

// The same elements, in row-major order, with other sizes and strides (packed if there are none).
Values Shaped(const Values& values, const std::vector<uint32_t>& sizes,
              const std::vector<uint32_t>& strides = {});

using Attributes = std::initializer_list<std::pair<const char*, FieldValue>>;

FieldValue Fused(const char* activation, Attributes attributes = {});

template <typename T>
Scalar ScalarOf(T value) {
  Scalar scalar{};
  std::memcpy(scalar.bytes.data(), &value, sizeof(value));
  return scalar;
}

// Tensors are assigned to the operator's fields in order, the last ones to its array of quantisation tensors,
// whose number and type they determine. Omitted attributes are 0 or absent.
OperatorDesc Describe(const char* operator_name, const std::vector<Values>& inputs, Attributes attributes,
                      const std::vector<Values>& outputs);

// Runs the operator with every implementation and expects `outputs`, including the bytes in gaps: with ulps >
// 0 the reference within one ulp and others within `ulps` (FLOAT16: one); with 0 all bits must match. (The
// location is the caller's; clang 14 has no std::source_location.)
void Expect(const char* operator_name, const std::vector<Values>& inputs, Attributes attributes,
            const std::vector<Values>& outputs, uint32_t ulps = 0, const char* file = __builtin_FILE(),
            int line = __builtin_LINE());

// The types of all operators for which Expect was called.
const std::set<uint32_t>& ExpectedOperators();

}  // namespace anydml::testing
