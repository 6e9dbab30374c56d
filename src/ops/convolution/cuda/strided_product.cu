// A convolution as a product of filters with windows that are read directly from the input. Products with
// many steps and few outputs are cut along channels and taps. For filters of one input channel, which are no
// product, threads sum the taps.
#include <algorithm>

#include "kernel/composite.h"
#include "ops/convolution/activation.h"
#include "ops/convolution/cuda/depthwise/depthwise.cuh"
#include "ops/convolution/cuda/depthwise/ring_cut.h"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

using Parameters = ConvolutionParameters;

template <typename T, uint32_t kTile>
__global__ void __launch_bounds__(kTileThreads) Convolve(const __grid_constant__ Parameters p) {
  WaitForPrevious();
  LetNextStart();
  const DeviceShape& s = p.shape;
  for (uint64_t number = blockIdx.x; number < s.plan.tiles; number += gridDim.x) {
    const TilePlace place(number, kTile, s.output_channels, s.positions, s.matrices);
    const uint32_t begin = place.split * s.plan.steps_per_split;
    const uint32_t end = min(s.steps - begin, s.plan.steps_per_split) + begin;
    const uint64_t filter = MatrixOf(s, s.filter, place.matrix);
    const DeviceWindow window(s, place.matrix, place.column + threadIdx.x % kTile);
    RunTileProduct<float, kTile>(
        begin, end, /*a_along_k=*/true, /*b_along_k=*/false,
        [&](uint32_t element, uint32_t step) {
          const uint32_t channel = place.row + element;
          if (channel >= s.output_channels) return 0.0f;
          return LoadNumber(p.filter, FilterOffset(s, filter, channel, step), T());
        },
        [&](uint32_t, uint32_t step) {
          uint64_t at;
          return window.Find(step, &at) ? LoadNumber(p.input, at, T()) : 0.0f;
        },
        [&](uint32_t channel, uint32_t position, float sum) {
          channel += place.row;
          position += place.column;
          if (channel >= s.output_channels || position >= s.positions) return;
          if (p.parts == nullptr) return FinishSum<T>(p, place.matrix, channel, position, sum);
          const uint64_t row =
              (uint64_t{place.split} * s.matrices + place.matrix) * s.output_channels + channel;
          p.parts[row * s.positions + position] = sum;
        });
  }
}

template <typename T>
__global__ void __launch_bounds__(kTileThreads) AddParts(const __grid_constant__ Parameters p) {
  WaitForPrevious();
  const DeviceShape& s = p.shape;
  const uint64_t elements = uint64_t{s.matrices} * s.output_channels * s.positions;
  for (uint64_t i = uint64_t{blockIdx.x} * kTileThreads + threadIdx.x; i < elements;
       i += uint64_t{gridDim.x} * kTileThreads) {
    float sum = 0;
    for (uint32_t split = 0; split < s.plan.splits; ++split) sum += p.parts[split * elements + i];
    const uint64_t row = i / s.positions;
    FinishSum<T>(p, static_cast<uint32_t>(row / s.output_channels),
                 static_cast<uint32_t>(row % s.output_channels), static_cast<uint32_t>(i % s.positions), sum);
  }
}

class ConvolutionTiled final : public CompositeKernel {
 public:
  ConvolutionTiled(const ConvolutionProblem& problem, const LowerContext& context, bool depthwise)
      : half_(problem.type == DataType::kFloat16),
        has_bias_(problem.bias.has_value()),
        depthwise_(depthwise) {
    const ConvolutionTiledPlan plan = MakeConvolutionTiledPlan(problem, *context.device);
    common_ = plan.parameters;
    if (!depthwise) {
      blocks_ = plan.grid.blocks;
      parts_grid_ = plan.parts_grid;
      if (splits() > 1) parts_ = AddScratch("sums of parts", plan.parts_bytes);
      return;
    }
    Parameters& p = common_;
    p.shape.plan.splits = 1;
    p.threads = DepthwiseThreads(problem, context.device->multiprocessors);
    blocks_ = (p.threads + threads_ - 1) / threads_;
    if (way_ == DepthwiseWay::kPlanes) {
      blocks_ = (problem.shape.Matrices() + p.planes - 1) / p.planes;
      const ConvolutionWindow &y = problem.shape.windows[1], &x = problem.shape.windows[2];
      shared_bytes_ = p.planes * y.input * x.input * (half_ ? 2 : 4) + 16;
    }
    blocks_ = std::min<uint64_t>(blocks_, uint64_t{1} << 30);
  }

