// FLOAT16 without biases and masks on tensor cores: a block for 128 queries of a head, whose keys and values
// come through shared memory by 64; logits and sums stay in registers (a running softmax).
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>

#include "ops/attention/cuda/join.h"
#include "ops/common/cuda_chain.cuh"
#include "ops/common/tensor_cores.cuh"

namespace anydml {
namespace {

constexpr uint32_t kWarps = 8;
constexpr uint32_t kThreads = 32 * kWarps;
constexpr uint32_t kQueries = 16 * kWarps;
constexpr uint32_t kKeys = 64;
constexpr uint32_t kStages = 2;  // tiles of keys and values in shared memory: one is used, one arrives
constexpr uint64_t kMostColumns = 128;
constexpr float kLeastScale = 0x1p-60f;
// Powers are up to 2^10: the rests of small ones are no subnormal numbers then.
constexpr float kPowerShift = 10;

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
  uint32_t query_blocks;  // of a head
  uint32_t columns, value_columns;
  float factor;  // of logits: the power of 2 is taken
};

template <uint32_t kColumns>
constexpr uint32_t SharedBytes() {
  return (kQueries + kStages * 2 * kKeys) * kColumns * 2;
}

__device__ __forceinline__ float PowerOfTwo(float x) {
  float power;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
  return power;
}

__device__ __forceinline__ uint32_t Bits(__half2 x) { return *reinterpret_cast<const uint32_t*>(&x); }

__device__ __half ToHalf(float x) { return isnan(x) ? __ushort_as_half(0x7E00) : __float2half_rn(x); }

// Starts to copy rows [first, first + kRows) of a head, and zeros for those from `end` on and for columns
// that are not there.
template <uint32_t kRows, uint32_t kColumns>
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

// Two registers of a LeftTile as the nearest halves and what is left of the numbers then: together they have
// 22 bits.
__device__ __forceinline__ void Split(float a, float b, uint32_t* high, uint32_t* low) {
  const __half2 nearest = __floats2half2_rn(a, b);
  const float2 back = __half22float2(nearest);
  *high = Bits(nearest);
  *low = Bits(__floats2half2_rn(__fsub_rn(a, back.x), __fsub_rn(b, back.y)));
}

// A warp's 16 queries. Each thread has parts of rows lane / 4 and that + 8.
template <uint32_t kColumns>
class Rows {
 public:
  __device__ Rows(SharedRows<kColumns> shared, uint32_t warp, uint32_t lane) : lane_(lane) {
#pragma unroll
    for (uint32_t k = 0; k < kColumns / 16; ++k) {
      LoadMatrices(shared.At(warp * 16 + lane % 16, k * 2 + lane / 16), query_[k].registers);
    }
  }

  // Logits of a tile of keys, without their factor.
  __device__ __forceinline__ void MultiplyKeys(SharedRows<kColumns> keys) {
#pragma unroll
    for (uint32_t n = 0; n < kKeys / 8; ++n) logits_[n] = {};
#pragma unroll
    for (uint32_t k = 0; k < kColumns / 16; ++k) {
#pragma unroll
      for (uint32_t n = 0; n < kKeys / 8; n += 2) {
        uint32_t right[4];
        LoadMatrices(keys.At(n * 8 + lane_ / 16 * 8 + lane_ % 8, k * 2 + lane_ / 8 % 2), right);
        Multiply(query_[k], right[0], right[1], &logits_[n]);
        Multiply(query_[k], right[2], right[3], &logits_[n + 1]);
      }
    }
  }

  // Of the tile's keys row lane / 4 sees the first `seen`, the other one the first `seen_below`.
  __device__ __forceinline__ void Hide(uint32_t seen, uint32_t seen_below) {
#pragma unroll
    for (uint32_t n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t key = n * 8 + lane_ % 4 * 2 + i % 2;
        if (key >= (i < 2 ? seen : seen_below)) logits_[n].x[i] = -INFINITY;
      }
    }
  }

