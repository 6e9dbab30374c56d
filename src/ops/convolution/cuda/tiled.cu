// A convolution as a product of filters with windows that are read from the input as they are needed. Deep
// ones with few outputs are cut along channels and taps.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "kernel/composite.h"
#include "ops/common/cuda_chain.cuh"
#include "ops/common/cuda_nest.cuh"
#include "ops/convolution/problem.h"
#include "ops/gemm/cuda/tile_product.cuh"
#include "ops/operator_table.h"

namespace anydml {
namespace {

struct Parameters {
  const void* input;
  const void* filter;
  const void* bias;
  void* output;
  float* parts;  // sums of parts [part][matrix][channel][position]; null: the product is not cut
  ConvolutionWindow windows[kMaxSpatial];
  ConvolutionTensor input_strides, filter_strides, output_strides;
  uint64_t filter_group, filter_offset, bias_stride;
  uint32_t groups, matrices;
  uint32_t input_channels, output_channels;
  uint32_t positions, k;
  FastDivisor taps[kMaxSpatial], outputs[kMaxSpatial];
  TilePlan plan;
  bool backward, half_output;
};

__device__ float LoadAs(const void* data, uint64_t at, float) { return static_cast<const float*>(data)[at]; }
__device__ float LoadAs(const void* data, uint64_t at, __half) {
  return __half2float(static_cast<const __half*>(data)[at]);
}

// A number as three coordinates and what is left of it.
__device__ uint32_t Split(const FastDivisor (&sizes)[kMaxSpatial], uint32_t number,
                          uint32_t (&at)[kMaxSpatial]) {
  for (int d = kMaxSpatial - 1; d >= 0; --d) number = sizes[d].Divide(number, &at[d]);
  return number;
}

template <typename T>
__device__ void Finish(const Parameters& p, uint32_t matrix, uint32_t channel, uint32_t position, float sum) {
  channel += matrix % p.groups * p.output_channels;
  if (p.bias != nullptr) sum += LoadAs(p.bias, channel * p.bias_stride, T());
  uint32_t at[kMaxSpatial];
  Split(p.outputs, position, at);
  uint64_t offset = matrix / p.groups * p.output_strides.batch + channel * p.output_strides.channel;
  for (uint32_t d = 0; d < kMaxSpatial; ++d) offset += at[d] * p.output_strides.spatial[d];
  if (p.half_output) {
    static_cast<__half*>(p.output)[offset] = __float2half_rn(sum);
  } else {
    static_cast<float*>(p.output)[offset] = sum;
  }
}

// The windows of one matrix; a thread's position is always the same.
template <typename T>
struct Windows {
  const Parameters& p;
  uint64_t base;
  uint32_t at[kMaxSpatial];
  bool inside;

  __device__ Windows(const Parameters& parameters, uint32_t matrix, uint32_t position) : p(parameters) {
    base = matrix / p.groups * p.input_strides.batch +
           uint64_t{matrix % p.groups} * p.input_channels * p.input_strides.channel;
    inside = position < p.positions;
    Split(p.outputs, inside ? position : 0, at);
  }

