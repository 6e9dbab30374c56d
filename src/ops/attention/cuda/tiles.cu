// FLOAT16 attention without biases and masks on tensor cores: keys and values of a head go through shared
// memory in tiles of 64; logits and sums stay in registers (a running softmax). A warp has 16 queries. A
// block has 128 of them or, if that would make few blocks, 16 whose tiles the warps share; their results are
// merged at the end.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>

#include "ops/attention/cuda/join.h"
#include "ops/attention/cuda/tile_rows.cuh"
#include "ops/device/cuda/kernel_chain.cuh"

namespace anydml {
namespace {

using namespace attention_tiles;

constexpr uint32_t kStages = 2;  // tiles of keys and values in shared memory: one is used while the other
                                 // arrives
constexpr uint64_t kMostColumns = 128;

struct Parameters {
  AttentionView query, key, value, output;
  const __half* query_data;
  const __half* key_data;
  const __half* value_data;
  __half* output_data;
  AttentionLengths lengths;
  const int32_t* lengths_data;
  uint64_t queries, keys;
  uint32_t heads, group;
  uint32_t query_blocks;  // per head
  uint32_t columns, value_columns;
  float factor;  // of logits, for powers of 2
};

// A block's warps: kKeyWarps for each 16 queries, which take turns with tiles of keys.
template <uint32_t kColumns_, uint32_t kQueryWarps_, uint32_t kKeyWarps_>
struct Shape {
  static constexpr uint32_t kColumns = kColumns_;
  static constexpr uint32_t kQueryWarps = kQueryWarps_;
  static constexpr uint32_t kKeyWarps = kKeyWarps_;
  static constexpr uint32_t kThreads = 32 * kQueryWarps * kKeyWarps;
  static constexpr uint32_t kQueries = kQueriesOfWarp * kQueryWarps;
  // Minimum per multiprocessor.
  static constexpr uint32_t kBlocks = kColumns == 64 && kQueryWarps == 8 ? 2 : 1;
  static constexpr uint32_t kTileBytes = kKeys * kColumns * 2;
  static constexpr uint32_t kStageBytes = kKeyWarps * 2 * kTileBytes;