  // Powers in place of logits.
  __device__ __forceinline__ void TakePowers(float factor) {
    float corrections[2];
#pragma unroll
    for (uint32_t r = 0; r < 2; ++r) {
      float max = max_[r];
#pragma unroll
      for (uint32_t n = 0; n < kKeys / 8; ++n) {
        max = fmaxf(max, fmaxf(logits_[n].x[2 * r], logits_[n].x[2 * r + 1]));
      }
      max = fmaxf(max, __shfl_xor_sync(~0u, max, 1));
      max = fmaxf(max, __shfl_xor_sync(~0u, max, 2));
      // As long as there is nothing but -infinity, powers are 0.
      const float base = max == -INFINITY ? 0.0f : __fmul_rn(max, factor);
      corrections[r] = max == max_[r] ? 1.0f : PowerOfTwo(__fmaf_rn(max_[r], factor, -base));
      max_[r] = max;
      float sum = 0;
#pragma unroll
      for (uint32_t n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (uint32_t i = 2 * r; i < 2 * r + 2; ++i) {
          logits_[n].x[i] = PowerOfTwo(__fmaf_rn(logits_[n].x[i], factor, __fsub_rn(kPowerShift, base)));
          sum = __fadd_rn(sum, logits_[n].x[i]);
        }
      }
      sums_[r] = __fmaf_rn(sums_[r], corrections[r], sum);
    }
    if (!__any_sync(~0u, corrections[0] != 1 || corrections[1] != 1)) return;
#pragma unroll
    for (uint32_t n = 0; n < kColumns / 8; ++n) {
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) results_[n].x[i] = __fmul_rn(results_[n].x[i], corrections[i / 2]);
    }
  }

  // Adds powers times values.
  __device__ __forceinline__ void AddValues(SharedRows<kColumns> values) {
#pragma unroll
    for (uint32_t k = 0; k < kKeys / 16; ++k) {
      LeftTile high, low;
#pragma unroll
      for (uint32_t i = 0; i < 4; ++i) {
        const float* const pair = logits_[2 * k + i / 2].x + i % 2 * 2;
        Split(pair[0], pair[1], &high.registers[i], &low.registers[i]);
      }
#pragma unroll
      for (uint32_t n = 0; n < kColumns / 8; n += 4) {
        uint32_t right[2][4];
#pragma unroll
        for (uint32_t j = 0; j < 2; ++j) {
          LoadTransposed(values.At(k * 16 + lane_ % 16, n + 2 * j + lane_ / 16), right[j]);
        }
#pragma unroll
        for (uint32_t j = 0; j < 4; ++j) {
          Multiply(high, right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1], &results_[n + j]);
        }
#pragma unroll
        for (uint32_t j = 0; j < 4; ++j) {
          Multiply(low, right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1], &results_[n + j]);
        }
      }
    }
  }

  // Row r (0: lane / 4, 1: that + 8) to the output.
  __device__ __forceinline__ void Store(uint32_t r, uint32_t columns, __half* to) {
    const float factor = __fdiv_rn(1.0f, sums_[r]);
#pragma unroll
    for (uint32_t n = 0; n < kColumns / 8; ++n) {
      if (n * 8 >= columns) break;
      const float a = __fmul_rn(results_[n].x[2 * r], factor),
                  b = __fmul_rn(results_[n].x[2 * r + 1], factor);
      *reinterpret_cast<__half2*>(to + n * 8 + lane_ % 4 * 2) = __halves2half2(ToHalf(a), ToHalf(b));
    }
  }

  // Of the four threads of a row.
  __device__ __forceinline__ void MergeSums() {
#pragma unroll
    for (uint32_t r = 0; r < 2; ++r) {
      sums_[r] = __fadd_rn(sums_[r], __shfl_xor_sync(~0u, sums_[r], 1));
      sums_[r] = __fadd_rn(sums_[r], __shfl_xor_sync(~0u, sums_[r], 2));
    }
  }

 private:
  uint32_t lane_;
  LeftTile query_[kColumns / 16];
  SumTile logits_[kKeys / 8];
  SumTile results_[kColumns / 8] = {};
  float max_[2] = {-INFINITY, -INFINITY};
  float sums_[2] = {};
};

