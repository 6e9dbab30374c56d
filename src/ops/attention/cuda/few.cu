// Up to eight queries of a head of keys, as when tokens are generated one by one: keys and values are read
// once, where they are, and logits stay in registers.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "ops/attention/cuda/join.h"
#include "ops/common/cuda_chain.cuh"
#include "ops/softmax/cuda/rows.cuh"

namespace anydml {
namespace {

constexpr uint32_t kWarps = 4;
constexpr uint32_t kThreads = 32 * kWarps;
constexpr uint64_t kMostQueries = 8, kMostColumns = 128;

struct Parameters {
  AttentionJoin key, value;
  AttentionWeights weights;
  AttentionView query, output;
  const void* query_data;
  const void* key_past;
  const void* key_fresh;
  const void* value_past;
  const void* value_fresh;
  const int32_t* lengths;
  void* output_data;
  float* parts;  // [head of keys][split][query][columns of values, maximum, sum]; null: keys are not split
  uint32_t key_heads, group;
  uint32_t queries;  // of a group: rows
  uint32_t splits;
  uint64_t keys_per_split;
  float scale;
};

__device__ float ToNumber(float x) { return x; }
__device__ float ToNumber(__half x) { return __half2float(x); }

__device__ void PutNumber(float x, float* to) { *to = isnan(x) ? __uint_as_float(0x7FC00000u) : x; }
__device__ void PutNumber(float x, __half* to) {
  *to = isnan(x) ? __ushort_as_half(0x7E00) : __float2half_rn(x);
}

// 32 numbers of every lane: lane i gets the sum of all lanes' number i.
__device__ float SumAcross(float (&x)[32], uint32_t lane) {
#pragma unroll
  for (uint32_t half = 16; half > 0; half /= 2) {
    const bool upper = (lane & half) != 0;
#pragma unroll
    for (uint32_t i = 0; i < half; ++i) {
      const float sent = upper ? x[i] : x[i + half];
      const float kept = upper ? x[i + half] : x[i];
      x[i] = __fadd_rn(kept, __shfl_xor_sync(~0u, sent, half));
    }
  }
  return x[0];
}

// Row `r` of a head, new or not.
template <typename T>
struct HeadRows {
  const T* past;
  const T* fresh;
  uint64_t past_rows, past_stride, fresh_stride, past_column, fresh_column;

  __device__ HeadRows(const AttentionJoin& join, const void* past_data, const void* fresh_data,
                      const int32_t* lengths, uint64_t b, uint64_t h)
      : past(static_cast<const T*>(past_data) + join.past_view.At(b, h, 0)),
        fresh(static_cast<const T*>(fresh_data) + join.fresh_view.At(b, h, 0)),
        past_rows(join.lengths.exists ? join.lengths.Of(lengths, b) : join.past),
        past_stride(join.past_view.row),
        fresh_stride(join.fresh_view.row),
        past_column(join.past_view.column),
        fresh_column(join.fresh_view.column) {}