  static uint32_t SharedBytes(uint64_t keys) {
    const bool in_one = keys <= kKeys * kKeyWarps;
    return kQueries * kColumns * 2 + (in_one ? 1 : kStages) * kStageBytes;
  }
};

// Starts to copy rows [first, first + kRows) of a head, with zeros for rows from `end` on and for missing
// columns.
template <uint32_t kRows, uint32_t kThreads, uint32_t kColumns>
__device__ __forceinline__ void StartRows(SharedRows<kColumns> to, const __half* head, uint64_t stride,
                                          uint64_t first, uint64_t end, uint32_t columns) {
  constexpr uint32_t kUnits = SharedRows<kColumns>::kUnits;
  static_assert(kRows * kUnits % kThreads == 0);
#pragma unroll
  for (uint32_t i = 0; i < kRows * kUnits / kThreads; ++i) {
    const uint32_t number = threadIdx.x + i * kThreads;
    const uint32_t row = number / kUnits, unit = number % kUnits;
    const bool exists = first + row < end && unit * 8 < columns;
    StartCopy(to.At(row, unit), exists ? head + (first + row) * stride + unit * 8 : head, exists);
  }
}

// Recomputes NaNs in columns [first_column, end_column) of a query's output, which sees `keys` keys, with one
// warp, number by number. Tensor cores multiply values of unseen keys by 0, and others by remainders of
// powers, which are 0 or negative: both turn infinities into NaNs. Rarely called, so it is short rather than
// fast.
__device__ __noinline__ void ReplaceNans(const Parameters& p, uint64_t b, uint64_t h, uint64_t q,
                                         uint64_t keys, uint32_t first_column, uint32_t end_column) {
  constexpr uint32_t kNumbers = kMostColumns / 32;
  const uint32_t lane = threadIdx.x % 32;
  const __half* const query = p.query_data + p.query.At(b, h, q);
  const __half* const key = p.key_data + p.key.At(b, h / p.group, 0);
  const __half* const value = p.value_data + p.value.At(b, h / p.group, 0);
  __half* const to = p.output_data + p.output.At(b, h, q);
  const auto logit = [&](uint64_t k) {
    float sum = 0;
#pragma unroll 1
    for (uint32_t c = 0; c < p.columns; ++c) {
      sum = __fmaf_rn(__half2float(query[c]), __half2float(key[k * p.key.row + c]), sum);
    }
    return sum;
  };
  float max = -INFINITY;
  for (uint64_t k = lane; k < keys; k += 32) max = fmaxf(max, logit(k));
  for (uint32_t distance = 16; distance > 0; distance /= 2) {
    max = fmaxf(max, __shfl_xor_sync(~0u, max, distance));
  }
  const float base = max == -INFINITY ? 0.0f : __fmul_rn(max, p.factor);
  float results[kNumbers] = {}, sum = 0;
  for (uint64_t first = 0; first < keys; first += 32) {
    const uint64_t own = first + lane;
    const float power = own < keys ? PowerOfTwo(__fmaf_rn(logit(own), p.factor, -base)) : 0.0f;
    sum = __fadd_rn(sum, power);
#pragma unroll 1
    for (uint32_t j = 0; j < 32 && first + j < keys; ++j) {
      const float weight = __shfl_sync(~0u, power, j);
      const __half* const row = value + (first + j) * p.value.row;
      for (uint32_t i = 0, c = first_column + lane; i < kNumbers && c < end_column; ++i, c += 32) {
        results[i] = __fmaf_rn(weight, __half2float(row[c]), results[i]);
      }
    }
  }
  for (uint32_t distance = 16; distance > 0; distance /= 2) {
    sum = __fadd_rn(sum, __shfl_xor_sync(~0u, sum, distance));
  }
  for (uint32_t i = 0, c = first_column + lane; i < kNumbers && c < end_column; ++i, c += 32) {
    if (__hisnan(to[c])) to[c] = ToHalf(__fdiv_rn(results[i], sum));
  }
}

template <typename S>
__global__ void __launch_bounds__(S::kThreads, S::kBlocks) AttendTiles(const __grid_constant__ Parameters p) {
  extern __shared__ __align__(16) unsigned char shared[];
  constexpr uint32_t kColumns = S::kColumns;
  const auto start = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const SharedRows<kColumns> shared_queries{start};
  const uint32_t tiles = start + S::kQueries * kColumns * 2;
  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const uint32_t query_warp = warp / S::kKeyWarps, key_warp = warp % S::kKeyWarps;
  // Of a round's tiles, one for each of the warps that share queries.
  const auto keys_of = [&](uint64_t round, uint32_t tile) {
    return SharedRows<kColumns>{tiles + static_cast<uint32_t>(round % kStages) * S::kStageBytes +
                                tile * 2 * S::kTileBytes};
  };
  const auto values_of = [&](uint64_t round, uint32_t tile) {
    return SharedRows<kColumns>{keys_of(round, tile).address + S::kTileBytes};
  };

  const uint32_t head = blockIdx.x / p.query_blocks;
  // The last queries see the most keys, so they start first.
  const uint32_t block = p.query_blocks - 1 - blockIdx.x % p.query_blocks;
  const uint64_t b = head / p.heads, h = head % p.heads, key_head = h / p.group;
  const uint64_t first_query = uint64_t{block} * S::kQueries;
  WaitForPrevious();
  const uint64_t past = p.lengths.exists ? p.lengths.Of(p.lengths_data, b) : 0;
  const uint64_t end_query = first_query + S::kQueries < p.queries ? first_query + S::kQueries : p.queries;
  const uint64_t end_key = p.lengths.exists ? past + end_query : p.keys;
  const uint64_t tile_count = (end_key + kKeys - 1) / kKeys;
  const uint64_t round_count = (tile_count + S::kKeyWarps - 1) / S::kKeyWarps;

  const __half* const query = p.query_data + p.query.At(b, h, 0);
  const __half* const key = p.key_data + p.key.At(b, key_head, 0);
  const __half* const value = p.value_data + p.value.At(b, key_head, 0);
  const auto start_round = [&](uint64_t round) {
#pragma unroll
    for (uint32_t i = 0; i < S::kKeyWarps; ++i) {
      const uint64_t tile = round * S::kKeyWarps + i;
      if (tile >= tile_count) break;
      StartRows<kKeys, S::kThreads>(keys_of(round, i), key, p.key.row, tile * kKeys, end_key, p.columns);
      StartRows<kKeys, S::kThreads>(values_of(round, i), value, p.value.row, tile * kKeys, end_key,
                                    p.value_columns);
    }
  };
  StartRows<S::kQueries, S::kThreads>(shared_queries, query, p.query.row, first_query, p.queries, p.columns);
  start_round(0);
  EndCopies();
  __syncthreads();

  Rows<kColumns> rows(shared_queries, query_warp, lane);
  const uint64_t warp_query = first_query + query_warp * kQueriesOfWarp, own_query = warp_query + lane / 4;
  // How many of the keys from `first` on a query sees, at most a tile.
  const auto seen_by = [&](uint64_t q, uint64_t first) {
    const uint64_t seen = p.lengths.exists ? past + q + 1 : p.keys;
    return seen <= first ? 0 : static_cast<uint32_t>(seen - first < kKeys ? seen - first : kKeys);
  };
  for (uint64_t round = 0; round < round_count; ++round) {
    if (round > 0) {
      EndCopies();
      __syncthreads();  // the round's tiles have arrived, and the previous ones are no longer used
    }
    if (round + 1 < round_count) start_round(round + 1);
    const uint64_t tile = round * S::kKeyWarps + key_warp, first_key = tile * kKeys;
    if (tile >= tile_count) continue;
    rows.MultiplyKeys(keys_of(round, key_warp));
    if (seen_by(warp_query, first_key) < kKeys) {
      rows.Hide(seen_by(own_query, first_key), seen_by(own_query + 8, first_key));
    }
    rows.TakePowers(p.factor);
    rows.AddValues(values_of(round, key_warp));
  }
  LetNextStart();

  rows.MergeSums();
  if constexpr (S::kKeyWarps > 1) {
    static_assert(S::kQueryWarps * S::kKeyWarps * Rows<kColumns>::kBytesOfPart <= S::kStageBytes);
    constexpr uint32_t kOfWarp = Rows<kColumns>::kBytesOfPart / sizeof(float4);
    auto* const parts = reinterpret_cast<float4*>(shared + S::kQueries * kColumns * 2);
    __syncthreads();  // tiles are no longer used
    rows.Leave(parts + warp * kOfWarp);
    __syncthreads();
    rows.template Merge<S::kKeyWarps>(parts + query_warp * S::kKeyWarps * kOfWarp, key_warp, p.factor);
  }
  bool has_nan = false;
#pragma unroll
  for (uint32_t r = 0; r < 2; ++r) {
    const uint64_t q = own_query + r * 8;
    if (q >= p.queries) continue;
    const bool found =
        rows.template Store<S::kKeyWarps>(r, key_warp, p.value_columns, p.output_data + p.output.At(b, h, q));
    has_nan = has_nan || found;
  }
  if (!__any_sync(~0u, has_nan)) return;
  __syncwarp();  // other lanes' results are read
  constexpr uint32_t kColumnsOfPart = kColumns / S::kKeyWarps;
  const uint32_t first_column = key_warp * kColumnsOfPart;
  const uint32_t end_column = min(first_column + kColumnsOfPart, p.value_columns);
  for (uint64_t q = warp_query; q < warp_query + kQueriesOfWarp && q < p.queries; ++q) {
    ReplaceNans(p, b, h, q, p.lengths.exists ? past + q + 1 : p.keys, first_column, end_column);
  }
}

// How a problem is cut: by 128 queries if that gives at least one block per multiprocessor, or if shared
// memory is too small for the other cuts.
enum class Cut { kLong, kFour, kTwo };

bool IsNarrow(const AttentionProblem& problem) {
  return std::max(problem.key.columns, problem.value.columns) <= 64;
}

Cut CutFor(const AttentionProblem& problem, const DeviceTraits& device) {
  constexpr uint64_t kLong = 8 * kQueriesOfWarp;
  const uint64_t blocks = problem.batch * problem.heads * ((problem.queries + kLong - 1) / kLong);
  if (blocks >= device.multiprocessors || problem.keys <= kKeys) return Cut::kLong;
  const auto fits = [&](uint32_t bytes) { return bytes <= device.shared_bytes_per_block; };
  const bool narrow = IsNarrow(problem);
  if (narrow && problem.keys > 2 * kKeys && fits(Shape<64, 1, 4>::SharedBytes(problem.keys)))
    return Cut::kFour;
  return fits(narrow ? Shape<64, 1, 2>::SharedBytes(problem.keys)
                     : Shape<kMostColumns, 1, 2>::SharedBytes(problem.keys))
             ? Cut::kTwo
             : Cut::kLong;
}

class AttentionTiles final : public AttentionOperands {
 public:
  AttentionTiles(const AttentionProblem& problem, const DeviceTraits& device)
      : AttentionOperands(problem, {.matrices = false}), cut_(CutFor(problem, device)) {
    constexpr float kLog2E = 0x1.715476p0f;
    Parameters& p = common_;
    p.query = problem.query;
    p.output = problem.output;
    p.lengths = problem.lengths;
    p.queries = problem.queries;
    p.keys = problem.keys;
    p.heads = static_cast<uint32_t>(problem.heads);
    p.group = static_cast<uint32_t>(problem.group);
    p.columns = static_cast<uint32_t>(problem.key.columns);
    p.value_columns = static_cast<uint32_t>(problem.value.columns);
    p.factor = problem.scale * kLog2E;
  }

