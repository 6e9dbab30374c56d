// FLOAT16 convolutions from planes to planes, on compute capability 9.0, without any conversion of the
// layout.
#include <algorithm>
#include <limits>

#include "kernel/kernel.h"
#include "ops/convolution/cuda/operand_layout.cuh"
#include "ops/convolution/cuda/planes_half.cuh"

namespace anydml {
namespace {

using namespace planes;

constexpr uint32_t kSharedBytes = 227 << 10;  // per block, on compute capability 9.0
constexpr uint32_t kPackThreadsOfPlanes = 128;

// Packs filters into blocks for PlaneProduct. A thread has a unit of eight channels.
struct PlanePacking {
  const __half* from;
  uint4* to;
  ConvolutionTensor filter;
  uint32_t outputs, inputs, units;
  FastDivisor taps, steps;
};

__global__ void __launch_bounds__(kPackThreadsOfPlanes)
    PackPlaneFilters(const __grid_constant__ PlanePacking p) {
  constexpr uint32_t kUnits = kChannels / kHalfUnit;
  WaitForPrevious();
  LetNextStart();
  const uint32_t i = blockIdx.x * kPackThreadsOfPlanes + threadIdx.x;
  if (i >= p.units) return;
  const uint32_t block = i / (kChannels * kUnits), line = i / kUnits % kChannels, unit = i % kUnits;
  uint32_t tap, step;
  const uint32_t tile = p.steps.Divide(p.taps.Divide(block / kTaps, &tap), &step);
  const uint32_t output = tile * kChannels + line, input = step * kChannels + unit * kHalfUnit;
  const __half* const from = p.from + (p.filter.offset + output * p.filter.output_channel +
                                       tap * p.filter.spatial[1] + block % kTaps * p.filter.spatial[2]);
  alignas(16) __half numbers[kHalfUnit];
#pragma unroll
  for (uint32_t n = 0; n < kHalfUnit; ++n) {
    const bool exists = output < p.outputs && input + n < p.inputs;
    numbers[n] = exists ? from[(input + n) * p.filter.channel] : __ushort_as_half(0);
  }
  p.to[block * (kBlockBytes / 16) + SharedRows<kChannels>{0}.At(line, unit) / 16] =
      *reinterpret_cast<const uint4*>(numbers);
}

using PlaneKernel = void (*)(PlaneProduct);
struct PlaneTile {
  uint32_t rows, columns;
  PlaneKernel kernel;
};
template <uint32_t kRows, uint32_t kColumns>
constexpr PlaneTile Tile() {
  return {kRows, kColumns, ConvolvePlanes<kRows, kColumns>};
}
const PlaneTile kTiles[] = {Tile<4, 64>(), Tile<2, 64>(), Tile<4, 56>(), Tile<2, 56>(), Tile<4, 48>(),
                            Tile<6, 40>(), Tile<4, 40>(), Tile<8, 32>(), Tile<4, 32>()};

// The driver's function that encodes a tensor map; null if it has none.
decltype(&cuTensorMapEncodeTiled) Encoder() {
  static const auto kFunction = [] {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult result;
    const cudaError_t error = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                               cudaEnableDefault, &result);
    cudaGetLastError();
    const bool found = error == cudaSuccess && result == cudaDriverEntryPointSuccess;
    return found ? reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function) : nullptr;
  }();
  return kFunction;
}

// An output channel's filters are contiguous whole units.
bool HasFiltersInUnits(const ConvolutionShape& s) {
  const uint64_t units = s.input_channels * s.Taps();
  return s.HasPackedFilters() && units % kHalfUnit == 0 && s.filter.offset % kHalfUnit == 0;
}

