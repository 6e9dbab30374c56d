// A convolution with channels-last operands, which are brought into that order first if necessary: a product
// of windows with filters, whose operands go through shared memory in units of 16 bytes. Products with many
// steps and few outputs are cut along taps and channels. Backward convolutions are one such product per
// phase; each block works on one phase.
#include "ops/convolution/cuda/channels_last.cuh"

#include <algorithm>

#include "kernel/composite.h"
#include "ops/convolution/activation.h"
#include "ops/convolution/cuda/choose_tile.cuh"
#include "ops/convolution/cuda/operand_layout.cuh"
#include "ops/device/cuda/copies.cuh"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

enum class Way : uint8_t { kWindows, kPatches, kPhases };

class ConvolutionChannelsLast final : public CompositeKernel {
 public:
  // `product`: the convolution whose sums are computed; for a forward convolution all of it.
  ConvolutionChannelsLast(const ConvolutionProblem& problem, const ConvolutionShape& product,
                          const DevicePhases& phases)
      : shape_(product),
        phases_(phases),
        half_(problem.type == DataType::kFloat16),
        has_bias_(problem.bias.has_value()),
        filter_is_owned_(problem.filter_is_owned),
        padded_channels_(static_cast<uint32_t>(PaddedChannels(problem))),
        bias_stride_(problem.bias.value_or(0)),
        tail_(problem.tail),
        channels_last_(shape_.output.channel == 1) {}

  // False if no tiles fit.
  bool Choose(Way way, const DeviceTraits& device) {
    CutProblem product = {};
    product.rows = shape_.outer[0] * shape_.Positions();
    product.columns = shape_.output_channels;
    product.groups = shape_.outer[1] * phases_.all.divisor();
    product.multiprocessors = device.multiprocessors;
    product.has_second_kernel = way != Way::kPhases && !tail_;
    if (way != Way::kPatches) {
      tile_ = ChooseWindows(product, Steps(), half_, device.shared_bytes_per_block);
      return tile_.windows != nullptr;
    }
    const ConvolutionWindow& y = shape_.windows[1];
    const uint64_t lines = y.output + y.taps * uint64_t{y.dilation};
    if (!half_ || lines >= kMostElements / shape_.outer[0]) return false;
    tile_ = ChoosePatches(product, shape_, padded_channels_, device.shared_bytes_per_block);
    if (tile_.patches == nullptr) return false;
    patches_.pixels = FastDivisor(static_cast<uint32_t>(tile_.pixels));
    return true;
  }

  // Adds what follows the sums, if anything does, and completes the plan.
  Status Finish(const ConvolutionProblem& problem, const LowerContext& context) {
    SetInput(problem);
    SetFilter(problem);
    sums_tensor_ = problem.shape.output;
    const uint64_t elements = problem.shape.Elements();
    const bool has_activation = !limits_.Set(problem.activation);
    if (has_activation && half_) {
      // The activation is applied to sums before they are rounded.
      sums_tensor_ = PackedOutput(problem.shape, channels_last_);
      sums_ = AddScratch("sums", elements * sizeof(float));
    }
    if (tile_.cut.HasSecondKernel()) {
      parts_ = AddScratch("sums of parts", tile_.cut.splits * elements * sizeof(float));
    }
    SetProduct(problem.shape);
    if (!has_activation) return {};
    LoweredOperator activation;
    ANYDML_RETURN_IF_ERROR(
        ChooseKernel(ConvolutionActivation(problem, sums_tensor_), context.ForPart(), &activation));
    activation_ = AddPart(activation.implementation, std::move(activation.kernel));
    return {};
  }

  std::string made_of() const override {
    const uint32_t rows = tile_.patches != nullptr ? tile_.patches->rows : tile_.windows->rows,
                   columns = tile_.patches != nullptr ? tile_.patches->columns : tile_.windows->columns;
    const uint32_t splits = tile_.cut.splits;
    const std::string parts = CompositeKernel::made_of();
    return StrCat("tiles of ", rows, " x ", columns, splits > 1 ? StrCat(" in ", splits, " parts") : "",
                  parts.empty() ? "" : ", ", parts);
  }

  uint64_t persistent_bytes() const override { return packs_input(1) ? FilterBytes() : 0; }
  bool packs_input(uint32_t input) const override { return input == 1 && filter_is_owned_ && packs_filter_; }

