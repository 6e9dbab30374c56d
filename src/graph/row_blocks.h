// Element-wise work and the operator that alone reads its result, which is computed and read by blocks that
// stay in a cache.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/element/problem.h"
#include "ops/operator.h"
#include "schema/operator_desc.h"

namespace anydml {

// Inputs are those of the elements, then those of the reader but the one that is computed; outputs are the
// reader's.
struct RowBlocks {
  // Of a block.
  struct Work {
    ElementProblem elements;
    OperatorDesc desc;  // of the reader
  };

  const Operator* reader = nullptr;
  uint32_t computed = 0;  // which of the reader's inputs
  // Blocks are cut out of these loops, outermost first: `count` iterations of the last one, one of others.
  std::vector<uint64_t> sizes;
  uint64_t count = 1;
  // From one iteration to the next, in bytes, for each input and output that there is.
  std::vector<std::vector<uint64_t>> input_steps, output_steps;
  uint64_t block_bytes = 0;  // of the result
  Work whole;                // `count` iterations
  Work rest;                 // those that are left, where some are

  uint64_t Rest() const { return sizes.back() % count; }
};

Status LowerRowBlocks(const RowBlocks& blocks, const LowerContext& context, LoweredOperator* out);

}  // namespace anydml