  __device__ float Load(uint32_t k) const {
    if (!inside) return 0;
    uint32_t taps[kMaxSpatial];
    uint64_t offset = base + Split(p.taps, k, taps) * p.input_strides.channel;
#pragma unroll
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {
      const int64_t index = InputIndex(p.windows[d], p.backward, at[d], taps[d]);
      if (index < 0) return 0;
      offset += static_cast<uint64_t>(index) * p.input_strides.spatial[d];
    }
    return LoadAs(p.input, offset, T());
  }
};

template <typename T, uint32_t kTile>
__global__ void __launch_bounds__(kTileThreads) Convolve(const __grid_constant__ Parameters p) {
  for (uint64_t number = blockIdx.x; number < p.plan.tiles; number += gridDim.x) {
    const TilePlace place(number, kTile, p.output_channels, p.positions, p.matrices);
    const uint32_t k_begin = place.split * p.plan.steps_per_split;
    const uint32_t k_end = min(p.k - k_begin, p.plan.steps_per_split) + k_begin;
    const uint64_t filter = p.filter_offset + place.matrix % p.groups * p.filter_group;
    const Windows<T> windows(p, place.matrix, place.column + threadIdx.x % kTile);
    RunTileProduct<kTile>(
        k_begin, k_end, /*a_along_k=*/true, /*b_along_k=*/false,
        [&](uint32_t element, uint32_t k) {
          const uint32_t channel = place.row + element;
          if (channel >= p.output_channels) return 0.0f;
          uint32_t taps[kMaxSpatial];
          uint64_t at =
              filter + channel * p.filter_strides.batch + Split(p.taps, k, taps) * p.filter_strides.channel;
#pragma unroll
          for (uint32_t d = 0; d < kMaxSpatial; ++d) at += taps[d] * p.filter_strides.spatial[d];
          return LoadAs(p.filter, at, T());
        },
        [&](uint32_t, uint32_t k) { return windows.Load(k); },
        [&](uint32_t channel, uint32_t position, float sum) {
          channel += place.row;
          position += place.column;
          if (channel >= p.output_channels || position >= p.positions) return;
          if (p.parts == nullptr) return Finish<T>(p, place.matrix, channel, position, sum);
          const uint64_t row =
              (uint64_t{place.split} * p.matrices + place.matrix) * p.output_channels + channel;
          p.parts[row * p.positions + position] = sum;
        });
  }
}

template <typename T>
__global__ void __launch_bounds__(kTileThreads) AddParts(const __grid_constant__ Parameters p) {
  WaitForPrevious();
  const uint64_t elements = uint64_t{p.matrices} * p.output_channels * p.positions;
  for (uint64_t i = uint64_t{blockIdx.x} * kTileThreads + threadIdx.x; i < elements;
       i += uint64_t{gridDim.x} * kTileThreads) {
    float sum = 0;
    for (uint32_t split = 0; split < p.plan.splits; ++split) sum += p.parts[split * elements + i];
    const uint64_t row = i / p.positions;
    Finish<T>(p, static_cast<uint32_t>(row / p.output_channels),
              static_cast<uint32_t>(row % p.output_channels), static_cast<uint32_t>(i % p.positions), sum);
  }
}

// The activation of a tensor, in place or from FLOAT32 sums.
ElementProblem ActivationProblem(const ConvolutionProblem& p, const ConvolutionTensor& sums,
                                 DataType sums_type) {
  const auto operand = [](const ConvolutionTensor& tensor, DataType type) {
    return ElementOperand{
        type, {tensor.batch, tensor.channel, tensor.spatial[0], tensor.spatial[1], tensor.spatial[2]}};
  };
  ElementProblem problem;
  problem.rank = 5;
  problem.sizes = {p.batch, p.groups * p.output_channels, p.windows[0].output, p.windows[1].output,
                   p.windows[2].output};
  problem.inputs = {operand(sums, sums_type)};
  problem.outputs = {operand(p.output, p.type)};
  const uint8_t at = problem.program.Load(0, Class::kF32);
  for (const Instruction& instruction : p.activation.instructions) {
    problem.program.instructions.push_back(instruction);
  }
  problem.program.Store(0, at, Class::kF32);
  return problem;
}

ConvolutionTensor PackedOutput(const ConvolutionProblem& p) {
  ConvolutionTensor packed;
  uint64_t stride = 1;
  for (uint32_t d = kMaxSpatial; d-- > 0; stride *= p.windows[d].output) packed.spatial[d] = stride;
  packed.channel = stride;
  packed.batch = stride * p.groups * p.output_channels;
  return packed;
}

class ConvolutionTiled final : public CompositeKernel {
 public:
  ConvolutionTiled(const ConvolutionProblem& problem, const LowerContext& context)
      : half_(problem.type == DataType::kFloat16) {
    Parameters& p = common_;
    std::copy(problem.windows.begin(), problem.windows.end(), p.windows);
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {
      p.taps[d] = FastDivisor(problem.windows[d].taps);
      p.outputs[d] = FastDivisor(problem.windows[d].output);
    }
    p.input_strides = problem.input;
    p.filter_strides = problem.filter;
    p.output_strides = problem.output;
    p.filter_group = problem.filter_group;
    p.filter_offset = problem.filter_offset;
    has_bias_ = problem.bias.has_value();
    p.bias_stride = problem.bias.value_or(0);
    p.groups = static_cast<uint32_t>(problem.groups);
    p.matrices = static_cast<uint32_t>(problem.groups * problem.batch);
    p.input_channels = static_cast<uint32_t>(problem.input_channels);
    p.output_channels = static_cast<uint32_t>(problem.output_channels);
    p.positions = static_cast<uint32_t>(problem.Positions());
    p.k = static_cast<uint32_t>(problem.input_channels * problem.Taps());
    p.backward = problem.backward;
    p.half_output = half_;
    p.plan = TilePlan(p.matrices, p.output_channels, p.positions, p.k, context.device->multiprocessors);
    const uint64_t elements = uint64_t{p.matrices} * p.output_channels * p.positions;
    blocks_ = std::min<uint64_t>(p.plan.tiles, uint64_t{1} << 30);
    add_blocks_ = std::min<uint64_t>((elements + kTileThreads - 1) / kTileThreads, 65536);
    if (p.plan.splits > 1) parts_ = AddScratch("sums of parts", p.plan.splits * elements * sizeof(float));
  }