  Status Initialize(const KernelArguments& arguments) const override {
    KernelChain chain(arguments.stream);
    OperandPacking packing = {};
    packing.filter = FilterPacking(shape_, phases_, padded_channels_);
    packing.filter.from = arguments.inputs[1].data;
    packing.filter.to = arguments.persistent.data;
    Pack(&chain, packing);
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    KernelChain chain(arguments.stream, /*all_wait=*/!input_copies_);
    GeneralProduct p = product_;
    p.input = arguments.inputs[0].data + shape_.input.offset * Width();
    OperandPacking packing = {};
    if (input_.bytes != 0) {
      const Buffer packed = input_.In(arguments.temporary);
      if (input_copies_) {
        KernelArguments part = arguments;
        part.outputs = {&packed, 1};
        LaunchCopies(*input_copies_, part, /*fill=*/0, &chain);
      } else {
        packing.images = ImagePacking(shape_, padded_channels_, input_.bytes);
        packing.images.from = arguments.inputs[0].data;
        packing.images.to = packed.data;
      }
      p.input = packed.data;
    }
    if (packs_input(1)) {
      p.filter = arguments.persistent.data;
    } else if (packs_filter_) {
      std::byte* const packed = filter_.In(arguments.temporary).data;
      packing.filter = FilterPacking(shape_, phases_, padded_channels_);
      packing.filter.from = arguments.inputs[1].data;
      packing.filter.to = packed;
      p.filter = packed;
    } else {
      p.filter = arguments.inputs[1].data + shape_.filter.offset * Width();
    }
    Pack(&chain, packing);
    const Buffer sums = sums_.bytes != 0 ? sums_.In(arguments.temporary) : arguments.outputs[0];
    const void* const bias = has_bias_ ? arguments.inputs[2].data : nullptr;
    const bool split = tile_.cut.HasSecondKernel();
    const uint32_t cluster = p.cluster.divisor();
    p.bias = split ? nullptr : bias;
    if (tail_) p.tail = TailOf(*tail_, arguments);
    p.output = split ? parts_.In(arguments.temporary).data : sums.data;
    if (tile_.patches != nullptr) {
      PatchProduct patches = patches_;
      patches.product = p;
      chain.Launch(tile_.patches->kernel, Blocks(), tile_.patches->threads, patches,
                   tile_.patches->SharedBytes(patches.pixels.divisor(), patches.per_split), cluster);
    } else {
      const WindowTile& tile = *tile_.windows;
      if (phases_.are_used || tail_) {
        chain.Launch(tile.general, Blocks(), tile.threads, p, tile.shared_bytes, cluster);
      } else {
        chain.Launch<WindowProduct>(tile.kernel, Blocks(), tile.threads, p, tile.shared_bytes, cluster);
      }
    }
    if (split) AddParts(&chain, p, bias, sums.data);
    if (!activation_) return {};
    KernelArguments part = arguments;
    part.inputs = {&sums, 1};
    return RunPart(*activation_, part);
  }

 private:
  uint64_t Width() const { return half_ ? 2 : 4; }
  uint64_t Steps() const { return shape_.Taps() * padded_channels_; }
  uint64_t FilterSteps() const { return Steps() * phases_.all.divisor(); }
  uint64_t FilterBytes() const { return shape_.outer[1] * shape_.output_channels * FilterSteps() * Width(); }
  uint64_t Blocks() const {
    const Cut& cut = tile_.cut;
    return cut.row_tiles * cut.column_tiles * shape_.outer[1] * phases_.all.divisor() * cut.splits;
  }

  void SetInput(const ConvolutionProblem& problem) {
    input_tensor_ = shape_.input;
    if (HasUnits(problem)) return;
    patches_.is_apart = ReadsChannelsApart();
    if (patches_.is_apart) return;
    input_tensor_ = PackedInput(problem);
    input_ = AddScratch("input", shape_.outer[0] * input_tensor_.outer[0] * Width());
    // With few channels, or few elements, the kernel that packs the filter also packs the input.
    constexpr uint64_t kFewChannels = 16, kFewElements = 1 << 19;
    const uint64_t elements = input_.bytes / Width();
    if (padded_channels_ <= kFewChannels || elements <= kFewElements) return;
    PlacedCopy copy;
    copy.from_offset = static_cast<int64_t>(shape_.input.offset);
    copy.nest = InputNest(shape_, input_tensor_);
    input_copies_.emplace(std::vector<PlacedCopy>{copy}, static_cast<uint32_t>(Width()));
  }

