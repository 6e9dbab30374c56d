// The steps of attention on CPUs apart from the products.
#pragma once

#include "ops/attention/operands.h"
#include "ops/numbers/load_store.h"

namespace anydml {

bool HasNan(const float* numbers, uint64_t count);

class AttentionRowLoops {
 public:
  AttentionRowLoops(DataType type, uint32_t threads);

  void Join(const AttentionJoin& join, const AttentionJoinMemory& memory, Executor* executor) const;

  // Replaces the products x by the weights of query `q` of head `h`: the softmax of `scale` * x. There are
  // `count` products; weights are 0 for keys that the query does not see.
  void Weigh(const AttentionWeights& weights, const AttentionWeightsMemory& memory, uint64_t b, uint64_t h,
             uint64_t q, float scale, uint64_t count, float* x) const;

  // Stores numbers as elements of the type; NaNs become canonical. May change the numbers.
  void StoreRow(float* numbers, uint64_t count, uint64_t at, uint64_t stride, std::byte* to) const;

  // Recomputes those of `count` elements of the type that are NaN: sums of `keys` weights times rows of
  // values, which are `values_stride` apart.
  void ReplaceNans(const float* weights, uint64_t keys, const float* values, uint64_t values_stride,
                   uint64_t count, uint64_t at, uint64_t stride, std::byte* to) const;

 private:
  void JoinRow(const AttentionJoin& join, const AttentionJoinMemory& memory, uint64_t b, uint64_t h,
               uint64_t r) const;
  void MoveRow(const AttentionJoin& join, const std::byte* from, uint64_t at, uint64_t stride,
               const AttentionJoinMemory& memory, uint64_t copy_at) const;
  void AddBias(const AttentionJoin& join, const AttentionJoinMemory& memory, uint64_t from, uint64_t bias_at,
               uint64_t copy_at, uint64_t present_at) const;

  DataType type_;
  uint32_t threads_;
  LoadBlock load_;
  StoreBlock store_;
};

}  // namespace anydml