  // Adds what follows the sums, if anything does.
  Status AddActivation(const ConvolutionProblem& problem, const LowerContext& context) {
    if (common_.limits.Set(problem.activation)) return {};
    if (half_) {
      // The activation is applied to sums before they are rounded.
      const bool channels_last =
          way_ == DepthwiseWay::kVectors || way_ == DepthwiseWay::kFewVectors || way_ == DepthwiseWay::kTiles;
      common_.shape.output = PackedOutput(problem.shape, channels_last);
      common_.half_output = false;
      sums_ = AddScratch("sums", problem.shape.Elements() * sizeof(float));
    }
    LoweredOperator activation;
    ANYDML_RETURN_IF_ERROR(
        ChooseKernel(ConvolutionActivation(problem, common_.shape.output), context.ForPart(), &activation));
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
    if (splits() > 1) p.parts = parts_.In<float>(arguments.temporary);
    KernelChain chain(arguments.stream, /*all_wait=*/true);
    chain.Launch(Find(), blocks_, threads_, p, shared_bytes_);
    if (splits() > 1) chain.Launch(half_ ? AddParts<__half> : AddParts<float>, parts_grid_, p);
    if (!has_activation_) return {};
    KernelArguments part = arguments;
    part.inputs = {&sums, 1};
    return RunPart(activation_, part);
  }

 private:
  ConvolutionFunction Find() const {
    if (depthwise_) return FindDepthwise(way_, half_, common_.shape.windows[kMaxSpatial - 1].stride);
    return half_ ? FindTiled<__half>() : FindTiled<float>();
  }
  template <typename T>
  ConvolutionFunction FindTiled() const {
    const uint32_t tile = common_.shape.plan.tile;
    return tile == 128 ? Convolve<T, 128> : tile == 64 ? Convolve<T, 64> : Convolve<T, 32>;
  }

  // Also decides about the way.
  uint64_t DepthwiseThreads(const ConvolutionProblem& problem, uint64_t multiprocessors) {
    constexpr uint64_t kEnoughThreads = 1024;  // per multiprocessor
    const ConvolutionShape& shape = problem.shape;
    Parameters& p = common_;
    if (const uint64_t threads = SetWarps(problem, multiprocessors)) return threads;
    if (const uint64_t threads = SetRing(problem, multiprocessors)) return threads;
    if (const uint64_t threads =
            half_ ? SetTiles<__half>(shape, multiprocessors) : SetTiles<float>(shape, multiprocessors)) {
      return threads;
    }
    const uint32_t columns = shape.windows[kMaxSpatial - 1].output;
    const uint32_t rows = shape.windows[kMaxSpatial - 2].output;
    p.planes = DepthwisePlaneCount(shape, half_ ? 2 : 4);
    way_ = HasDepthwiseVectors(shape)   ? DepthwiseWay::kVectors
           : HasDepthwiseColumns(shape) ? DepthwiseWay::kColumns
           : p.planes != 0              ? DepthwiseWay::kPlanes
           : HasDepthwiseRows(shape)    ? DepthwiseWay::kRows
           : HasThreeTaps(shape)        ? DepthwiseWay::kThreeTaps
                                        : DepthwiseWay::kAny;
    if (way_ == DepthwiseWay::kAny) return shape.Elements();
    const uint32_t run = way_ == DepthwiseWay::kVectors ? kDepthwisePair : kDepthwiseRun;
    p.runs = FastDivisor((columns + run - 1) / run);
    const uint64_t planes = shape.Elements() / columns / rows, runs = p.runs.divisor();
    if (way_ == DepthwiseWay::kThreeTaps) return planes * rows * runs;
    p.bands = FastDivisor((rows + kDepthwiseRows - 1) / kDepthwiseRows);
    p.channels = FastDivisor(p.shape.output_channels);
    p.groups = FastDivisor(p.shape.inner);
    if (way_ == DepthwiseWay::kColumns) return SetColumns(planes, rows, multiprocessors);
    const uint64_t threads = planes * p.bands.divisor() * runs;
    if (way_ != DepthwiseWay::kVectors) return threads;
    p.groups = FastDivisor(p.shape.inner / kDepthwiseVector);
    if (threads / kDepthwiseVector >= multiprocessors * kEnoughThreads) return threads / kDepthwiseVector;
    way_ = DepthwiseWay::kFewVectors;
    p.bands = FastDivisor(rows);
    return planes * rows * runs / kDepthwiseVector;
  }

  // Warps with whole channels; 0 if that is impossible, or if there are few.
  uint64_t SetWarps(const ConvolutionProblem& problem, uint64_t multiprocessors) {
    constexpr uint64_t kEnoughWarps = 16;  // per multiprocessor
    const ConvolutionShape& shape = problem.shape;
    const uint32_t bytes = half_ ? 2 : 4, planes = DepthwiseWarpPlanes(shape, bytes);
    SumLimits limits;
    const bool ends_as_it_is = !half_ || limits.Set(problem.activation);
    if (planes == 0 || !ends_as_it_is) return 0;
    const uint64_t warps = (shape.Matrices() + planes - 1) / planes;
    if (warps < multiprocessors * kEnoughWarps) return 0;
    const ConvolutionWindow &y = shape.windows[kMaxSpatial - 2], &x = shape.windows[kMaxSpatial - 1];
    way_ = DepthwiseWay::kWarps;
    common_.warp_lines = planes;
    common_.runs = FastDivisor(x.output / kDepthwiseVector);
    common_.groups = FastDivisor(common_.shape.inner);
    shared_bytes_ = planes * y.input * x.input * bytes;
    threads_ = 32;
    return warps * 32;
  }

