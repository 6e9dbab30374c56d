// MULTIHEAD_ATTENTION and MULTIHEAD_ATTENTION1: softmax(Scale * Q x K^T + bias + mask) x V for every head;
// keys and values of earlier calls may precede the new ones.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ops/attention/mask.h"
#include "ops/attention/view.h"
#include "ops/implementation_list.h"
#include "ops/operator.h"

namespace anydml {

std::span<const Operator> AttentionOperators();

// The positions of tensors among the inputs and outputs.
enum class AttentionInput : uint32_t {
  kQuery,
  kKey,
  kValue,
  kStackedQueryKey,
  kStackedKeyValue,
  kStackedQueryKeyValue,
  kBias,
  kMask,
  kPositionBias,
  kPastKey,
  kPastValue,
  kPastLengths,
};
enum class AttentionOutput : uint32_t { kOutput, kPresentKey, kPresentValue };

// Keys or values: rows of each head, those of the past first, then the new ones.
struct AttentionRows {
  uint64_t columns = 1;
  AttentionView past{};     // absent: none; with lengths, the past is in `present`
  AttentionView fresh{};    // without its bias; absent: the past contains all rows
  AttentionView bias{};     // one row, added to all rows of `fresh`
  AttentionView present{};  // an output: past and new rows
};

struct AttentionProblem {
  static constexpr std::string_view kFamily = "attention";

  DataType type = DataType::kFloat32;  // or FLOAT16
  uint64_t batch = 1;
  uint64_t queries = 1;      // per batch
  uint64_t past = 0;         // number of past keys, without lengths
  uint64_t fresh = 0;        // number of new keys
  uint64_t keys = 1;         // past and new keys; with lengths the capacity
  uint64_t heads = 1;        // of queries
  uint64_t group = 1;        // query heads per head of keys and values
  AttentionView query;       // {batch, heads, queries, key.columns}
  AttentionView query_bias;  // one row
  AttentionRows key;
  AttentionRows value;
  AttentionView position_bias;  // {batch, heads, queries, keys}
  AttentionMask mask;
  AttentionLengths lengths;
  AttentionView output;  // {batch, heads, queries, value.columns}
  float scale = 1;

  uint64_t KeyHeads() const { return heads / group; }
  // Bits as in DeviceTraits::data_types.
  uint32_t data_types() const { return 1u << static_cast<uint32_t>(type); }
};

Exactness AttentionBound(const AttentionProblem& problem);

std::unique_ptr<const Kernel> CreateAttentionBlocksCpu(const AttentionProblem& problem,
                                                       const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateAttentionStepsCpu(const AttentionProblem& problem,
                                                      const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateAttentionFewCpu(const AttentionProblem& problem,
                                                    const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateAttentionFewCuda(const AttentionProblem& problem,
                                                     const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateAttentionCudnn(const AttentionProblem& problem,
                                                   const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateAttentionTilesCuda(const AttentionProblem& problem,
                                                       const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateAttentionFloatTilesCuda(const AttentionProblem& problem,
                                                            const LowerContext& context,
                                                            std::string* why_not);
std::unique_ptr<const Kernel> CreateAttentionFloatBlocksCuda(const AttentionProblem& problem,
                                                             const LowerContext& context,
                                                             std::string* why_not);
std::unique_ptr<const Kernel> CreateAttentionStepsCuda(const AttentionProblem& problem,
                                                       const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateAttentionReference(const AttentionProblem& problem,
                                                       const LowerContext& context, std::string* why_not);

}  // namespace anydml
