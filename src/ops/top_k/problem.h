// The problem of a top-k kernel.
//
// The order, the same in every kernel:
// - NaN is above +infinity, all NaNs are equal; -0 equals +0;
// - equal elements are ordered by ascending index in both directions; among elements that tie for the last
//   places, the lowest indices win;
// - values are copied bit for bit.
#pragma once

#include <string>

#include "ops/implementation_list.h"
#include "schema/tensor_desc.h"

namespace anydml {

struct TopKProblem {
  static constexpr std::string_view kFamily = "top_k";

  TensorDesc input;
  TensorDesc value;  // the input's sizes, but K along the axis
  TensorDesc index;  // the same; UINT32 or UINT64
  uint32_t axis = 0;
  bool largest = true;

  uint32_t n() const { return input.sizes[axis]; }
  uint32_t k() const { return value.sizes[axis]; }
};

// The implementations, fastest first, the reference last (lower.cc), and their factories.
CreateFunction<TopKProblem> CreateTopKRank, CreateTopKMaxima, CreateTopKSample, CreateTopKKeys,
    CreateTopKHeap, CreateTopKSort, CreateTopKReference;
CreateFunction<TopKProblem> CreateTopKCudaThreads, CreateTopKCudaColumns, CreateTopKCudaTransposed,
    CreateTopKCudaCounted, CreateTopKCudaRows, CreateTopKCudaLongRows, CreateTopKCudaStream,
    CreateTopKCudaBuckets, CreateTopKCudaSort, CreateTopKCudaRounds;
BetterNotFunction<TopKProblem> TopKMaximaBetterNot, TopKSampleBetterNot;

}  // namespace anydml