  // Columns lane, lane + 32 ... of the row; 0 behind the last.
  template <uint32_t kColumns>
  __device__ void Load(uint64_t r, uint32_t lane, uint32_t columns, float (&to)[kColumns]) const {
    const bool is_past = r < past_rows;
    const T* const row = is_past ? past + r * past_stride : fresh + (r - past_rows) * fresh_stride;
    const uint64_t step = is_past ? past_column : fresh_column;
#pragma unroll
    for (uint32_t j = 0; j < kColumns; ++j) {
      const uint32_t c = lane + 32 * j;
      to[j] = c < columns ? ToNumber(row[c * step]) : 0.0f;
    }
  }
};

// A block for a part of the keys of a head; a warp for kKeys of them at a time. Lane i has the weight of key
// i / kQueries for query i % kQueries, all lanes their columns of the results.
template <typename T, uint32_t kQueries, uint32_t kColumns>
__global__ void __launch_bounds__(kThreads) AttendFew(const __grid_constant__ Parameters p) {
  constexpr uint32_t kKeys = 32 / kQueries;
  __shared__ float all_results[kWarps][kQueries][32 * kColumns];
  __shared__ float all_maxima[kWarps][kQueries], all_sums[kWarps][kQueries];
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t split = blockIdx.x % p.splits, head = blockIdx.x / p.splits;
  const uint64_t h = head % p.key_heads, b = head / p.key_heads;
  const auto columns = static_cast<uint32_t>(p.key.columns);
  const auto value_columns = static_cast<uint32_t>(p.value.columns);
  const auto sequence = static_cast<uint32_t>(p.weights.queries);

  float query[kQueries][kColumns];
#pragma unroll
  for (uint32_t m = 0; m < kQueries; ++m) {
#pragma unroll
    for (uint32_t j = 0; j < kColumns; ++j) {
      const uint32_t c = lane + 32 * j;
      const bool there = m < p.queries && c < columns;
      const uint64_t at = there ? p.query.At(b, h * p.group + m / sequence, m % sequence, c) : 0;
      query[m][j] = there ? ToNumber(static_cast<const T*>(p.query_data)[at]) : 0.0f;
    }
  }
  const HeadRows<T> keys(p.key, p.key_past, p.key_fresh, p.lengths, b, h);
  const HeadRows<T> values(p.value, p.value_past, p.value_fresh, p.lengths, b, h);
  // The last query sees the most keys.
  const uint64_t all_keys = KeysOf(p.weights, p.lengths, b, sequence - 1);
  const uint64_t own_keys = KeysOf(p.weights, p.lengths, b, lane % kQueries % sequence);
  const uint64_t begin = split * p.keys_per_split;
  const uint64_t end = begin + p.keys_per_split < all_keys ? begin + p.keys_per_split : all_keys;

  float results[kQueries][kColumns] = {};
  float max = softmax::Larger::kNone, sum = 0;
  for (uint64_t first = begin + warp * kKeys; first < end; first += kWarps * kKeys) {
    float logits[32];
#pragma unroll
    for (uint32_t k = 0; k < kKeys; ++k) {
      float row[kColumns];
      keys.Load(first + k < end ? first + k : end - 1, lane, columns, row);
#pragma unroll
      for (uint32_t m = 0; m < kQueries; ++m) {
        float product = 0;
#pragma unroll
        for (uint32_t j = 0; j < kColumns; ++j) product = __fmaf_rn(query[m][j], row[j], product);
        logits[k * kQueries + m] = product;
      }
    }
    const float logit = __fmul_rn(p.scale, SumAcross(logits, lane));
    const uint64_t key = first + lane / kQueries;
    const bool counts = key < end && key < own_keys && !(logit == softmax::Larger::kNone);
    float new_max = counts && logit > max ? logit : max;
#pragma unroll
    for (uint32_t distance = 16; distance >= kQueries; distance /= 2) {
      const float other = __shfl_xor_sync(~0u, new_max, distance);
      new_max = other > new_max ? other : new_max;
    }
    const float correction = new_max == max ? 1.0f : softmax::PowerOf<float>(__fsub_rn(max, new_max));
    const float weight = counts ? softmax::PowerOf<float>(__fsub_rn(logit, new_max)) : 0.0f;
    max = new_max;
    sum = __fmaf_rn(sum, correction, weight);
#pragma unroll
    for (uint32_t m = 0; m < kQueries; ++m) {
      const float factor = __shfl_sync(~0u, correction, m);
#pragma unroll
      for (uint32_t j = 0; j < kColumns; ++j) results[m][j] = __fmul_rn(results[m][j], factor);
    }
#pragma unroll
    for (uint32_t k = 0; k < kKeys; ++k) {
      float row[kColumns];
      values.Load(first + k < end ? first + k : end - 1, lane, value_columns, row);
#pragma unroll
      for (uint32_t m = 0; m < kQueries; ++m) {
        const float own = __shfl_sync(~0u, weight, k * kQueries + m);
        // Values of keys that a query does not see are not looked at.
        if (own == 0.0f) continue;
#pragma unroll
        for (uint32_t j = 0; j < kColumns; ++j) results[m][j] = __fmaf_rn(own, row[j], results[m][j]);
      }
    }
  }

#pragma unroll
  for (uint32_t distance = 16; distance >= kQueries; distance /= 2) {
    sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, distance));
  }
  if (lane < kQueries) {
    all_maxima[warp][lane] = max;
    all_sums[warp][lane] = sum;
  }
#pragma unroll
  for (uint32_t m = 0; m < kQueries; ++m) {
#pragma unroll
    for (uint32_t j = 0; j < kColumns; ++j) all_results[warp][m][lane + 32 * j] = results[m][j];
  }
  __syncthreads();
  for (uint32_t m = warp; m < p.queries; m += kWarps) {
    float largest = softmax::Larger::kNone, total = 0;
    for (uint32_t w = 0; w < kWarps; ++w) largest = fmaxf(largest, all_maxima[w][m]);
    float factors[kWarps];
#pragma unroll
    for (uint32_t w = 0; w < kWarps; ++w) {
      // A warp that has seen nothing has nothing to add.
      factors[w] =
          all_maxima[w][m] == largest ? 1.0f : softmax::PowerOf<float>(__fsub_rn(all_maxima[w][m], largest));
      total = __fmaf_rn(all_sums[w][m], factors[w], total);
    }
    float* const part =
        p.parts == nullptr ? nullptr : p.parts + (uint64_t{blockIdx.x} * p.queries + m) * (value_columns + 2);
    for (uint32_t c = lane; c < value_columns; c += 32) {
      float result = 0;
#pragma unroll
      for (uint32_t w = 0; w < kWarps; ++w) result = __fmaf_rn(all_results[w][m][c], factors[w], result);
      if (part != nullptr) {
        part[c] = result;
      } else {
        const uint64_t at = p.output.At(b, h * p.group + m / sequence, m % sequence, c);
        PutNumber(__fdiv_rn(result, total), static_cast<T*>(p.output_data) + at);
      }
    }
    if (part != nullptr && lane == 0) {
      part[value_columns] = largest;
      part[value_columns + 1] = total;
    }
  }
}