  // What comes after the sums, if anything does.
  Status AddActivation(const ConvolutionProblem& problem, const LowerContext& context) {
    if (problem.activation.instructions.empty()) return {};
    ConvolutionTensor sums = problem.output;
    if (half_) {
      // The activation is of the sums before they are rounded.
      sums = PackedOutput(problem);
      const uint64_t elements = uint64_t{common_.matrices} * common_.output_channels * common_.positions;
      sums_ = AddScratch("sums", elements * sizeof(float));
      common_.output_strides = sums;
      common_.half_output = false;
    }
    LoweredOperator activation;
    ANYDML_RETURN_IF_ERROR(ChooseKernel(OperatorTableOf(context.backend).element,
                                        ActivationProblem(problem, sums, DataType::kFloat32),
                                        context.ForPart(), &activation));
    activation_ = AddPart(activation.implementation, std::move(activation.kernel));
    has_activation_ = true;
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    Parameters p = common_;
    p.input = arguments.inputs[0].data;
    p.filter = arguments.inputs[1].data;
    if (has_bias_) p.bias = arguments.inputs[2].data;
    const Buffer sums = has_activation_ && half_ ? sums_.In(arguments.temporary) : arguments.outputs[0];
    p.output = sums.data;
    if (p.plan.splits > 1) p.parts = parts_.In<float>(arguments.temporary);
    KernelChain chain(arguments.stream);
    chain.Launch(half_ ? Find<__half>() : Find<float>(), blocks_, kTileThreads, p);
    if (p.plan.splits > 1) {
      chain.Launch(half_ ? AddParts<__half> : AddParts<float>, add_blocks_, kTileThreads, p);
    }
    if (!has_activation_) return {};
    KernelArguments part = arguments;
    part.inputs = {&sums, 1};
    return RunPart(activation_, part);
  }

 private:
  using Function = void (*)(Parameters);

  template <typename T>
  Function Find() const {
    return common_.plan.tile == 128  ? Convolve<T, 128>
           : common_.plan.tile == 64 ? Convolve<T, 64>
                                     : Convolve<T, 32>;
  }

  bool half_, has_bias_;
  Parameters common_{};  // but for addresses
  uint64_t blocks_, add_blocks_;
  ScratchLayout::Piece parts_, sums_;
  bool has_activation_ = false;
  uint32_t activation_ = 0;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionTiledCuda(const ConvolutionProblem& problem,
                                                         const LowerContext& context, std::string* why_not) {
  auto kernel = std::make_unique<ConvolutionTiled>(problem, context);
  const Status status = kernel->AddActivation(problem, context);
  if (status.ok()) return kernel;
  *why_not = status.message();
  return nullptr;
}

}  // namespace anydml
