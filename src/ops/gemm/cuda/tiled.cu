// Any strides: tiles of both operands come through shared memory, sums stay in registers. Few and deep
// outputs are cut along k; the parts' sums are added up in a fixed order.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "kernel/scratch_layout.h"
#include "ops/common/cuda_chain.cuh"
#include "ops/common/cuda_nest.cuh"
#include "ops/gemm/problem.h"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 256;  // 16 by 16, each with its part of a tile
constexpr uint32_t kSteps = 16;     // along k at a time

struct Matrix {
  void* data;
  uint64_t batch[2];
  uint64_t row, column;
};

struct Parameters {
  Matrix a, b, c, output;
  float* parts;  // sums of parts [part][batch][m][n]; null: k is not cut
  uint32_t m, n, k;
  uint32_t splits, steps_per_split;
  uint32_t tile_columns;  // tiles of the output side by side
  uint64_t tiles;
  uint32_t batches;
  FastDivisor inner_batch;
  float alpha, beta;
  bool half, half_output, has_c;
};

__device__ uint64_t BatchOffset(const Parameters& p, const Matrix& matrix, uint32_t batch) {
  uint32_t inner;
  const uint32_t outer = p.inner_batch.Divide(batch, &inner);
  return outer * matrix.batch[0] + inner * matrix.batch[1];
}

__device__ float LoadAs(const void* data, uint64_t at, float) { return static_cast<const float*>(data)[at]; }
__device__ float LoadAs(const void* data, uint64_t at, __half) {
  return __half2float(static_cast<const __half*>(data)[at]);
}

// activation comes elsewhere: Alpha * sum + Beta * C.
template <typename T>
__device__ void Finish(const Parameters& p, uint32_t batch, uint32_t row, uint32_t column, float sum) {
  float result = p.alpha * sum;
  if (p.has_c) {
    const uint64_t at = BatchOffset(p, p.c, batch) + row * p.c.row + column * p.c.column;
    result += p.beta * LoadAs(p.c.data, at, T());
  }
  const uint64_t at = BatchOffset(p, p.output, batch) + row * p.output.row + column * p.output.column;
  if (p.half_output) {
    static_cast<__half*>(p.output.data)[at] = __float2half_rn(result);
  } else {
    static_cast<float*>(p.output.data)[at] = result;
  }
}

// A kTile x kSteps tile of an operand on its way to shared memory. `stride` leads to the next row (column) of
// the output, `step` along k.
template <typename T, uint32_t kTile>
struct Fetcher {
  static constexpr uint32_t kCount = kTile * kSteps / kThreads;

  float values[kCount];

  // Neighbouring threads read neighbours in memory.
  __device__ static void Place(bool along_k, uint32_t i, uint32_t* element, uint32_t* step) {
    const uint32_t number = threadIdx.x + i * kThreads;
    *element = along_k ? number / kSteps : number % kTile;
    *step = along_k ? number % kSteps : number / kTile;
  }

  __device__ void Fetch(const void* data, uint64_t base, uint64_t stride, uint64_t step_stride, bool along_k,
                        uint32_t first, uint32_t limit, uint32_t k, uint32_t k_end) {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) {
      uint32_t element, step;
      Place(along_k, i, &element, &step);
      const bool inside = first + element < limit && k + step < k_end;
      values[i] =
          inside ? LoadAs(data, base + (first + element) * stride + (k + step) * step_stride, T()) : 0.0f;
    }
  }

  __device__ void Put(bool along_k, float (*to)[kTile + 4]) const {
#pragma unroll
    for (uint32_t i = 0; i < kCount; ++i) {
      uint32_t element, step;
      Place(along_k, i, &element, &step);
      to[step][element] = values[i];
    }
  }
};

