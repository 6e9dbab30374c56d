// Products with any strides. Few outputs with many steps are cut along k.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/cuda/tile_product.cuh"
#include "ops/gemm/plan.h"

namespace anydml {
namespace {

__device__ uint64_t BatchOffset(const GemmTiledParameters& p, const GemmOperand& matrix, uint32_t batch) {
  uint32_t inner;
  const uint32_t outer = p.inner_batch.Divide(batch, &inner);
  return outer * matrix.batch[0] + inner * matrix.batch[1];
}

__device__ float LoadAs(const void* data, uint64_t at, float) { return static_cast<const float*>(data)[at]; }
__device__ float LoadAs(const void* data, uint64_t at, __half) {
  return __half2float(static_cast<const __half*>(data)[at]);
}

// Alpha * sum + Beta * C, within the limits.
template <typename T>
__device__ void Finish(const GemmTiledParameters& p, uint32_t batch, uint32_t row, uint32_t column,
                       float sum) {
  float result = p.alpha * sum;
  if (p.has_c) {
    const uint64_t at = BatchOffset(p, p.c, batch) + row * p.c.row + column * p.c.column;
    result += p.beta * LoadAs(p.c.data, at, T());
  }
  result = p.limits.Of(result);
  const uint64_t at = BatchOffset(p, p.output, batch) + row * p.output.row + column * p.output.column;
  if (p.half_output) {
    static_cast<__half*>(p.output.data)[at] = __float2half_rn(result);
  } else {
    static_cast<float*>(p.output.data)[at] = result;
  }
}

template <typename T, uint32_t kTile>
__global__ void __launch_bounds__(kTileThreads) Multiply(const __grid_constant__ GemmTiledParameters p) {
  for (uint64_t number = blockIdx.x; number < p.plan.tiles; number += gridDim.x) {
    const TilePlace place(number, kTile, p.m, p.n, p.batches);
    const uint32_t k_begin = place.split * p.plan.steps_per_split;
    const uint32_t k_end = min(p.k - k_begin, p.plan.steps_per_split) + k_begin;
    const uint64_t a_base = BatchOffset(p, p.a, place.matrix), b_base = BatchOffset(p, p.b, place.matrix);
    RunTileProduct<float, kTile>(
        k_begin, k_end, p.a.column == 1, p.b.column != 1,
        [&](uint32_t element, uint32_t k) {
          const uint32_t row = place.row + element;
          return row < p.m ? LoadAs(p.a.data, a_base + row * p.a.row + k * p.a.column, T()) : 0.0f;
        },
        [&](uint32_t element, uint32_t k) {
          const uint32_t column = place.column + element;
          return column < p.n ? LoadAs(p.b.data, b_base + column * p.b.column + k * p.b.row, T()) : 0.0f;
        },
        [&](uint32_t row, uint32_t column, float sum) {
          row += place.row;
          column += place.column;
          if (row >= p.m || column >= p.n) return;
          if (p.parts == nullptr) return Finish<T>(p, place.matrix, row, column, sum);
          p.parts[((uint64_t{place.split} * p.batches + place.matrix) * p.m + row) * p.n + column] = sum;
        });
  }
}

template <typename T>
__global__ void __launch_bounds__(kTileThreads) AddParts(const __grid_constant__ GemmTiledParameters p) {
  WaitForPrevious();
  const uint64_t elements = uint64_t{p.batches} * p.m * p.n;
  for (uint64_t i = uint64_t{blockIdx.x} * kTileThreads + threadIdx.x; i < elements;
       i += uint64_t{gridDim.x} * kTileThreads) {
    float sum = 0;
    for (uint32_t split = 0; split < p.plan.splits; ++split) sum += p.parts[split * elements + i];
    const uint64_t row = i / p.n;
    Finish<T>(p, static_cast<uint32_t>(row / p.m), static_cast<uint32_t>(row % p.m),
              static_cast<uint32_t>(i % p.n), sum);
  }
}

class GemmTiled final : public Kernel {
 public:
  GemmTiled(const GemmProblem& problem, const SumLimits& limits, const LowerContext& context)
      : half_(problem.type == DataType::kFloat16),
        plan_(MakeGemmTiledPlan(problem, limits, *context.device)) {}

  uint64_t temporary_bytes() const override { return plan_.temporary_bytes; }

  Status Run(const KernelArguments& arguments) const override {
    GemmTiledParameters p = plan_.parameters;
    p.a.data = arguments.inputs[0].data;
    p.b.data = arguments.inputs[1].data;
    if (p.has_c) p.c.data = arguments.inputs[2].data;
    p.output.data = arguments.outputs[0].data;
    if (p.plan.splits > 1) p.parts = reinterpret_cast<float*>(arguments.temporary.data);
    KernelChain chain(arguments.stream);
    chain.Launch(half_ ? Find<__half>() : Find<float>(), plan_.grid, p);
    if (p.plan.splits > 1) chain.Launch(half_ ? AddParts<__half> : AddParts<float>, plan_.parts_grid, p);
    return {};
  }

 private:
  using Function = void (*)(GemmTiledParameters);

  template <typename T>
  Function Find() const {
    const uint32_t tile = plan_.parameters.plan.tile;
    return tile == 128 ? Multiply<T, 128> : tile == 64 ? Multiply<T, 64> : Multiply<T, 32>;
  }

  bool half_;
  GemmTiledPlan plan_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateGemmTiledCuda(const GemmProblem& problem, const LowerContext& context,
                                                  std::string* why_not) {
  SumLimits limits;
  if (!limits.Set(problem.activation)) {
    *why_not = "there is an activation other than RELU and CLIP";
    return nullptr;
  }
  return std::make_unique<GemmTiled>(problem, limits, context);
}

}  // namespace anydml
