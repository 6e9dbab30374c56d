// Up to eight queries per key head, as when tokens are generated one by one: keys and values are read once,
// in place, in units of 16 bytes, and logits stay in registers.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "ops/attention/cuda/join.h"
#include "ops/attention/cuda/running_softmax.cuh"
#include "ops/device/cuda/kernel_chain.cuh"

namespace anydml {
namespace {

constexpr uint32_t kWarps = 4;
constexpr uint32_t kThreads = 32 * kWarps;
constexpr uint64_t kMostQueries = 8;
constexpr uint64_t kUnitBytes = 16;  // that a thread reads of a row; bindings are aligned to it

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
  float* parts;  // [key head][split][query][columns of values, maximum, sum]; null: keys are not split
  uint32_t key_heads, group;
  uint32_t queries;  // per group: rows
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

// For all groups of a block.
template <uint32_t kGroups, uint32_t kQueries, uint32_t kColumns>
struct GroupResults {
  float results[kGroups][kQueries][kColumns];
  float maxima[kGroups][kQueries], sums[kGroups][kQueries];

  template <uint32_t kUnit>
  __device__ void Put(const RunningSoftmax<kQueries, kUnit>& own, uint32_t group, uint32_t column) {
#pragma unroll
    for (uint32_t m = 0; m < kQueries; ++m) {
      if (column == 0) {
        maxima[group][m] = own.maxima[m];
        sums[group][m] = own.sums[m];
      }
#pragma unroll
      for (uint32_t j = 0; j < kUnit; ++j) results[group][m][column + j] = own.results[m][j];
    }
  }