// A warp for a query: the parts of its keys together.
template <typename T>
__global__ void __launch_bounds__(32) MergeParts(const __grid_constant__ Parameters p) {
  WaitForPrevious();
  const uint32_t m = blockIdx.x % p.queries, head = blockIdx.x / p.queries;
  const uint64_t h = head % p.key_heads, b = head / p.key_heads;
  const auto columns = static_cast<uint32_t>(p.value.columns);
  const auto sequence = static_cast<uint32_t>(p.weights.queries);
  const uint64_t step = uint64_t{p.queries} * (columns + 2);
  const float* const parts = p.parts + uint64_t{head} * p.splits * step + uint64_t{m} * (columns + 2);
  float largest = softmax::Larger::kNone;
  for (uint32_t s = 0; s < p.splits; ++s) largest = fmaxf(largest, parts[s * step + columns]);
  for (uint32_t c = threadIdx.x; c < columns; c += 32) {
    float result = 0, total = 0;
    for (uint32_t s = 0; s < p.splits; ++s) {
      const float* const part = parts + s * step;
      const float max = part[columns];
      const float factor = max == largest ? 1.0f : softmax::PowerOf<float>(__fsub_rn(max, largest));
      result = __fmaf_rn(part[c], factor, result);
      total = __fmaf_rn(part[columns + 1], factor, total);
    }
    const uint64_t at = p.output.At(b, h * p.group + m / sequence, m % sequence, c);
    PutNumber(__fdiv_rn(result, total), static_cast<T*>(p.output_data) + at);
  }
}

using Function = void (*)(Parameters);

template <typename T, uint32_t kQueries>
Function FunctionFor(uint64_t columns) {
  return columns <= 64 ? AttendFew<T, kQueries, 2> : AttendFew<T, kQueries, 4>;
}

template <typename T>
Function FunctionFor(uint64_t queries, uint64_t columns) {
  return queries == 1   ? FunctionFor<T, 1>(columns)
         : queries <= 4 ? FunctionFor<T, 4>(columns)
                        : FunctionFor<T, 8>(columns);
}

