// FLOAT16 convolutions with fewer channels than taps in a row, as at the beginning of networks: what the taps
// of a row see is copied together first and replaces the channels, which become a dimension of taps. So units
// of 16 bytes contain numbers instead of padding.
#include "kernel/composite.h"
#include "ops/convolution/cuda/product_cut.h"
#include "ops/convolution/problem.h"
#include "ops/device/cuda/kernel_chain.cuh"
#include "ops/device/nest.h"

namespace anydml {
namespace {

constexpr uint32_t kThreads = 256, kUnit = 8, kX = kMaxSpatial - 1, kY = kX - 1;

struct RowPacking {
  const uint16_t* from = nullptr;
  uint4* to = nullptr;  // [image][channel][row][column of the output]
  ConvolutionTensor input;
  ConvolutionWindow window;  // along rows
  FastDivisor channels, rows, columns;
  uint32_t units = 0;
};

__global__ void __launch_bounds__(kThreads) PackRows(const __grid_constant__ RowPacking p) {
  WaitForPrevious();
  LetNextStart();
  const uint32_t number = blockIdx.x * kThreads + threadIdx.x;
  if (number >= p.units) return;
  uint32_t column, row, channel;
  const uint32_t plane = p.rows.Divide(p.columns.Divide(number, &column), &row);
  const uint32_t image = p.channels.Divide(plane, &channel);
  const uint64_t offset = p.input.Matrix(image, 0) + channel * p.input.channel + row * p.input.spatial[kY];
  uint32_t words[kUnit / 2] = {};
#pragma unroll
  for (uint32_t tap = 0; tap < kUnit; ++tap) {
    // columns before the row wrap to large numbers
    const uint32_t at = column * p.window.stride + tap * p.window.dilation - p.window.start_padding;
    const bool exists = tap < p.window.taps && at < p.window.input;
    const uint32_t bits = exists ? p.from[offset + at * p.input.spatial[kX]] : 0;
    words[tap / 2] |= bits << tap % 2 * 16;
  }
  p.to[number] = {words[0], words[1], words[2], words[3]};
}

std::string WhyNot(const ConvolutionProblem& problem) {
  const ConvolutionShape& s = problem.shape;
  const ConvolutionWindow &x = s.windows[kX], &z = s.windows[0];
  constexpr uint32_t kFar = 1 << 16;
  const bool fits = problem.type == DataType::kFloat16 && !s.backward && s.outer[1] == 1 && z.taps == 1 &&
                    z.input == 1 && z.output == 1 && z.start_padding == 0 && x.reached == x.output &&
                    x.input < kFar && x.output < kFar && x.stride < kFar && x.dilation < kFar &&
                    x.start_padding < kFar &&
                    uint64_t{x.output} * x.stride + uint64_t{x.taps} * x.dilation < UINT32_MAX - kFar;
  if (!fits) return "it is for FLOAT16 images of one group, forward";
  if (x.taps > kUnit || s.input_channels >= x.taps) {
    return StrCat("it is for fewer channels than taps in a row, of which there are up to ", kUnit);
  }
  return "";
}

// The convolution of packed rows.
ConvolutionProblem OfRows(const ConvolutionProblem& problem) {
  ConvolutionProblem rows = problem;
  const ConvolutionShape& from = problem.shape;
  ConvolutionShape& s = rows.shape;
  const auto channels = static_cast<uint32_t>(from.input_channels);
  const uint32_t columns = from.windows[kX].output;
  s.input_channels = from.windows[kX].taps;
  s.windows[0] = {.input = channels, .taps = channels};
  s.windows[kX] = {.input = columns, .output = columns, .reached = columns};
  s.input = {};
  s.input.channel = 1;
  s.input.spatial[kX] = kUnit;
  s.input.spatial[kY] = uint64_t{kUnit} * columns;
  s.input.spatial[0] = s.input.spatial[kY] * from.windows[kY].input;
  s.input.outer[0] = s.input.spatial[0] * channels;
  s.filter.channel = from.filter.spatial[kX];
  s.filter.spatial[kX] = 0;
  s.filter.spatial[0] = from.filter.channel;
  return rows;
}

class ConvolutionFewChannels final : public CompositeKernel {
 public:
  ConvolutionFewChannels(const ConvolutionProblem& problem, const ConvolutionProblem& rows,
                         std::unique_ptr<const Kernel> product) {
    const ConvolutionShape& s = problem.shape;
    packing_.input = s.input;
    packing_.window = s.windows[kX];
    packing_.channels = FastDivisor(static_cast<uint32_t>(s.input_channels));
    packing_.rows = FastDivisor(s.windows[kY].input);
    packing_.columns = FastDivisor(s.windows[kX].output);
    packing_.units = static_cast<uint32_t>(s.outer[0] * rows.shape.input.outer[0] / kUnit);
    rows_ = AddScratch("rows", packing_.units * sizeof(uint4));
    product_ = AddPart("cuda.channels_last", std::move(product));
  }

  bool packs_input(uint32_t input) const override { return input == 1 && PartPacksInput(product_, 1); }
  Status Initialize(const KernelArguments& arguments) const override {
    return InitializePart(product_, arguments);
  }

  Status Run(const KernelArguments& arguments) const override {
    const Buffer rows = rows_.In(arguments.temporary);
    RowPacking packing = packing_;
    packing.from = reinterpret_cast<const uint16_t*>(arguments.inputs[0].data);
    packing.to = reinterpret_cast<uint4*>(rows.data);
    KernelChain(arguments.stream, /*all_wait=*/true)
        .Launch(PackRows, DivideUp(packing.units, kThreads), kThreads, packing);
    const Buffer inputs[] = {rows, arguments.inputs[1], arguments.inputs[2]};
    KernelArguments part = arguments;
    part.inputs = inputs;
    return RunPart(product_, part);
  }

 private:
  RowPacking packing_;  // without addresses
  ScratchLayout::Piece rows_;
  uint32_t product_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionFewChannelsCuda(const ConvolutionProblem& problem,
                                                               const LowerContext& context,
                                                               std::string* why_not) {
  *why_not = WhyNot(problem);
  if (!why_not->empty()) return nullptr;
  const ConvolutionProblem rows = OfRows(problem);
  auto product = CreateConvolutionChannelsLastCuda(rows, context.ForPart(), why_not);
  if (product == nullptr) return nullptr;
  return std::make_unique<ConvolutionFewChannels>(problem, rows, std::move(product));
}

}  // namespace anydml