template <uint32_t kColumns>
__global__ void __launch_bounds__(kThreads) AttendTiles(const __grid_constant__ Parameters p) {
  extern __shared__ __align__(16) unsigned char shared[];
  constexpr uint32_t kTileBytes = kKeys * kColumns * 2;
  const auto start = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  const SharedRows<kColumns> shared_queries{start};
  const uint32_t tiles = start + kQueries * kColumns * 2;
  const auto keys_of = [&](uint64_t tile) {
    return SharedRows<kColumns>{tiles + static_cast<uint32_t>(tile % kStages) * 2 * kTileBytes};
  };
  const auto values_of = [&](uint64_t tile) {
    return SharedRows<kColumns>{keys_of(tile).address + kTileBytes};
  };

  const uint32_t head = blockIdx.x / p.query_blocks;
  // The last queries see the most keys: they begin.
  const uint32_t block = p.query_blocks - 1 - blockIdx.x % p.query_blocks;
  const uint64_t b = head / p.heads, h = head % p.heads, key_head = h / p.group;
  const uint64_t first_query = uint64_t{block} * kQueries;
  const uint64_t past = p.lengths.exists ? p.lengths.Of(p.lengths_data, b) : 0;
  const uint64_t end_query = first_query + kQueries < p.queries ? first_query + kQueries : p.queries;
  const uint64_t end_key = p.lengths.exists ? past + end_query : p.keys;

  const __half* const query = p.query_data + p.query.At(b, h, 0);
  const __half* const key = p.key_data + p.key.At(b, key_head, 0);
  const __half* const value = p.value_data + p.value.At(b, key_head, 0);
  const auto start_tile = [&](uint64_t tile) {
    StartRows<kKeys>(keys_of(tile), key, p.key.row, tile * kKeys, end_key, p.columns);
    StartRows<kKeys>(values_of(tile), value, p.value.row, tile * kKeys, end_key, p.value_columns);
  };
  StartRows<kQueries>(shared_queries, query, p.query.row, first_query, p.queries, p.columns);
  start_tile(0);
  EndCopies();
  __syncthreads();

  const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Rows<kColumns> rows(shared_queries, warp, lane);
  const uint64_t warp_query = first_query + warp * 16, own_query = warp_query + lane / 4;
  // How many of the keys from `first` on a query sees, at most a tile.
  const auto seen_by = [&](uint64_t q, uint64_t first) {
    const uint64_t seen = p.lengths.exists ? past + q + 1 : p.keys;
    return seen <= first ? 0 : static_cast<uint32_t>(seen - first < kKeys ? seen - first : kKeys);
  };
  const uint64_t tile_count = (end_key + kKeys - 1) / kKeys;
  for (uint64_t tile = 0; tile < tile_count; ++tile) {
    if (tile > 0) {
      EndCopies();
      __syncthreads();  // the tile is there, and nobody uses the one before it any longer
    }
    if (tile + 1 < tile_count) start_tile(tile + 1);
    rows.MultiplyKeys(keys_of(tile));
    const uint64_t first_key = tile * kKeys;
    if (seen_by(warp_query, first_key) < kKeys) {
      rows.Hide(seen_by(own_query, first_key), seen_by(own_query + 8, first_key));
    }
    rows.TakePowers(p.factor);
    rows.AddValues(values_of(tile));
  }

  rows.MergeSums();
#pragma unroll
  for (uint32_t r = 0; r < 2; ++r) {
    const uint64_t q = own_query + r * 8;
    if (q < p.queries) rows.Store(r, p.value_columns, p.output_data + p.output.At(b, h, q));
  }
}

class AttentionTiles final : public AttentionOperands {
 public:
  explicit AttentionTiles(const AttentionProblem& problem) : AttentionOperands(problem, {.matrices = false}) {
    constexpr float kLog2E = 0x1.715476p0f;
    Parameters& p = common_;
    p.query = problem.query;
    p.output = problem.output;
    p.lengths = problem.lengths;
    p.queries = problem.queries;
    p.keys = problem.keys;
    p.heads = static_cast<uint32_t>(problem.heads);
    p.group = static_cast<uint32_t>(problem.group);
    p.query_blocks = static_cast<uint32_t>((problem.queries + kQueries - 1) / kQueries);
    p.columns = static_cast<uint32_t>(problem.key.columns);
    p.value_columns = static_cast<uint32_t>(problem.value.columns);
    p.factor = problem.scale * kLog2E;
  }

