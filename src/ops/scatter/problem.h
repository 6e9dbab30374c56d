// The problem of a scatter kernel.
//
// The rules, the same in every kernel:
// - of several updates of one element the latest in row-major order of the updates wins;
// - a negative index of a signed type wraps once (index + size);
// - a tuple that is then out of range is dropped with its whole slice; the first such tuple is reported if
//   errors are collected;
// - input and output may be the same memory if their layouts are identical: then nothing is copied.
#pragma once

#include <string>

#include "ops/implementation_list.h"
#include "schema/tensor_desc.h"

namespace anydml {

struct ScatterProblem {
  static constexpr std::string_view kFamily = "scatter";

  enum class Kind { kNd, kElements };
  // Whether input and output are the same memory. This is known only when an operator runs; composite kernels
  // have a part for each case.
  enum class Memory { kUnknown, kApart, kSame };

  Kind kind = Kind::kNd;
  TensorDesc input;
  TensorDesc indices;
  TensorDesc updates;
  TensorDesc output;
  bool wraps = false;               // negative indices count from the end
  uint32_t input_dimensions = 0;    // kNd
  uint32_t indices_dimensions = 0;  // kNd
  uint32_t axis = 0;                // kElements
  Memory memory = Memory::kUnknown;

  // Indices per update; for kNd the last dimension of the indices.
  uint32_t tuple_size() const { return kind == Kind::kNd ? indices.sizes[indices.rank - 1] : 1; }

  // The dimension of the output that component `c` of a tuple addresses.
  uint32_t target_dimension(uint32_t c) const {
    return kind == Kind::kNd ? output.rank - input_dimensions + c : axis;
  }
};

// The message about the tuple at coordinate `at` of the indices (without the component), one of whose indices
// is out of range. `values`: the tuple_size() indices found there; UINT64 ones as the INT64 of the same bits.
std::string DescribeBadTuple(const ScatterProblem& problem, const int64_t* values, Dimensions at);
// The same, with the values from `indices`.
std::string DescribeBadTuple(const ScatterProblem& problem, const std::byte* indices, Dimensions at);

// The implementations, fastest first, the reference last (lower.cc), and their factories.
CreateFunction<ScatterProblem> CreateScatterTyped, CreateScatterReference;
CreateFunction<ScatterProblem> CreateScatterCudaByMemory, CreateScatterCudaSmall, CreateScatterCudaLines,
    CreateScatterCudaTiles, CreateScatterCudaGather, CreateScatterCudaClaims;
BetterNotFunction<ScatterProblem> ScatterCudaSmallBetterNot, ScatterCudaLinesBetterNot,
    ScatterCudaTilesBetterNot, ScatterCudaGatherBetterNot;

}  // namespace anydml