  Status Run(const KernelArguments& arguments) const override {
    RunJoins(arguments);
    Parameters p = common_;
    p.query_data = reinterpret_cast<const __half*>(arguments.inputs[p.query.binding].data);
    SetRows(problem(), problem().key, arguments, &p.key, &p.key_data);
    SetRows(problem(), problem().value, arguments, &p.value, &p.value_data);
    p.output_data = reinterpret_cast<__half*>(arguments.outputs[0].data);
    p.lengths_data = WeightsMemory(arguments).lengths;
    const bool narrow = IsNarrow(problem());
    if (cut_ == Cut::kLong) {
      narrow ? Launch<Shape<64, 8, 1>>(p, arguments) : Launch<Shape<kMostColumns, 8, 1>>(p, arguments);
    } else if (cut_ == Cut::kFour) {
      Launch<Shape<64, 1, 4>>(p, arguments);
    } else {
      narrow ? Launch<Shape<64, 1, 2>>(p, arguments) : Launch<Shape<kMostColumns, 1, 2>>(p, arguments);
    }
    return {};
  }

 private:
  template <typename S>
  void Launch(Parameters p, const KernelArguments& arguments) const {
    p.query_blocks = static_cast<uint32_t>((p.queries + S::kQueries - 1) / S::kQueries);
    const uint64_t blocks = problem().batch * problem().heads * p.query_blocks;
    KernelChain(arguments.stream, /*all_wait=*/true)
        .Launch(AttendTiles<S>, blocks, S::kThreads, p, S::SharedBytes(p.keys));
  }

