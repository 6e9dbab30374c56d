// BATCH_NORMALIZATION whose mean, variance, scale and bias are constant along contiguous elements, or
// contiguous, too.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ops/batchnorm/problem.h"
#include "ops/common/loop_nest.h"

namespace anydml {

struct BatchNormRows {
  LoopNest<6> rows;  // offsets into input, output, mean, variance, scale, bias
  uint64_t length = 1;
};

// Rows of at least `shortest` elements with the same parameters; empty, with a reason, if the problem has
// none.
std::optional<BatchNormRows> RowsOf(const BatchNormProblem& problem, uint64_t shortest, std::string* why_not);
// Rows whose elements have a parameter each, the same ones in all rows.
std::optional<BatchNormRows> ChannelRowsOf(const BatchNormProblem& problem, uint64_t shortest,
                                           std::string* why_not);

std::unique_ptr<const Kernel> CreateBatchNormChannels(const BatchNormProblem& problem,
                                                      const BatchNormRows& rows, const LowerContext& context);

}  // namespace anydml
