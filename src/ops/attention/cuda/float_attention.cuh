// Shared by the kernels of FLOAT32 attention without biases and masks.
#pragma once

#include <algorithm>

#include "kernel/device_traits.h"
#include "ops/attention/cuda/join.h"
#include "ops/attention/problem.h"
#include "ops/device/cuda/kernel_chain.cuh"

namespace anydml {

struct FloatAttention {
  AttentionView query, key, value, output;
  const float* query_data;
  const float* key_data;
  const float* value_data;
  float* output_data;
  uint32_t queries, keys;
  uint32_t heads, group;
  uint32_t query_blocks;            // per head
  uint32_t columns, value_columns;  // multiples of 4
  float scale;
};

struct FloatAttentionKernel {
  void (*function)(FloatAttention);
  uint32_t queries;  // per block
  uint32_t threads;
  uint32_t shared_bytes;
};

class AttentionFloats final : public AttentionOperands {
 public:
  AttentionFloats(const AttentionProblem& problem, const FloatAttentionKernel& kernel)
      : AttentionOperands(problem, {.matrices = false}), kernel_(kernel) {
    FloatAttention& p = common_;
    p.query = problem.query;
    p.output = problem.output;
    p.queries = static_cast<uint32_t>(problem.queries);
    p.keys = static_cast<uint32_t>(problem.keys);
    p.heads = static_cast<uint32_t>(problem.heads);
    p.group = static_cast<uint32_t>(problem.group);
    p.query_blocks = (p.queries - 1) / kernel.queries + 1;
    p.columns = static_cast<uint32_t>(problem.key.columns);
    p.value_columns = static_cast<uint32_t>(problem.value.columns);
    p.scale = problem.scale;
  }

  Status Run(const KernelArguments& arguments) const override {
    RunJoins(arguments);
    FloatAttention p = common_;
    p.query_data = reinterpret_cast<const float*>(arguments.inputs[p.query.binding].data);
    SetRows(problem(), problem().key, arguments, &p.key, &p.key_data);
    SetRows(problem(), problem().value, arguments, &p.value, &p.value_data);
    p.output_data = reinterpret_cast<float*>(arguments.outputs[0].data);
    KernelChain(arguments.stream, /*all_wait=*/true)
        .Launch(kernel_.function, problem().batch * problem().heads * p.query_blocks, kernel_.threads, p,
                kernel_.shared_bytes);
    return {};
  }

 private:
  void Join(const AttentionJoin& join, const AttentionJoinMemory& memory,
            const KernelArguments& arguments) const override {
    JoinOnDevice(join, memory, is_half(), arguments.stream);
  }

  const FloatAttentionKernel kernel_;
  FloatAttention common_{};  // without addresses, and the places of keys and values
};

// Why none of them can do it; empty if those for so many columns can.
inline std::string WhyNotFloats(const AttentionProblem& problem, uint64_t most_columns) {
  constexpr uint64_t kUnit = 4;  // elements of 16 bytes, the alignment of bindings
  const AttentionView& key = RowsOf(problem, problem.key);
  const AttentionView& value = RowsOf(problem, problem.value);
  if (problem.type != DataType::kFloat32) return "the type is not FLOAT32";
  if (problem.query_bias.exists || problem.position_bias.exists || problem.mask.view.exists ||
      problem.lengths.exists) {
    return "there is a bias, a mask, or lengths";
  }
  if (std::max(problem.key.columns, problem.value.columns) > most_columns) {
    return StrCat("heads have more than ", most_columns, " columns");
  }
  if (!key.exists || !value.exists) return "past and new keys are in different tensors";
  if (!HasUnits(problem.query, problem.key.columns, kUnit) || !HasUnits(key, problem.key.columns, kUnit) ||
      !HasUnits(value, problem.value.columns, kUnit) ||
      !HasUnits(problem.output, problem.value.columns, kUnit)) {
    return "rows are not made of units of 16 bytes";
  }
  return "";
}

}  // namespace anydml
