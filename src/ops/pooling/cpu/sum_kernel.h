// Shared by averages and norms, along whichever dimension elements are contiguous.
#pragma once

#include <vector>

#include "ops/numbers/load_store.h"
#include "ops/pooling/arithmetic.h"
#include "ops/pooling/cpu/row_loops.h"
#include "ops/pooling/problem.h"

namespace anydml::pooling {

class SumKernel : public Kernel {
 protected:
  SumKernel(const PoolingProblem& problem, uint64_t input_stride, uint64_t output_stride)
      : p_(problem),
        loops_(FindSumLoops()),
        load_(FindLoad(problem.input.type, Class::kF32)),
        store_(FindStore(Class::kF32, problem.output.type)),
        input_stride_(input_stride),
        output_stride_(output_stride),
        reads_directly_(problem.input.type == DataType::kFloat32 && input_stride == 1 &&
                        problem.function == PoolingFunction::kAverage),
        writes_directly_(problem.output.type == DataType::kFloat32 && output_stride == 1) {
    for (uint32_t d = 0; d < kSpatialRank; ++d) {
      const WindowAxis& axis = p_.shape.axes[d];
      for (uint32_t w = 0; w < axis.windows; ++w) {
        divisors_[d].push_back(static_cast<float>(DivisorTaps(axis, w, p_.include_padding)));
      }
    }
  }

  // `count` elements from `offset` on as the terms of the sum: in `memory`, or in place.
  const float* Terms(const KernelArguments& arguments, uint64_t offset, uint64_t count, uint32_t channel,
                     uint64_t channel_step, float* memory) const {
    const std::byte* const data = arguments.inputs[0].data;
    if (reads_directly_) return reinterpret_cast<const float*>(data) + offset;
    load_(data, Block{.columns = count, .column_stride = input_stride_, .offset = offset}, memory);
    if (p_.function == PoolingFunction::kLp) {
      if (p_.p <= 2) {
        loops_.powers(memory, p_.p, count);
      } else {
        for (uint64_t i = 0; i < count; ++i) memory[i] = LpTerm(memory[i], p_.p);
      }
    } else if (p_.has_parameter[PoolingProblem::kInputZeroPoint]) {
      for (uint64_t i = 0; i < count; ++i) {
        memory[i] -= Parameter(arguments, PoolingProblem::kInputZeroPoint, channel + i * channel_step);
      }
    }
    return memory;
  }

  float Parameter(const KernelArguments& arguments, PoolingProblem::Parameter which, uint64_t channel) const {
    if (!p_.has_parameter[which]) return 0;
    const std::byte* const data = arguments.inputs[1 + which].data;
    const uint64_t at = channel * p_.parameter_strides[which];
    switch (which) {
      case PoolingProblem::kInputScale:
      case PoolingProblem::kOutputScale:
        return reinterpret_cast<const float*>(data)[at];
      default: {
        const DataType type = which == PoolingProblem::kInputZeroPoint ? p_.input.type : p_.output.type;
        return type == DataType::kInt8 ? static_cast<float>(reinterpret_cast<const int8_t*>(data)[at])
                                       : static_cast<float>(reinterpret_cast<const uint8_t*>(data)[at]);
      }
    }
  }

  // Turns sums into results, in place; sum i is divided by divisors[i] * factor and belongs to channel + i *
  // channel_step.
  void Finish(const KernelArguments& arguments, float* sums, uint64_t count, const float* divisors,
              float factor, uint32_t channel, uint64_t channel_step) const {
    if (p_.function == PoolingFunction::kAverage) return loops_.divide(sums, divisors, factor, count);
    if (p_.function == PoolingFunction::kLp) {
      if (p_.p <= 2) return loops_.roots(sums, p_.p, count);
      for (uint64_t i = 0; i < count; ++i) sums[i] = WithOneNan(LpRoot(sums[i], p_.p));
      return;
    }
    const float lowest = p_.output.type == DataType::kInt8 ? -128 : 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t c = channel + i * channel_step;
      const Quantization q = {Parameter(arguments, PoolingProblem::kInputScale, c),
                              Parameter(arguments, PoolingProblem::kOutputScale, c),
                              Parameter(arguments, PoolingProblem::kOutputZeroPoint, c), lowest};
      sums[i] = QuantizedMean(sums[i], divisors[i] * factor, q);
    }
  }

  // Collects rows and adds them three by three.
  class Rows {
   public:
    Rows(const SumLoops& loops, uint64_t count, float* sums) : loops_(loops), count_(count), sums_(sums) {}

    void Add(const float* row) {
      rows_[filled_++] = row;
      if (filled_ == kRowsAtOnce) Flush();
    }
    uint32_t filled() const { return filled_; }  // rows waiting to be added
    void Finish() {
      if (filled_ > 0) Flush();
    }

   private:
    void Flush() {
      loops_.rows(rows_, filled_, count_, first_, sums_);
      first_ = false;
      filled_ = 0;
    }

    const SumLoops& loops_;
    uint64_t count_;
    float* sums_;
    const float* rows_[kRowsAtOnce] = {};
    uint32_t filled_ = 0;
    bool first_ = true;
  };

  PoolingProblem p_;
  SumLoops loops_;
  LoadBlock load_;
  StoreBlock store_;
  uint64_t input_stride_;  // along the rows
  uint64_t output_stride_;
  bool reads_directly_;
  bool writes_directly_;
  std::array<std::vector<float>, kSpatialRank> divisors_;  // for each window along a dimension
};

inline bool IsForSums(const PoolingProblem& p, std::string* why_not) {
  if (p.function != PoolingFunction::kMax) return true;
  *why_not = "is for sums";
  return false;
}

}  // namespace anydml::pooling