  void Join(const AttentionJoin& join, const AttentionJoinMemory& memory,
            const KernelArguments& arguments) const override {
    JoinOnDevice(join, memory, is_half(), arguments.stream);
  }

  const Cut cut_;
  Parameters common_{};  // without addresses, the places of keys and values, and blocks
};

std::string WhyNot(const AttentionProblem& problem) {
  constexpr uint64_t kMostBlocks = uint64_t{1} << 30;
  constexpr uint64_t kUnit = 8;  // elements of 16 bytes, the alignment of bindings
  const AttentionView& key = RowsOf(problem, problem.key);
  const AttentionView& value = RowsOf(problem, problem.value);
  if (problem.type != DataType::kFloat16) return "the type is not FLOAT16";
  if (problem.query_bias.exists || problem.position_bias.exists || problem.mask.view.exists) {
    return "there is a bias or a mask";
  }
  if (!(problem.scale >= kLeastAttentionScale)) return "the scale is not positive";
  if (std::max(problem.key.columns, problem.value.columns) > kMostColumns) {
    return StrCat("heads have more than ", kMostColumns, " columns");
  }
  if (!key.exists || !value.exists) return "past and new keys are in different tensors";
  if (!HasUnits(problem.query, problem.key.columns, kUnit) || !HasUnits(key, problem.key.columns, kUnit) ||
      !HasUnits(value, problem.value.columns, kUnit) || !HasUnits(problem.output, problem.value.columns, 2)) {
    return "rows are not made of units of 16 bytes";
  }
  if (problem.batch * problem.heads >
      kMostBlocks / ((problem.queries + kQueriesOfWarp - 1) / kQueriesOfWarp)) {
    return StrCat("there are more than ", kMostBlocks, " blocks of queries");
  }
  return "";
}

}  // namespace

std::unique_ptr<const Kernel> CreateAttentionTilesCuda(const AttentionProblem& problem,
                                                       const LowerContext& context, std::string* why_not) {
  *why_not = WhyNot(problem);
  if (!why_not->empty()) return nullptr;
  return std::make_unique<AttentionTiles>(problem, *context.device);
}

}  // namespace anydml