  // Whether blocks gather channels themselves, which stalls them: if there are few channels.
  bool ReadsChannelsApart() const {
    constexpr uint64_t kFewElements = 1 << 20;
    if (tile_.patches == nullptr || tile_.cut.per_split != 1 || !IsNear(shape_)) return false;
    return Blocks() * patches_.pixels.divisor() * kPatchChannels <= kFewElements;
  }

  void SetFilter(const ConvolutionProblem& problem) {
    packs_filter_ = phases_.are_used || !HasFilterRows(problem);
    product_.filter_row = static_cast<uint32_t>(packs_filter_ ? FilterSteps() : shape_.filter.output_channel);
    product_.filter_group = packs_filter_ ? shape_.output_channels * FilterSteps() : shape_.filter.outer[1];
    product_.filter_phase = static_cast<uint32_t>(Steps());
    if (packs_filter_ && !filter_is_owned_) filter_ = AddScratch("filter", FilterBytes());
  }

  void SetProduct(const ConvolutionShape& whole) {
    GeneralProduct& p = product_;
    const Cut& cut = tile_.cut;
    SetWindows(shape_, input_tensor_, &p);
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {
      p.windows[d].output = whole.windows[d].output;
      p.windows[d].stride = whole.windows[d].stride;
    }
    p.steps = static_cast<uint32_t>(Steps());
    p.padded_channels = FastDivisor(padded_channels_);
    if (tile_.patches != nullptr) {
      SetPatches();
    } else {
      p.steps_per_split = static_cast<uint32_t>(cut.per_split * tile_.windows->steps);
    }
    p.column_tiles = FastDivisor(static_cast<uint32_t>(cut.column_tiles));
    p.row_tiles = FastDivisor(static_cast<uint32_t>(cut.row_tiles));
    const bool by_images = tile_.patches != nullptr && HasTilesOfImages(shape_, tile_.patches->rows);
    const uint64_t images = by_images ? shape_.outer[0] : 1;
    p.tiles_per_part = FastDivisor(static_cast<uint32_t>(cut.row_tiles / images));
    p.rows_per_part = static_cast<uint32_t>(shape_.outer[0] / images * shape_.Positions());
    p.phases = phases_;
    const bool split = cut.HasSecondKernel();
    p.cluster = FastDivisor(cut.in_cluster ? cut.splits : 1);
    p.target = split ? PackedOutput(whole, channels_last_) : sums_tensor_;
    p.split_stride = split ? whole.Elements() : 0;
    p.bias_stride = bias_stride_;
    if (!split) p.limits = limits_;
    p.is_half_target = !split && half_ && sums_.bytes == 0;
    p.stores_by_channels = channels_last_;
    const uint32_t width = p.is_half_target ? 2 : 4;
    const bool has_gaps = phases_.all.divisor() > 1 && !channels_last_;
    p.unit_bytes = has_gaps ? width : StoreUnit(whole, p.target, channels_last_, width);
  }

  void SetPatches() {
    const ConvolutionWindow &y = shape_.windows[1], &x = shape_.windows[2];
    patches_.width = FastDivisor(x.output + (x.taps - 1) * x.dilation);
    patches_.rows = FastDivisor(y.output + (y.taps - 1) * y.dilation);
    patches_.images = static_cast<uint32_t>(shape_.outer[0]);
    patches_.all_taps = static_cast<uint32_t>(shape_.Taps());
    patches_.chunks = static_cast<uint32_t>(DivideUp(padded_channels_, kPatchChannels));
    patches_.per_split = static_cast<uint32_t>(tile_.cut.per_split);
    patches_.channel_stride = static_cast<uint32_t>(input_tensor_.channel);
  }

