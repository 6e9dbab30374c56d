// Operators that only move elements: SLICE, SLICE1, SLICE_GRAD, SPLIT, JOIN, TILE, PADDING, PADDING1 and the
// four between depth and space. All are copies through affine maps, which maps.h derives from descriptions
// and kernels execute.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ops/implementation_list.h"
#include "ops/move/affine_map.h"
#include "ops/operator.h"

namespace anydml {

std::span<const Operator> MoveOperators();

struct MoveCopy {
  enum Source { kInput, kOutput, kFill };
  Source source = kInput;
  uint32_t from = 0;  // binding index of the source; unused with kFill
  uint32_t to = 0;    // of the output
  AffineMap map = {};
};

struct MoveProblem {
  static constexpr std::string_view kFamily = "move";

  DataType type = DataType::kUnknown;
  uint64_t fill = 0;  // the bits of kFill's elements
  // Copies of one stage may run in any order and at the same time. A stage may read what earlier stages
  // wrote.
  std::vector<std::vector<MoveCopy>> stages;
  OperatorDesc desc;  // for the reference
};

std::unique_ptr<const Kernel> CreateMoveCpu(const MoveProblem& problem, const LowerContext& context,
                                            std::string* why_not);
std::unique_ptr<const Kernel> CreateFrameCpu(const MoveProblem& problem, const LowerContext& context,
                                             std::string* why_not);
std::unique_ptr<const Kernel> CreateMoveCuda(const MoveProblem& problem, const LowerContext& context,
                                             std::string* why_not);
std::unique_ptr<const Kernel> CreateFrameCuda(const MoveProblem& problem, const LowerContext& context,
                                              std::string* why_not);
std::unique_ptr<const Kernel> CreateMoveReference(const MoveProblem& problem, const LowerContext& context,
                                                  std::string* why_not);

}  // namespace anydml