  Status Run(const KernelArguments& arguments) const override {
    RunJoins(arguments);
    Parameters p = common_;
    p.query_data = DataOf(arguments.inputs, p.query);
    SetRows(problem().key, arguments, &p.key, &p.key_data);
    SetRows(problem().value, arguments, &p.value, &p.value_data);
    p.output_data = reinterpret_cast<__half*>(arguments.outputs[0].data);
    p.lengths_data = WeightsMemory(arguments).lengths;
    const uint64_t blocks = problem().batch * problem().heads * p.query_blocks;
    KernelChain chain(arguments.stream);
    if (std::max(p.columns, p.value_columns) <= 64) {
      chain.Launch(AttendTiles<64>, blocks, kThreads, p, SharedBytes<64>());
    } else {
      chain.Launch(AttendTiles<kMostColumns>, blocks, kThreads, p, SharedBytes<kMostColumns>());
    }
    return {};
  }

  // Where rows of the past and new ones are together once the present outputs are written; those of one
  // kind alone are where they were.
  static bool AreInPresent(const AttentionProblem& problem, const AttentionRows& rows) {
    return problem.lengths.exists || (rows.past.exists && rows.fresh.exists);
  }
  static const AttentionView& ViewOf(const AttentionProblem& problem, const AttentionRows& rows) {
    return AreInPresent(problem, rows) ? rows.present : rows.fresh.exists ? rows.fresh : rows.past;
  }

 private:
  void Join(const AttentionJoin& join, const AttentionJoinMemory& memory,
            const KernelArguments& arguments) const override {
    JoinOnDevice(join, memory, is_half(), arguments.stream);
  }

  static const __half* DataOf(std::span<const Buffer> buffers, const AttentionView& view) {
    return reinterpret_cast<const __half*>(buffers[view.binding].data);
  }
  void SetRows(const AttentionRows& rows, const KernelArguments& arguments, AttentionView* view,
               const __half** data) const {
    *view = ViewOf(problem(), rows);
    const bool is_output = AreInPresent(problem(), rows);
    *data = is_output ? DataOf(arguments.outputs, *view) : DataOf(arguments.inputs, *view);
  }

  Parameters common_{};  // but for addresses, and where keys and values are
};

// Whether rows can be moved by units of so many elements.
bool HasUnits(const AttentionView& view, uint64_t columns, uint64_t elements) {
  return view.column == 1 && (columns | view.offset | view.batch | view.head | view.row) % elements == 0;
}

std::string WhyNot(const AttentionProblem& problem) {
  constexpr uint64_t kMostBlocks = uint64_t{1} << 30;
  constexpr uint64_t kUnit = 8;  // 16 bytes, as bindings are aligned
  const AttentionView& key = AttentionTiles::ViewOf(problem, problem.key);
  const AttentionView& value = AttentionTiles::ViewOf(problem, problem.value);
  if (problem.type != DataType::kFloat16) return "the type is not FLOAT16";
  if (problem.query_bias.exists || problem.position_bias.exists || problem.mask.view.exists) {
    return "there is a bias or a mask";
  }
  if (!(problem.scale >= kLeastScale)) return "the scale is not positive";
  if (std::max(problem.key.columns, problem.value.columns) > kMostColumns) {
    return StrCat("heads have more than ", kMostColumns, " columns");
  }
  if (!key.exists || !value.exists) return "past and new keys are in different tensors";
  if (!HasUnits(problem.query, problem.key.columns, kUnit) || !HasUnits(key, problem.key.columns, kUnit) ||
      !HasUnits(value, problem.value.columns, kUnit) || !HasUnits(problem.output, problem.value.columns, 2)) {
    return "rows are not made of units of 16 bytes";
  }
  if (problem.batch * problem.heads > kMostBlocks / ((problem.queries + kQueries - 1) / kQueries)) {
    return StrCat("there are more than ", kMostBlocks, " blocks of queries");
  }
  return "";
}

}  // namespace

std::unique_ptr<const Kernel> CreateAttentionTilesCuda(const AttentionProblem& problem, const LowerContext&,
                                                       std::string* why_not) {
  *why_not = WhyNot(problem);
  if (!why_not->empty()) return nullptr;
  return std::make_unique<AttentionTiles>(problem);
}

}  // namespace anydml
