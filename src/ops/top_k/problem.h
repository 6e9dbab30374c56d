// What a top-k kernel is made for.
//
// The order, the same in every kernel:
// - NaN is above +infinity, all NaNs are equal; -0 equals +0;
// - equal elements are ordered by ascending index in both directions, also where
//   the last places are given away: the lowest indices get them;
// - values are copied bit for bit.
#pragma once

#include <memory>
#include <string>

#include "ops/kernel.h"
#include "schema/tensor_desc.h"

namespace anydml {

struct TopKProblem {
  TensorDesc input;
  TensorDesc value;  // sizes of input, but K along the axis
  TensorDesc index;  // the same; UINT32 or UINT64
  uint32_t axis = 0;
  bool largest = true;
  uint32_t threads = 1;  // that may share a run

  uint32_t n() const { return input.sizes[axis]; }
  uint32_t k() const { return value.sizes[axis]; }
};

// create functions of the implementations; the list is in lower.cc.
std::unique_ptr<const Kernel> CreateTopKRank(const TopKProblem& problem, std::string* why_not);
std::unique_ptr<const Kernel> CreateTopKBests(const TopKProblem& problem, std::string* why_not);
std::unique_ptr<const Kernel> CreateTopKSample(const TopKProblem& problem, std::string* why_not);
std::unique_ptr<const Kernel> CreateTopKKeys(const TopKProblem& problem, std::string* why_not);
std::unique_ptr<const Kernel> CreateTopKHeap(const TopKProblem& problem, std::string* why_not);
std::unique_ptr<const Kernel> CreateTopKSort(const TopKProblem& problem, std::string* why_not);
std::unique_ptr<const Kernel> CreateTopKReference(const TopKProblem& problem, std::string* why_not);

// Implementation::better_not of some.
std::string TopKBestsBetterNot(const TopKProblem& problem);
std::string TopKSampleBetterNot(const TopKProblem& problem);

}  // namespace anydml
