// Element-wise work and the only reader of its result: both run block by block, and the result stays in a
// cache.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ops/element/problem.h"
#include "ops/operator.h"
#include "schema/operator_desc.h"

namespace anydml {

// Inputs are those of the elements, then those of the reader except the computed one; outputs are the
// reader's.
struct RowBlocks {
  // The work of one block.
  struct Work {
    ElementProblem elements;
    OperatorDesc desc;  // of the reader
  };

  const Operator* reader = nullptr;
  uint32_t computed = 0;  // index of the computed tensor among the reader's inputs
  // Blocks are cut from these loops, outermost first: `count` iterations of the last loop and one of each
  // other.
  std::vector<uint64_t> sizes;
  uint64_t count = 1;
  // Steps per iteration, in bytes, for each present input and output.
  std::vector<std::vector<uint64_t>> input_steps, output_steps;
  uint64_t block_bytes = 0;  // size of a block's intermediate result
  Work whole;                // a block of `count` iterations
  Work rest;                 // the remaining iterations, if any

  uint64_t Rest() const { return sizes.back() % count; }
};

Status LowerRowBlocks(const RowBlocks& blocks, const LowerContext& context, LoweredOperator* out);

}  // namespace anydml
