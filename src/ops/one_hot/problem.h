// ONE_HOT: along an axis, the element that the index selects is on and all others are off.
#pragma once

#include <span>

#include "ops/common/loop_nest.h"
#include "ops/implementation_list.h"
#include "ops/operator.h"
#include "schema/tensor_desc.h"

namespace anydml {

const Operator& OneHotOperator();

struct OneHotProblem {
  static constexpr std::string_view kFamily = "one_hot";

  TensorDesc indices;
  TensorDesc output;
  uint32_t axis = 0;
  uint64_t wrap = 0;  // added to negative indices: the size of the axis, or 0
  uint64_t on = 0;    // the offset of OnValue in ValuesTensor, in elements; OffValue is first
};

// The place along the axis that is on; at least its size if all are off. `index` is extended to 64 bits.
// (constexpr, so that nvcc compiles it for the device, too.)
constexpr uint64_t PlaceOf(int64_t index, bool is_signed, uint64_t wrap) {
  return static_cast<uint64_t>(index) + (is_signed && index < 0 ? wrap : 0);
}

// Over the output's elements, in the order of its addresses; kPlace counts along the axis.
enum OneHotOperand { kOneHotOutput, kOneHotIndices, kOneHotPlace };
LoopNest<3> OneHotNest(const OneHotProblem& problem);

CreateFunction<OneHotProblem> CreateOneHotCpu, CreateOneHotCuda, CreateOneHotReference;

}  // namespace anydml
