// GATHER, GATHER_ELEMENTS, GATHER_ND and GATHER_ND1: elements or slices of the input, selected by indices.
//
// The rules, the same in every kernel:
// - a negative index of a signed type wraps once (index + size);
// - an index that is then out of range is clamped into the dimension, so that nothing outside the input is
//   read; the first such index or tuple, in row-major order of the indices, is reported if errors are
//   collected.
#pragma once

#include <span>
#include <string>

#include "ops/implementation_list.h"
#include "ops/operator.h"
#include "schema/tensor_desc.h"

namespace anydml {

std::span<const Operator> GatherOperators();

struct GatherProblem {
  static constexpr std::string_view kFamily = "gather";

  enum class Kind { kAxis, kElements, kNd };  // GATHER, GATHER_ELEMENTS, GATHER_ND1

  Kind kind = Kind::kAxis;
  const char* name = "";  // of the operator, for messages
  TensorDesc input;
  TensorDesc indices;
  TensorDesc output;
  bool wraps = false;  // negative indices count from the end
  uint32_t axis = 0;   // kAxis, kElements
  // The number of trailing dimensions that are meaningful; for the indices this includes the tuple's.
  uint32_t input_dimensions = 0;    // kNd
  uint32_t indices_dimensions = 0;  // kAxis, kNd
  uint32_t batch_dimensions = 0;    // kNd: the first of those, which input, indices and output share

  // Indices per position; for kNd the last dimension of the indices.
  uint32_t tuple_size() const { return kind == Kind::kNd ? indices.sizes[indices.rank - 1] : 1; }

  // The dimension of the input that component `c` of a tuple addresses.
  uint32_t source_dimension(uint32_t c) const {
    return kind == Kind::kNd ? input.rank - input_dimensions + batch_dimensions + c : axis;
  }
};

// The message about the tuple at coordinate `at` of the indices (without the component), one of whose indices
// is out of range. `values`: the tuple_size() indices found there; UINT64 ones as the INT64 of the same bits.
std::string DescribeBadIndex(const GatherProblem& problem, const int64_t* values, const Dimensions& at);
// The same, with the values from `indices`.
std::string DescribeBadIndex(const GatherProblem& problem, const std::byte* indices, Dimensions at);

CreateFunction<GatherProblem> CreateGatherCpu, CreateGatherReference;
CreateFunction<GatherProblem> CreateGatherCudaRows, CreateGatherCudaUnits;

}  // namespace anydml