std::string WhyNotPlanes(const ConvolutionProblem& problem) {
  const ConvolutionShape& s = problem.shape;
  std::string why_not = WhyNotChannelsLast(problem);
  if (!why_not.empty()) return why_not;
  if (problem.type != DataType::kFloat16) return "it is for FLOAT16";
  if (s.outer[1] != 1) return "it is for one group";
  SumLimits limits;
  if (!limits.Set(problem.activation)) return "it is for RELU and CLIP";
  if (problem.tail) why_not = WhyNotTail(problem);
  if (!why_not.empty()) return why_not;
  const ConvolutionWindow& depth = s.windows[0];
  if (depth.input != 1 || depth.output != 1 || depth.taps != 1 || depth.start_padding != 0) {
    return "it is for two spatial dimensions";
  }
  for (const ConvolutionWindow& window : s.windows) {
    if (window.stride != 1 || (window.taps > 1 && window.dilation != 1)) return "it is for strides of 1";
    if (window.reached != window.output) return "it is for outputs that all have taps";
  }
  constexpr uint64_t kMostRows = uint64_t{1} << 30;  // coordinates of copies are signed
  const ConvolutionWindow &rows = s.windows[1], &columns = s.windows[2];
  if (uint64_t{rows.output} + rows.start_padding > kMostRows) {
    return StrCat("it is for at most ", kMostRows, " rows, padding included");
  }
  if (columns.taps != kTaps || columns.start_padding != 1 || columns.output != columns.input) {
    return "it is for three taps in a row, and results as wide as the input";
  }
  const auto is_in_units = [&](const ConvolutionTensor& tensor, uint64_t channels, uint32_t row_count) {
    const uint64_t distances = tensor.offset | (s.outer[0] > 1 ? tensor.outer[0] : 0) |
                               (channels > 1 ? tensor.channel : 0) | (row_count > 1 ? tensor.spatial[1] : 0);
    const bool is_apart = (s.outer[0] == 1 || tensor.outer[0] != 0) &&
                          (channels == 1 || tensor.channel != 0) &&
                          (row_count == 1 || tensor.spatial[1] != 0);
    return tensor.spatial[2] == 1 && distances % kHalfUnit == 0 && is_apart;
  };
  if (!is_in_units(s.input, s.input_channels, rows.input) ||
      !is_in_units(s.output, s.output_channels, rows.output) || columns.output % kHalfUnit != 0) {
    return "it is for planes whose rows are in whole units of 16 bytes";
  }
  return "";
}

class ConvolutionPlanes final : public Kernel {
 public:
  explicit ConvolutionPlanes(const ConvolutionProblem& problem)
      : shape_(problem.shape),
        has_bias_(problem.bias.has_value()),
        filter_is_owned_(problem.filter_is_owned),
        tail_(problem.tail) {
    PlaneProduct& p = product_;
    p.bias_stride = problem.bias.value_or(0);
    p.limits.Set(problem.activation);
    p.outputs = static_cast<uint32_t>(shape_.output_channels);
    p.inputs = static_cast<uint32_t>(shape_.input_channels);
    p.output_image = shape_.output.outer[0];
    p.output_channel = shape_.output.channel;
    p.output_row = shape_.output.spatial[1];
    p.output_offset = shape_.output.offset;
    p.height = shape_.windows[1].output;
    p.width = shape_.windows[2].output;
    p.taps = shape_.windows[1].taps;
    p.top = shape_.windows[1].start_padding;
    p.channel_taps = FastDivisor(kTaps * p.taps);
    p.row_units =
        FastDivisor(static_cast<uint32_t>(DivideUp(shape_.input_channels * kTaps * p.taps, kHalfUnit)));
    p.steps = static_cast<uint32_t>(DivideUp(shape_.input_channels, kChannels));
    p.channel_tiles = FastDivisor(static_cast<uint32_t>(DivideUp(shape_.output_channels, kChannels)));
  }