  // A warp merges query `m`: to the output, or to a part that is merged with others.
  template <typename T>
  __device__ void Merge(const Parameters& p, uint64_t b, uint64_t h, uint32_t m, uint32_t lane) const {
    float largest = softmax::Larger::kNone, total = 0;
    for (uint32_t g = 0; g < kGroups; ++g) largest = fmaxf(largest, maxima[g][m]);
    float factors[kGroups];
#pragma unroll
    for (uint32_t g = 0; g < kGroups; ++g) {
      // A group that has seen no key contributes nothing.
      factors[g] = maxima[g][m] == largest ? 1.0f : softmax::PowerOf<float>(__fsub_rn(maxima[g][m], largest));
      total = __fmaf_rn(sums[g][m], factors[g], total);
    }
    const auto sequence = static_cast<uint32_t>(p.weights.queries);
    float* const part =
        p.parts == nullptr ? nullptr : p.parts + (uint64_t{blockIdx.x} * p.queries + m) * (kColumns + 2);
    for (uint32_t c = lane; c < kColumns; c += 32) {
      float result = 0;
#pragma unroll
      for (uint32_t g = 0; g < kGroups; ++g) result = __fmaf_rn(results[g][m][c], factors[g], result);
      if (part != nullptr) {
        part[c] = result;
      } else {
        const uint64_t at = p.output.At(b, h * p.group + m / sequence, m % sequence, c);
        PutNumber(__fdiv_rn(result, total), static_cast<T*>(p.output_data) + at);
      }
    }
    if (part == nullptr || lane != 0) return;
    part[kColumns] = largest;
    part[kColumns + 1] = total;
  }
};

// A block processes a part of the keys of a head. Groups of kLanes threads, each with 16 bytes of a row, take
// keys in turn and have their own running softmax.
template <typename T, uint32_t kQueries, uint32_t kLanes>
__global__ void __launch_bounds__(kThreads) AttendFew(const __grid_constant__ Parameters p) {
  constexpr uint32_t kUnit = kUnitBytes / sizeof(T), kGroups = kThreads / kLanes;
  constexpr uint32_t kAtATime = kQueries == 1 ? 8 : 4;  // keys of a group
  __shared__ GroupResults<kGroups, kQueries, kLanes * kUnit> groups;
  const uint32_t group = threadIdx.x / kLanes, column = threadIdx.x % kLanes * kUnit;
  const uint32_t split = blockIdx.x % p.splits, head = blockIdx.x / p.splits;
  const uint64_t h = head % p.key_heads, b = head / p.key_heads;
  const auto sequence = static_cast<uint32_t>(p.weights.queries);

  WaitForPrevious();
  float query[kQueries][kUnit];
#pragma unroll
  for (uint32_t m = 0; m < kQueries; ++m) {
#pragma unroll
    for (uint32_t j = 0; j < kUnit; ++j) {
      const bool there = m < p.queries;
      const uint64_t at = there ? p.query.At(b, h * p.group + m / sequence, m % sequence, column + j) : 0;
      query[m][j] = there ? ToNumber(static_cast<const T*>(p.query_data)[at]) : 0.0f;
    }
  }
  const HeadRows<T> keys(p.key, p.key_past, p.key_fresh, p.lengths, b, h);
  const HeadRows<T> values(p.value, p.value_past, p.value_fresh, p.lengths, b, h);
  // The last query sees the most keys; with lengths, each earlier one sees one key less.
  const uint64_t all_keys = KeysOf(p.weights, p.lengths, b, sequence - 1);
  const uint64_t begin = split * p.keys_per_split;
  const uint64_t end = begin + p.keys_per_split < all_keys ? begin + p.keys_per_split : all_keys;

  RunningSoftmax<kQueries, kUnit> own;
  for (uint64_t first = begin; first < end; first += kAtATime * kGroups) {
    uint4 key_bits[kAtATime] = {}, value_bits[kAtATime] = {};
#pragma unroll
    for (uint32_t u = 0; u < kAtATime; ++u) {
      const uint64_t key = first + u * kGroups + group;
      if (key >= end) continue;
      key_bits[u] = keys.Load(key, column);
      value_bits[u] = values.Load(key, column);
    }
    float weights[kAtATime][kQueries];
#pragma unroll
    for (uint32_t u = 0; u < kAtATime; ++u) {
      const uint64_t key = first + u * kGroups + group;
      float row[kUnit];
      Unpack(key_bits[u], row);
#pragma unroll
      for (uint32_t m = 0; m < kQueries; ++m) {
        float product = 0;
#pragma unroll
        for (uint32_t j = 0; j < kUnit; ++j) product = __fmaf_rn(query[m][j], row[j], product);
#pragma unroll
        for (uint32_t distance = kLanes / 2; distance > 0; distance /= 2) {
          product = __fadd_rn(product, __shfl_xor_sync(~0u, product, distance));
        }
        const uint64_t hidden = p.weights.lengths.exists ? sequence - 1 - m % sequence : 0;
        const bool sees = key < end && key + hidden < all_keys;
        weights[u][m] = sees ? __fmul_rn(p.scale, product) : softmax::Larger::kNone;
      }
    }
    own.TakeWeights(weights);
    own.AddValues(weights, value_bits);
  }

  LetNextStart();
  groups.Put(own, group, column);
  __syncthreads();
  for (uint32_t m = threadIdx.x / 32; m < p.queries; m += kWarps) {
    groups.template Merge<T>(p, b, h, m, threadIdx.x % 32);
  }
}

// A warp per query merges the parts of its keys.
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
Function FunctionFor(uint64_t lanes) {
  return lanes == 8    ? AttendFew<T, kQueries, 8>
         : lanes == 16 ? AttendFew<T, kQueries, 16>
                       : AttendFew<T, kQueries, 32>;
}

template <typename T>
Function FunctionFor(uint64_t queries, uint64_t columns) {
  const uint64_t lanes = columns * sizeof(T) / kUnitBytes;
  return queries == 1   ? FunctionFor<T, 1>(lanes)
         : queries <= 4 ? FunctionFor<T, 4>(lanes)
                        : FunctionFor<T, 8>(lanes);
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
    // Enough blocks for the GPU, each with enough keys to be worthwhile.
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
    const uint64_t columns = problem.key.columns;
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
    KernelChain chain(arguments.stream, /*all_wait=*/true);
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

  Parameters common_{};  // without addresses
  uint64_t heads_;       // key heads, in all batches
  Function function_;
  ScratchLayout::Piece parts_;
};

bool HasUnits(const AttentionView& view, uint64_t elements) {
  return !view.exists ||
         (view.column == 1 && (view.offset | view.batch | view.head | view.row) % elements == 0);
}
bool HasUnits(const AttentionProblem& problem, const AttentionRows& rows, uint64_t elements) {
  return HasUnits(rows.fresh, elements) &&
         HasUnits(problem.lengths.exists ? rows.present : rows.past, elements);
}

}  // namespace

std::unique_ptr<const Kernel> CreateAttentionFewCuda(const AttentionProblem& problem,
                                                     const LowerContext& context, std::string* why_not) {
  constexpr uint64_t kMostBlocks = uint64_t{1} << 24;
  const uint64_t unit = kUnitBytes / (BitSize(problem.type) / 8);
  const uint64_t columns = problem.key.columns;
  if (problem.group * problem.queries > kMostQueries) {
    *why_not = StrCat("there are more than ", kMostQueries, " queries for a head of keys");
  } else if (problem.value.columns != columns ||
             (columns != 8 * unit && columns != 16 * unit && columns != 32 * unit)) {
    *why_not = "rows do not have 128, 256 or 512 bytes";
  } else if (!HasUnits(problem, problem.key, unit) || !HasUnits(problem, problem.value, unit)) {
    *why_not = "rows are not made of units of 16 bytes";
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