  // Bands of channels-last images; 0 if that is impossible, or if there are few.
  uint64_t SetRing(const ConvolutionProblem& problem, uint64_t multiprocessors) {
    const ConvolutionShape& shape = problem.shape;
    SumLimits limits;
    if (!half_ || !HasDepthwiseRing(shape) || !limits.Set(problem.activation)) return 0;
    const RingCut cut(shape, multiprocessors);
    const uint64_t blocks = shape.outer[0] * cut.parts * cut.bands;
    if (cut.rows < 3 || blocks < multiprocessors / 2) return 0;
    Parameters& p = common_;
    way_ = DepthwiseWay::kRing;
    p.runs = FastDivisor(cut.parts);
    p.bands = FastDivisor(cut.bands);
    p.tile_columns = cut.columns;
    p.band_rows = cut.band;
    p.ring_rows = cut.rows;
    p.groups = FastDivisor(static_cast<uint32_t>(shape.outer[1] / kRingVector));
    shared_bytes_ = cut.shared_bytes;
    threads_ = cut.threads;
    return blocks * threads_;
  }

  // Tiles of channels-last images; 0 if that is impossible, or if there are few.
  template <typename T>
  uint64_t SetTiles(const ConvolutionShape& shape, uint64_t multiprocessors) {
    using Tile = UsualDepthwiseTile<T>;
    constexpr uint64_t kEnoughBlocks = 4;  // per multiprocessor
    if (!HasDepthwiseTiles(shape, sizeof(T))) return 0;
    const auto parts = [](uint64_t size, uint64_t part) {
      return static_cast<uint32_t>((size + part - 1) / part);
    };
    Parameters& p = common_;
    const uint32_t columns = shape.windows[kMaxSpatial - 1].output;
    p.runs = FastDivisor(parts(columns, kDepthwiseTileColumns));
    p.bands = FastDivisor(parts(shape.windows[kMaxSpatial - 2].output, Tile::kRows));
    p.groups = FastDivisor(parts(shape.outer[1], Tile::kChannels));
    const uint64_t blocks = shape.outer[0] * p.runs.divisor() * p.bands.divisor() * p.groups.divisor();
    if (blocks < multiprocessors * kEnoughBlocks) return 0;
    way_ = DepthwiseWay::kTiles;
    p.tile_columns = parts(columns, p.runs.divisor());
    p.segment = parts(p.tile_columns, Tile::kAlong);
    shared_bytes_ = (Tile::kRows + 2) * (p.tile_columns + 2) * Tile::kBytes;
    threads_ = Tile::kThreads;
    return blocks * threads_;
  }

  // Bands as high as possible while there are enough warps; returns the number of threads, in whole warps.
  uint64_t SetColumns(uint64_t planes, uint32_t rows, uint64_t multiprocessors) {
    constexpr uint64_t kEnoughWarps = 8;  // per multiprocessor
    Parameters& p = common_;
    p.warp_lines = 32 / p.runs.divisor();
    uint64_t warps = 0;
    for (const uint32_t high : {half_ ? 14u : 7u, 7u, 4u, 2u}) {
      p.band_rows = high;
      p.bands = FastDivisor((rows + high - 1) / high);
      p.all_lines = static_cast<uint32_t>(planes * p.bands.divisor());
      warps = (p.all_lines + p.warp_lines - 1) / p.warp_lines;
      if (warps >= multiprocessors * kEnoughWarps) break;
    }
    return warps * 32;
  }

  uint32_t splits() const { return common_.shape.plan.splits; }

  bool half_, has_bias_, depthwise_;
  DepthwiseWay way_ = DepthwiseWay::kAny;
  Parameters common_{};  // without addresses
  uint64_t blocks_ = 0;
  Grid parts_grid_;
  uint32_t threads_ = kTileThreads, shared_bytes_ = 0;
  ScratchLayout::Piece parts_, sums_;
  bool has_activation_ = false;
  uint32_t activation_ = 0;
};

std::unique_ptr<const Kernel> Create(const ConvolutionProblem& problem, const LowerContext& context,
                                     bool depthwise, std::string* why_not) {
  auto kernel = std::make_unique<ConvolutionTiled>(problem, context, depthwise);
  const Status status = kernel->AddActivation(problem, context);
  if (status.ok()) return kernel;
  *why_not = status.message();
  return nullptr;
}

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionTiledCuda(const ConvolutionProblem& problem,
                                                         const LowerContext& context, std::string* why_not) {
  return Create(problem, context, false, why_not);
}

std::unique_ptr<const Kernel> CreateConvolutionDepthwiseCuda(const ConvolutionProblem& problem,
                                                             const LowerContext& context,
                                                             std::string* why_not) {
  const ConvolutionShape& shape = problem.shape;
  if (shape.input_channels == 1 && shape.output_channels <= kDepthwiseChannels &&
      shape.Taps() <= kDepthwiseTaps) {
    return Create(problem, context, true, why_not);
  }
  *why_not = StrCat("it is for filters of 1 input channel, up to ", kDepthwiseChannels,
                    " output channels and ", kDepthwiseTaps, " taps; there are ", shape.input_channels, ", ",
                    shape.output_channels, " and ", shape.Taps());
  return nullptr;
}

}  // namespace anydml