  // Empty, or why it is impossible.
  std::string Create(const LowerContext& context) {
    if (FilterBytes() > std::numeric_limits<uint32_t>::max()) return "it is for filters of less than 4 GiB";
    double least = 0;
    for (const PlaneTile& tile : kTiles) {
      PlaneProduct p = product_;
      if (!Cut(tile, &p)) continue;
      const double time = TimeOf(tile, p, context.device->multiprocessors);
      if (tile_ != nullptr && time >= least) continue;
      least = time;
      tile_ = &tile;
    }
    if (tile_ == nullptr) return StrCat("shared memory has no room for ", product_.taps, " taps of a column");
    Cut(*tile_, &product_);
    product_.packs = !filter_is_owned_ && product_.resident && HasFiltersInUnits(shape_);
    blocks_ = std::min(product_.tiles, context.device->multiprocessors);
    const PlaneMemory memory(product_, 0, tile_->rows);
    shared_bytes_ = memory.images + product_.images * memory.image_bytes;
    const CurrentDevice current(*context.device);
    cudaFuncAttributes attributes;
    const cudaError_t error =
        cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(tile_->kernel));
    if (error != cudaSuccess) {
      cudaGetLastError();
      return StrCat("it is for compute capability 9.0 (", cudaGetErrorString(error), ")");
    }
    if (Encoder() == nullptr) return "the driver has no tensor maps";
    PlaneProduct p = product_;
    alignas(16) static std::byte anywhere[16];  // only to test whether there is such a map
    const CUresult result = Encode(anywhere, &p);
    return result == CUDA_SUCCESS ? "" : StrCat("the driver makes no tensor map of the input (", result, ")");
  }

  std::string made_of() const override {
    return StrCat("tiles of ", kChannels, " channels of ", tile_->rows, " x ", tile_->columns,
                  product_.resident ? ", all filters in shared memory" : "",
                  product_.packs ? ", where blocks pack them" : "");
  }

  uint64_t temporary_bytes() const override { return filter_is_owned_ || product_.packs ? 0 : FilterBytes(); }
  uint64_t persistent_bytes() const override { return filter_is_owned_ ? FilterBytes() : 0; }
  bool packs_input(uint32_t input) const override { return input == 1 && filter_is_owned_; }

  Status Initialize(const KernelArguments& arguments) const override {
    KernelChain chain(arguments.stream);
    Pack(&chain, arguments.inputs[1].data, arguments.persistent.data);
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    KernelChain chain(arguments.stream, /*all_wait=*/true);
    PlaneProduct p = product_;
    const CUresult result = Encode(arguments.inputs[0].data + shape_.input.offset * sizeof(__half), &p);
    if (result != CUDA_SUCCESS) {
      return Status(Code::kDriverInternal,
                    StrCat("CONVOLUTION: no tensor map of InputTensor (", result, ")"));
    }
    p.bias = has_bias_ ? reinterpret_cast<const __half*>(arguments.inputs[2].data) : nullptr;
    p.output = reinterpret_cast<__half*>(arguments.outputs[0].data);
    p.filter = filter_is_owned_ ? arguments.persistent.data
               : p.packs        ? arguments.inputs[1].data + shape_.filter.offset * sizeof(__half)
                                : arguments.temporary.data;
    if (tail_) p.tail = TailOf(*tail_, arguments);
    if (!filter_is_owned_ && !p.packs) Pack(&chain, arguments.inputs[1].data, arguments.temporary.data);
    chain.Launch(tile_->kernel, blocks_, kThreads, p, shared_bytes_);
    return {};
  }

 private:
  uint32_t TileFilters() const { return product_.steps * product_.taps; }
  uint64_t FilterBytes() const {
    return uint64_t{product_.channel_tiles.divisor()} * TileFilters() * kFilterBytes;
  }

  // False if there is not enough room.
  bool Cut(const PlaneTile& tile, PlaneProduct* p) const {
    constexpr uint32_t kSeam = 2 * kHalfUnit;  // overlap of strips
    const uint32_t strips = p->width <= tile.columns
                                ? 1
                                : static_cast<uint32_t>(DivideUp(p->width - kSeam, tile.columns - kSeam));
    p->strips = FastDivisor(strips);
    p->row_tiles = FastDivisor(static_cast<uint32_t>(DivideUp(p->height, tile.rows)));
    p->tiles =
        static_cast<uint32_t>(shape_.outer[0] * p->channel_tiles.divisor() * strips * p->row_tiles.divisor());
    const uint32_t image_bytes = PlaneMemory(*p, 0, tile.rows).image_bytes, room = kSharedBytes - kHeadBytes;
    if (2 * image_bytes > room) return false;
    const uint32_t most_filters = (room - 2 * image_bytes) / kFilterBytes;
    p->resident = p->channel_tiles.divisor() == 1 && TileFilters() <= most_filters;
    p->filters = p->resident ? TileFilters() : std::min(most_filters, kMostFilters);
    p->images = std::min((room - p->filters * kFilterBytes) / image_bytes, kMostImages);
    p->staggered = p->images > 1 && p->filters >= p->taps;
    return p->filters > 1 || p->resident;
  }

  // Estimated cycles: of the tensor cores, or of L2, which delivers about 22 bytes per cycle to a
  // multiprocessor.
  static double TimeOf(const PlaneTile& tile, const PlaneProduct& p, uint32_t multiprocessors) {
    constexpr double kCacheBytes = 22, kStore = 1500;
    const double products = 0.5 * p.taps * kTaps * tile.rows * (tile.columns + 4) * (kChannels / 16);
    const double bytes = (tile.rows + p.taps - 1) * tile.columns * kChannels * sizeof(__half) +
                         (p.resident ? 0 : p.taps * kFilterBytes);
    const double tile_time = p.steps * std::max(products, bytes / kCacheBytes) + kStore;
    return tile_time * static_cast<double>(DivideUp(p.tiles, multiprocessors));
  }

  CUresult Encode(const std::byte* input, PlaneProduct* p) const {
    const ConvolutionTensor& t = shape_.input;
    const ConvolutionWindow &rows = shape_.windows[1], &columns = shape_.windows[2];
    const cuuint64_t sizes[] = {columns.input, shape_.input_channels, rows.input, shape_.outer[0]};
    // For dimensions of one element any stride will do.
    const auto stride = [](uint64_t size, uint64_t elements) -> cuuint64_t {
      return size > 1 ? elements * sizeof(__half) : 16;
    };
    const cuuint64_t strides[] = {stride(sizes[1], t.channel), stride(sizes[2], t.spatial[1]),
                                  stride(sizes[3], t.outer[0])};
    const cuuint32_t box[] = {kPixels, kChannels, tile_->rows + p->taps - 1, 1};
    const cuuint32_t every[] = {1, 1, 1, 1};
    return Encoder()(&p->input, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 4, const_cast<std::byte*>(input), sizes,
                     strides, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                     CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }

  void Pack(KernelChain* chain, const std::byte* from, std::byte* to) const {
    PlanePacking p = {};
    p.from = reinterpret_cast<const __half*>(from);
    p.to = reinterpret_cast<uint4*>(to);
    p.filter = shape_.filter;
    p.outputs = static_cast<uint32_t>(shape_.output_channels);
    p.inputs = static_cast<uint32_t>(shape_.input_channels);
    p.units = static_cast<uint32_t>(FilterBytes() / sizeof(uint4));
    p.taps = FastDivisor(product_.taps);
    p.steps = FastDivisor(product_.steps);
    chain->Launch(PackPlaneFilters, DivideUp(p.units, kPackThreadsOfPlanes), kPackThreadsOfPlanes, p);
  }

  const ConvolutionShape shape_;
  const bool has_bias_, filter_is_owned_;
  const std::optional<ConvolutionTail> tail_;
  PlaneProduct product_{};  // without addresses
  const PlaneTile* tile_ = nullptr;
  uint32_t blocks_ = 0, shared_bytes_ = 0;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionPlanesCuda(const ConvolutionProblem& problem,
                                                          const LowerContext& context, std::string* why_not) {
  *why_not = WhyNotPlanes(problem);
  if (!why_not->empty()) return nullptr;
  auto kernel = std::make_unique<ConvolutionPlanes>(problem);
  *why_not = kernel->Create(context);
  if (!why_not->empty()) return nullptr;
  return kernel;
}

}  // namespace anydml