template <typename T, uint32_t kTile>
__global__ void __launch_bounds__(kThreads) Multiply(const __grid_constant__ Parameters p) {
  constexpr uint32_t kPer = kTile / 16;              // rows, and columns, of a thread
  constexpr uint32_t kVector = kPer < 4 ? kPer : 4;  // that are neighbours
  constexpr uint32_t kGroups = kPer / kVector;
  __shared__ alignas(16) float shared_a[2][kSteps][kTile + 4];
  __shared__ alignas(16) float shared_b[2][kSteps][kTile + 4];
  const uint32_t x = threadIdx.x % 16, y = threadIdx.x / 16;
  const bool a_along_k = p.a.column == 1, b_along_k = p.b.column != 1;
  for (uint64_t number = blockIdx.x; number < p.tiles; number += gridDim.x) {
    // Tiles of one part of k and one matrix follow each other.
    uint64_t rest = number;
    const uint32_t per_matrix = p.tile_columns * ((p.m + kTile - 1) / kTile);
    const auto tile = static_cast<uint32_t>(rest % per_matrix);
    rest /= per_matrix;
    const auto batch = static_cast<uint32_t>(rest % p.batches);
    const auto split = static_cast<uint32_t>(rest / p.batches);
    const uint32_t row = tile / p.tile_columns * kTile, column = tile % p.tile_columns * kTile;
    const uint32_t k_begin = split * p.steps_per_split;
    const uint32_t k_end = p.k - k_begin < p.steps_per_split ? p.k : k_begin + p.steps_per_split;
    const uint64_t a_base = BatchOffset(p, p.a, batch), b_base = BatchOffset(p, p.b, batch);
    float sums[kPer][kPer] = {};
    Fetcher<T, kTile> a, b;
    const auto fetch = [&](uint32_t k) {
      a.Fetch(p.a.data, a_base, p.a.row, p.a.column, a_along_k, row, p.m, k, k_end);
      b.Fetch(p.b.data, b_base, p.b.column, p.b.row, b_along_k, column, p.n, k, k_end);
    };
    fetch(k_begin);
    uint32_t buffer = 0;
    for (uint32_t k = k_begin; k < k_end; k += kSteps, buffer ^= 1) {
      a.Put(a_along_k, shared_a[buffer]);
      b.Put(b_along_k, shared_b[buffer]);
      __syncthreads();
      // The other buffer was read before the last barrier.
      if (k + kSteps < k_end) fetch(k + kSteps);
#pragma unroll
      for (uint32_t step = 0; step < kSteps; ++step) {
        float rows[kPer], columns[kPer];
#pragma unroll
        for (uint32_t g = 0; g < kGroups; ++g) {
#pragma unroll
          for (uint32_t v = 0; v < kVector; ++v) {
            rows[g * kVector + v] = shared_a[buffer][step][g * 64 + y * kVector + v];
            columns[g * kVector + v] = shared_b[buffer][step][g * 64 + x * kVector + v];
          }
        }
#pragma unroll
        for (uint32_t i = 0; i < kPer; ++i) {
#pragma unroll
          for (uint32_t j = 0; j < kPer; ++j) sums[i][j] = __fmaf_rn(rows[i], columns[j], sums[i][j]);
        }
      }
    }
    __syncthreads();  // before the next tile's first Put
#pragma unroll
    for (uint32_t i = 0; i < kPer; ++i) {
#pragma unroll
      for (uint32_t j = 0; j < kPer; ++j) {
        const uint32_t r = row + i / kVector * 64 + y * kVector + i % kVector;
        const uint32_t c = column + j / kVector * 64 + x * kVector + j % kVector;
        if (r >= p.m || c >= p.n) continue;
        if (p.parts != nullptr) {
          p.parts[((uint64_t{split} * p.batches + batch) * p.m + r) * p.n + c] = sums[i][j];
        } else {
          Finish<T>(p, batch, r, c, sums[i][j]);
        }
      }
    }
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads) AddParts(const __grid_constant__ Parameters p) {
  WaitForPrevious();
  const uint64_t elements = uint64_t{p.batches} * p.m * p.n;
  for (uint64_t i = uint64_t{blockIdx.x} * kThreads + threadIdx.x; i < elements;
       i += uint64_t{gridDim.x} * kThreads) {
    float sum = 0;
    for (uint32_t split = 0; split < p.splits; ++split) sum += p.parts[split * elements + i];
    const uint64_t row = i / p.n;
    Finish<T>(p, static_cast<uint32_t>(row / p.m), static_cast<uint32_t>(row % p.m),
              static_cast<uint32_t>(i % p.n), sum);
  }
}

class GemmTiled final : public Kernel {
 public:
  GemmTiled(const GemmProblem& problem, const LowerContext& context) {
    Parameters& p = common_;
    const auto matrix = [](const GemmMatrix& from) {
      return Matrix{nullptr, {from.batch[0], from.batch[1]}, from.row, from.column};
    };
    p.a = matrix(problem.a);
    p.b = matrix(problem.b);
    p.output = matrix(problem.output);
    p.has_c = problem.c.has_value();
    if (p.has_c) p.c = matrix(*problem.c);
    p.m = static_cast<uint32_t>(problem.m);
    p.n = static_cast<uint32_t>(problem.n);
    p.k = static_cast<uint32_t>(problem.k);
    p.alpha = problem.alpha;
    p.beta = problem.beta;
    p.half = problem.type == DataType::kFloat16;
    p.half_output = problem.output_type == DataType::kFloat16;
    p.batches = static_cast<uint32_t>(problem.Batches());
    p.inner_batch = FastDivisor(static_cast<uint32_t>(problem.batch[1]));
    ChooseTile(context.device->multiprocessors);
    const uint64_t elements = problem.Batches() * problem.m * problem.n;
    blocks_ = std::min<uint64_t>(p.tiles, uint64_t{1} << 30);
    if (p.splits > 1) parts_ = layout_.Add("sums of parts", p.splits * elements * sizeof(float));
    add_blocks_ = std::min<uint64_t>((elements + kThreads - 1) / kThreads, 65536);
  }

  uint64_t temporary_bytes() const override { return layout_.bytes(); }

  Status Run(const KernelArguments& arguments) const override {
    Parameters p = common_;
    p.a.data = arguments.inputs[0].data;
    p.b.data = arguments.inputs[1].data;
    if (p.has_c) p.c.data = arguments.inputs[2].data;
    p.output.data = arguments.outputs[0].data;
    if (p.splits > 1) p.parts = parts_.In<float>(arguments.temporary);
    KernelChain chain(arguments.stream);
    const auto multiply = [&]<typename T>(T) {
      switch (tile_) {
        case 128:
          return chain.Launch(Multiply<T, 128>, blocks_, kThreads, p);
        case 64:
          return chain.Launch(Multiply<T, 64>, blocks_, kThreads, p);
        default:
          return chain.Launch(Multiply<T, 32>, blocks_, kThreads, p);
      }
    };
    p.half ? multiply(__half()) : multiply(0.0f);
    if (p.splits > 1) chain.Launch(p.half ? AddParts<__half> : AddParts<float>, add_blocks_, kThreads, p);
    return {};
  }

 private:
  // The largest tile that gives every multiprocessor one; parts of k where even the smallest does not.
  void ChooseTile(uint32_t multiprocessors) {
    Parameters& p = common_;
    const auto tiles = [&](uint32_t tile) {
      return uint64_t{p.batches} * ((p.m + tile - 1) / tile) * ((p.n + tile - 1) / tile);
    };
    tile_ = 128;
    while (tile_ > 32 && (tiles(tile_) < multiprocessors || std::min(p.m, p.n) <= tile_ / 2)) tile_ /= 2;
    constexpr uint32_t kLeastSteps = 256;
    const uint64_t wanted = 2 * multiprocessors / tiles(tile_);
    p.splits =
        static_cast<uint32_t>(std::clamp<uint64_t>(std::min<uint64_t>(wanted, p.k / kLeastSteps), 1, 64));
    p.steps_per_split = (p.k + p.splits - 1) / p.splits;
    p.steps_per_split = (p.steps_per_split + kSteps - 1) / kSteps * kSteps;
    p.splits = (p.k + p.steps_per_split - 1) / p.steps_per_split;
    p.tile_columns = (p.n + tile_ - 1) / tile_;
    p.tiles = tiles(tile_) * p.splits;
  }

  Parameters common_{};  // but for addresses
  uint32_t tile_ = 0;
  uint64_t blocks_ = 0, add_blocks_ = 0;
  ScratchLayout layout_;
  ScratchLayout::Piece parts_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateGemmTiledCuda(const GemmProblem& problem, const LowerContext& context,
                                                  std::string* why_not) {
  if (!problem.activation.instructions.empty()) {
    *why_not = "there is an activation";
    return nullptr;
  }
  return std::make_unique<GemmTiled>(problem, context);
}

}  // namespace anydml
