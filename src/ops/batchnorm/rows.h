// BATCH_NORMALIZATION where mean, variance, scale and bias are the same for neighbours, or neighbours, too.
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

// Rows of at least `shortest` elements with the same parameters; none, with a reason, where the problem is
// something else.
std::optional<BatchNormRows> RowsOf(const BatchNormProblem& problem, uint64_t shortest, std::string* why_not);
// Rows of elements that have a parameter each, the same in all rows.
std::optional<BatchNormRows> ChannelRowsOf(const BatchNormProblem& problem, uint64_t shortest,
                                           std::string* why_not);

std::unique_ptr<const Kernel> CreateBatchNormChannels(const BatchNormProblem& problem,
                                                      const BatchNormRows& rows, const LowerContext& context);

}  // namespace anydml