class AttentionFew final : public AttentionOperands {
 public:
  AttentionFew(const AttentionProblem& problem, const LowerContext& context)
      : AttentionOperands(problem, {.matrices = false}) {
    Parameters& p = common_;
    p.key = key().join;
    p.value = value().join;
    p.weights = weights();
    p.query = problem.query;
    p.output = problem.output;
    p.key_heads = static_cast<uint32_t>(problem.KeyHeads());
    p.group = static_cast<uint32_t>(problem.group);
    p.queries = static_cast<uint32_t>(problem.group * problem.queries);
    p.scale = problem.scale;
    const uint64_t heads = problem.batch * problem.KeyHeads();
    // Enough blocks for the GPU, each with enough keys to be worth it.
    constexpr uint64_t kLeastKeys = 256;
    const uint64_t wanted = (uint64_t{4} * context.device->multiprocessors + heads - 1) / heads;
    const uint64_t most = (problem.keys + kLeastKeys - 1) / kLeastKeys;
    const uint64_t splits = std::clamp<uint64_t>(std::min(wanted, most), 1, 64);
    p.keys_per_split = (problem.keys + splits - 1) / splits;
    p.splits = static_cast<uint32_t>((problem.keys + p.keys_per_split - 1) / p.keys_per_split);
    heads_ = heads;
    if (p.splits > 1) {
      parts_ =
          AddScratch("parts", heads * p.splits * p.queries * (problem.value.columns + 2) * sizeof(float));
    }
    const uint64_t columns = std::max(problem.key.columns, problem.value.columns);
    function_ = is_half() ? FunctionFor<__half>(p.queries, columns) : FunctionFor<float>(p.queries, columns);
  }

  Status Run(const KernelArguments& arguments) const override {
    RunJoins(arguments);
    Parameters p = common_;
    const auto data = [&](const AttentionView& view, bool is_output) -> const void* {
      if (!view.exists) return nullptr;
      return (is_output ? arguments.outputs : arguments.inputs)[view.binding].data;
    };
    p.query_data = data(p.query, false);
    p.key_past = data(p.key.past_view, p.key.lengths.exists);
    p.key_fresh = data(p.key.fresh_view, false);
    p.value_past = data(p.value.past_view, p.value.lengths.exists);
    p.value_fresh = data(p.value.fresh_view, false);
    p.lengths = WeightsMemory(arguments).lengths;
    p.output_data = arguments.outputs[0].data;
    p.parts = p.splits > 1 ? parts_.In<float>(arguments.temporary) : nullptr;
    KernelChain chain(arguments.stream);
    chain.Launch(function_, heads_ * p.splits, kThreads, p);
    if (p.splits > 1) {
      chain.Launch(is_half() ? MergeParts<__half> : MergeParts<float>, heads_ * p.queries, 32, p);
    }
    return {};
  }

 private:
  void Join(const AttentionJoin& join, const AttentionJoinMemory& memory,
            const KernelArguments& arguments) const override {
    JoinOnDevice(join, memory, is_half(), arguments.stream);
  }

  Parameters common_{};  // but for addresses
  uint64_t heads_;       // of keys, in all batches
  Function function_;
  ScratchLayout::Piece parts_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateAttentionFewCuda(const AttentionProblem& problem,
                                                     const LowerContext& context, std::string* why_not) {
  constexpr uint64_t kMostBlocks = uint64_t{1} << 24;
  const uint64_t queries = problem.group * problem.queries;
  const uint64_t columns = std::max(problem.key.columns, problem.value.columns);
  if (queries > kMostQueries) {
    *why_not = StrCat("there are more than ", kMostQueries, " queries for a head of keys");
  } else if (columns > kMostColumns) {
    *why_not = StrCat("heads have more than ", kMostColumns, " columns");
  } else if (problem.query_bias.exists || problem.position_bias.exists || problem.mask.view.exists) {
    *why_not = "there is a bias or a mask";
  } else if (problem.batch * problem.KeyHeads() > kMostBlocks) {
    *why_not = StrCat("there are more than ", kMostBlocks, " heads");
  } else {
    return std::make_unique<AttentionFew>(problem, context);
  }
  return nullptr;
}

}  // namespace anydml
