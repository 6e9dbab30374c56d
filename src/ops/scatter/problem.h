// What a scatter kernel is made for.
//
// The rules, the same in every kernel:
// - of several updates of one element the latest in row-major order of the updates wins;
// - a negative index of a signed type wraps once (index + size);
// - what is out of range then is dropped, with all of its slice; the first such
//   tuple is reported when somebody listens;
// - input and output may be the same memory when their layouts are identical:
//   then nothing is copied.
#pragma once

#include <string>

#include "ops/implementation_list.h"
#include "schema/tensor_desc.h"

namespace anydml {

struct ScatterProblem {
  static constexpr std::string_view kFamily = "scatter";

  enum class Kind { kNd, kElements };
  // Whether input and output are the same memory. It is known when an operator runs; kernels that are made
  // of one for each case ask for those.
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

// The sentence about the tuple at coordinate `at` of the indices (without the component), one
// of whose indices is out of range. `values`: the indices found there, tuple_size() of them;
// those of type UINT64 as the INT64 of the same bits.
std::string DescribeBadTuple(const ScatterProblem& problem, const int64_t* values, Dimensions at);
// The same, with the values that are in `indices`.
std::string DescribeBadTuple(const ScatterProblem& problem, const std::byte* indices, Dimensions at);

// The implementations, fastest first, the reference last (lower.cc), and their create functions.
CreateFunction<ScatterProblem> CreateScatterTyped, CreateScatterReference;
CreateFunction<ScatterProblem> CreateScatterCudaByMemory, CreateScatterCudaSmall, CreateScatterCudaLines,
    CreateScatterCudaTiles, CreateScatterCudaGather, CreateScatterCudaClaims;
BetterNotFunction<ScatterProblem> ScatterCudaSmallBetterNot, ScatterCudaLinesBetterNot,
    ScatterCudaTilesBetterNot, ScatterCudaGatherBetterNot;

}  // namespace anydml