  // Does nothing if there is nothing to pack.
  void Pack(KernelChain* chain, OperandPacking packing) const {
    packing.image_blocks = static_cast<uint32_t>(DivideUp(packing.images.units, kPackThreads));
    const uint64_t filters = packing.filter.to == nullptr ? 0 : shape_.outer[1] * shape_.output_channels;
    const uint64_t blocks = packing.image_blocks + filters * packing.filter.chunks.divisor();
    if (blocks == 0) return;
    // Looking for phases makes the kernel slower.
    void (*const with_phases)(OperandPacking) =
        half_ ? PackOperands<__half, true> : PackOperands<float, true>;
    void (*const without)(OperandPacking) = half_ ? PackOperands<__half, false> : PackOperands<float, false>;
    chain->Launch(phases_.are_used ? with_phases : without, blocks, kPackThreads, packing);
  }

  void AddParts(KernelChain* chain, const WindowProduct& product, const void* bias, void* output) const {
    PartSums p = {};
    p.parts = static_cast<const float*>(product.output);
    p.bias = bias;
    p.output = output;
    p.elements = shape_.Elements();
    p.bias_stride = bias_stride_;
    p.limits = limits_;
    p.splits = tile_.cut.splits;
    p.channels_last = channels_last_;
    p.is_half_target = half_ && sums_.bytes == 0;
    p.all_channels = FastDivisor(static_cast<uint32_t>(shape_.outer[1] * shape_.output_channels));
    p.group_channels = FastDivisor(static_cast<uint32_t>(shape_.output_channels));
    p.positions = product.positions;
    std::copy(std::begin(product.outputs), std::end(product.outputs), p.outputs);
    p.target = sums_tensor_;
    chain->Launch(half_ ? AddWindowParts<__half> : AddWindowParts<float>, DivideUp(p.elements, kPackThreads),
                  kPackThreads, p);
  }

  ConvolutionShape shape_;  // of a backward convolution: what its phases have in common
  DevicePhases phases_;
  bool half_, has_bias_, filter_is_owned_;
  uint32_t padded_channels_;
  uint64_t bias_stride_;
  std::optional<ConvolutionTail> tail_;
  SumLimits limits_;
  ChosenTile tile_;
  GeneralProduct product_{};  // without addresses
  PatchProduct patches_{};    // without the product
  bool channels_last_;        // of the output, and of sums
  bool packs_filter_ = false;
  ConvolutionTensor input_tensor_, sums_tensor_;
  std::optional<DeviceCopies> input_copies_;
  ScratchLayout::Piece input_, filter_, sums_, parts_;
  std::optional<uint32_t> activation_;
};

std::unique_ptr<const Kernel> Create(const ConvolutionProblem& problem, const LowerContext& context, Way way,
                                     std::string* why_not) {
  ConvolutionProblem product = problem;
  DevicePhases phases;
  if (way == Way::kPhases) {
    *why_not =
        problem.shape.backward ? MakeDevicePhases(problem.shape, &phases, &product.shape) : "it is forward";
    if (!why_not->empty()) return nullptr;
  }
  *why_not = WhyNotChannelsLast(product, phases.all.divisor());
  if (why_not->empty() && problem.tail) {
    *why_not = way == Way::kWindows ? WhyNotTail(problem)
                                    : "what comes after sums is done by cuda.channels_last alone";
  }
  if (!why_not->empty()) return nullptr;
  auto kernel = std::make_unique<ConvolutionChannelsLast>(problem, product.shape, phases);
  if (!kernel->Choose(way, *context.device)) {
    *why_not = way == Way::kPatches
                   ? "it is for FLOAT16 windows of few pixels that overlap, a stride of 1, up to 2 dimensions"
                   : "the device's blocks have too little shared memory";
    return nullptr;
  }
  const Status status = kernel->Finish(problem, context);
  if (status.ok()) return kernel;
  *why_not = status.message();
  return nullptr;
}

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionPatchesCuda(const ConvolutionProblem& problem,
                                                           const LowerContext& context,
                                                           std::string* why_not) {
  return Create(problem, context, Way::kPatches, why_not);
}

std::unique_ptr<const Kernel> CreateConvolutionChannelsLastCuda(const ConvolutionProblem& problem,
                                                                const LowerContext& context,
                                                                std::string* why_not) {
  return Create(problem, context, Way::kWindows, why_not);
}

std::unique_ptr<const Kernel> CreateConvolutionPhasesCuda(const ConvolutionProblem& problem,
                                                          const LowerContext& context, std::string* why_not) {
  return Create(problem, context, Way::kPhases, why_not);
}

}  // namespace anydml
