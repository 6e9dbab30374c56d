// NONZERO_COORDINATES: the number of elements that are not zero, and their coordinates in row-major order.
#pragma once

#include <cstdint>
#include <span>

#include "ops/common/loop_nest.h"
#include "ops/implementation_list.h"
#include "ops/operator.h"
#include "schema/tensor_desc.h"

namespace anydml {

const Operator& NonzeroCoordinatesOperator();

// Rows of the coordinates beyond the count are not written.
struct NonzeroProblem {
  static constexpr std::string_view kFamily = "nonzero";

  TensorDesc input;
  TensorDesc coordinates;  // {..., rows, columns}; a column for each of the input's last dimensions
};

// The bits that tell whether an element is not zero: a float's sign does not count.
constexpr uint32_t NonzeroMask(DataType type) {
  return type == DataType::kFloat32 ? 0x7FFFFFFFu : type == DataType::kFloat16 ? 0x7FFFu : ~0u;
}

// The sizes of the dimensions that have a column, and the coordinates' strides.
struct NonzeroColumns {
  uint32_t count = 0;
  uint32_t sizes[kMaxDimensions] = {};
  uint64_t row_stride = 0;
  uint64_t column_stride = 0;
};
NonzeroColumns ColumnsOf(const NonzeroProblem& problem);

CreateFunction<NonzeroProblem> CreateNonzeroCpu, CreateNonzeroCuda, CreateNonzeroReference;

}  // namespace anydml
