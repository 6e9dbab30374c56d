// A convolution by cuDNN, if it is installed. FLOAT32 tensors packed in their dimensions' order are read in
// place; everything else is channels-last, or is converted around cuDNN.
#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "kernel/composite.h"
#include "kernel/device_traits.h"
#include "ops/convolution/cuda/channels_last.cuh"
#include "ops/convolution/cuda/cudnn/cudnn_layout.h"
#include "ops/convolution/cuda/layout_change_half.cuh"
#include "ops/convolution/cuda/operand_layout.cuh"
#include "ops/device/cuda/copies.cuh"
#include "ops/implementation_list.h"

namespace anydml {
namespace {

constexpr uint64_t kWorkspaceAlignment = 256;

// Limits of the kernels that convert layouts.
std::string WhyNotPacked(const ConvolutionProblem& problem, const CudnnLayout& layout) {
  ConvolutionProblem checked = problem;
  checked.shape.backward = false;
  std::string why_not = WhyNotChannelsLast(checked);
  checked.shape = layout.forward;
  if (why_not.empty()) why_not = WhyNotChannelsLast(checked);
  return why_not;
}

// What follows cuDNN's result: bias, activation, conversion of the layout.
struct Rest {
  bool bias = false, activation = false;
  DataType from = DataType::kFloat32;
};

ElementProblem RestOf(const ConvolutionProblem& problem, const ConvolutionTensor& sums, const Rest& rest) {
  ConvolutionProblem left = problem;
  if (!rest.activation) left.activation = {};
  ElementProblem result = ConvolutionActivation(left, sums);
  result.inputs[0].type = rest.from;
  if (!rest.bias) return result;
  const uint64_t group = problem.shape.output_channels * *problem.bias;
  result.inputs.push_back({problem.type, {0, group, *problem.bias}});
  ElementProgram program;
  const uint8_t sum = program.Load(0, Class::kF32);
  program.Apply(ElementFunction::kAdd, Class::kF32, {sum, program.Load(1, Class::kF32)});
  program.instructions.insert(program.instructions.end(), left.activation.instructions.begin(),
                              left.activation.instructions.end());
  program.Store(0, sum, Class::kF32);
  result.program = std::move(program);
  return result;
}

// The largest unit in which planes of FLOAT16 channels can be read and written; 0 if positions are not
// contiguous.
uint32_t PlaneUnit(const ConvolutionTensor& tensor, const CudnnPacked& packed) {
  uint64_t positions = 1;
  for (uint32_t d = kMaxSpatial; d-- > 0; positions *= packed.sizes[d]) {
    if (packed.sizes[d] > 1 && tensor.spatial[d] != positions) return 0;
  }
  const uint64_t distances =
      positions | tensor.channel | tensor.outer[1] | (packed.images > 1 ? tensor.outer[0] : 0);
  return LargestUnit(distances * sizeof(__half));
}

// The kernels for each unit.
auto PackKernel(uint32_t unit) {
  return unit == 16  ? PackHalfOperands<16>
         : unit == 8 ? PackHalfOperands<8>
         : unit == 4 ? PackHalfOperands<4>
                     : PackHalfOperands<2>;
}
auto UnpackKernel(uint32_t unit) {
  return unit == 16  ? UnpackHalfOutput<16>
         : unit == 8 ? UnpackHalfOutput<8>
         : unit == 4 ? UnpackHalfOutput<4>
                     : UnpackHalfOutput<2>;
}
auto FinishKernel(uint32_t unit) {
  return unit == 16  ? FinishHalfOutput<16>
         : unit == 8 ? FinishHalfOutput<8>
         : unit == 4 ? FinishHalfOutput<4>
                     : FinishHalfOutput<2>;
}

class ConvolutionCudnn final : public CompositeKernel {
 public:
  ConvolutionCudnn(const ConvolutionProblem& problem, const CudnnLayout& layout)
      : shape_(problem.shape),
        layout_(layout),
        half_(problem.type == DataType::kFloat16),
        filter_is_owned_(problem.filter_is_owned),
        has_bias_(problem.bias.has_value()),
        tail_(problem.tail) {
    if (layout_.packs_input) {
      input_ = AddScratch("input", layout_.input.Elements() * Width());
      SetCopies();
    }
    if (layout_.packs_filter && !filter_is_owned_) filter_ = AddScratch("filter", FilterBytes());
  }

  bool Create(const ConvolutionProblem& problem, const LowerContext& context, std::string* why_not) {
    CudnnProblem cudnn = layout_.problem;
    SumLimits limits;
    const bool has_limits = limits.Set(problem.activation);
    const bool has_activation = !problem.activation.instructions.empty();
    const auto is_half = [](float number) { return ToFloat(ToHalf(number)) == number; };
    // FLOAT16 is rounded after the bias and the activation; limits alone may be applied after rounding.
    std::vector<Rest> ways;
    const bool is_bare = !has_bias_ && !has_activation;
    const bool can_fuse =
        has_limits && (!has_activation || std::isfinite(limits.least)) && problem.bias.value_or(1) == 1;
    if (is_bare || (half_ && can_fuse)) ways.push_back({false, false, problem.type});
    if (half_ && !tail_ && !has_bias_ && has_activation && has_limits && is_half(limits.least) &&
        is_half(limits.most)) {
      ways.push_back({false, true, problem.type});
    }
    if (!is_bare && !tail_) ways.push_back({has_bias_, has_activation, DataType::kFloat32});
    if (ways.empty())
      *why_not = "before other operators it takes RELU, CLIP and a bias of neighbouring numbers";
    for (const Rest& rest : ways) {
      cudnn.has_bias = has_bias_ && !rest.bias;
      cudnn.limits.reset();
      if (has_activation && !rest.activation) cudnn.limits = limits;
      (shape_.backward ? cudnn.x : cudnn.y).type = rest.from;
      std::string why;
      graph_ = CreateCudnnConvolution(cudnn, context.device->ordinal, &why);
      if (graph_ == nullptr) {
        if (why_not->empty()) *why_not = why;
        continue;
      }
      why_not->clear();
      fuses_bias_ = cudnn.has_bias;
      return Finish(problem, context, rest, why_not);
    }
    return false;
  }

  uint64_t persistent_bytes() const override { return packs_input(1) ? FilterBytes() : 0; }
  bool packs_input(uint32_t input) const override {
    return input == 1 && filter_is_owned_ && layout_.packs_filter;
  }
  std::string made_of() const override {
    const std::string parts = CompositeKernel::made_of();
    return StrCat(graph_->name(), parts.empty() ? "" : ", ", parts);
  }

  Status Initialize(const KernelArguments& arguments) const override {
    KernelChain chain(arguments.stream);
    OperandPacking packing = {};
    packing.filter = FilterTo(arguments.inputs[1].data, arguments.persistent.data);
    Pack(&chain, packing);
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    KernelChain chain(arguments.stream, /*all_wait=*/!input_copies_);
    OperandPacking packing = {};
    const std::byte* filter = arguments.inputs[1].data;
    if (packs_input(1)) {
      filter = arguments.persistent.data;
    } else if (layout_.packs_filter) {
      std::byte* const packed = filter_.In(arguments.temporary).data;
      packing.filter = FilterTo(filter, packed);
      filter = packed;
    }
    const Buffer packed_input = input_.In(arguments.temporary);
    if (load_unit_ != 0) {
      HalfOperands operands = {input_tiles_, packing.filter};
      operands.tiles.from = arguments.inputs[0].data;
      operands.tiles.to = packed_input.data;
      const HalfLaunch launch(operands.tiles, packing.filter.to != nullptr);
      chain.Launch(PackKernel(load_unit_), launch.blocks + FilterBlocks(packing.filter), launch.threads,
                   operands);
      packing.filter.to = nullptr;
    } else if (input_copies_) {
      KernelArguments part = arguments;
      part.outputs = {&packed_input, 1};
      LaunchCopies(*input_copies_, part, /*fill=*/0, &chain);
    } else if (input_.bytes != 0) {
      packing.images = ImagePacking(shape_, layout_.input_channels, input_.bytes);
      packing.images.from = arguments.inputs[0].data;
      packing.images.to = packed_input.data;
    }
    Pack(&chain, packing);
    const Buffer sums = sums_.bytes != 0 ? sums_.In(arguments.temporary) : arguments.outputs[0];
    void* workspace = workspace_.In(arguments.temporary).data;
    size_t room = workspace_.bytes;
    if (room != 0) std::align(kWorkspaceAlignment, graph_->workspace_bytes(), workspace, room);
    const void* const images = input_.bytes != 0 ? packed_input.data : arguments.inputs[0].data;
    const void* const addresses[] = {shape_.backward ? sums.data : images, filter,
                                     shape_.backward ? images : sums.data,
                                     fuses_bias_ ? arguments.inputs[2].data : nullptr};
    const std::string error = graph_->Run(arguments.stream, std::span(addresses).first(fuses_bias_ ? 4 : 3),
                                          room != 0 ? workspace : nullptr);
    if (!error.empty()) {
      return Status(Code::kDriverInternal, StrCat("CONVOLUTION: cuDNN could not run it: ", error));
    }
    if (store_unit_ != 0) {
      HalfTiles tiles = output_tiles_;
      tiles.from = sums.data;
      tiles.to = arguments.outputs[0].data;
      KernelChain after(arguments.stream, /*all_wait=*/true);
      const HalfLaunch launch(tiles, /*packs_filter=*/false);
      if (tail_) {
        const HalfOutput output = {tiles, {TailOf(*tail_, arguments)}};
        after.Launch(FinishKernel(store_unit_), launch.blocks, launch.threads, output);
      } else {
        after.Launch(UnpackKernel(store_unit_), launch.blocks, launch.threads, tiles);
      }
    }
    if (!rest_) return {};
    const Buffer inputs[] = {sums, arguments.inputs[2]};
    KernelArguments part = arguments;
    part.inputs = std::span(inputs).first(has_bias_ && !fuses_bias_ ? 2 : 1);
    return RunPart(*rest_, part);
  }

 private:
  uint64_t Width() const { return half_ ? 2 : 4; }
  uint64_t FilterBytes() const { return layout_.filter.Elements() * Width(); }

  // With few channels, or few elements, the kernel that packs the filter also packs the input; it also packs
  // padding.
  void SetCopies() {
    constexpr uint64_t kFewChannels = 16, kFewElements = 1 << 19;
    if (half_ && shape_.input_channels > kFewChannels) load_unit_ = PlaneUnit(shape_.input, layout_.input);
    if (load_unit_ != 0) return SetInputTiles();
    if (layout_.input_channels != shape_.input_channels || layout_.input_channels <= kFewChannels ||
        layout_.input.Elements() <= kFewElements) {
      return;
    }
    ConvolutionTensor to = layout_.input.Strides();
    to.outer[1] = layout_.input_channels;
    PlacedCopy copy;
    copy.nest = InputNest(shape_, to);
    input_copies_.emplace(std::vector<PlacedCopy>{copy}, static_cast<uint32_t>(Width()));
  }

  void SetInputTiles() {
    const CudnnPacked& packed = layout_.input;
    const uint64_t positions = packed.sizes[0] * packed.sizes[1] * packed.sizes[2];
    HalfTiles& tiles = input_tiles_;
    tiles = HalfTiles(packed.images, shape_.outer[1], static_cast<uint32_t>(shape_.input_channels),
                      layout_.input_channels, static_cast<uint32_t>(positions));
    tiles.from_row = shape_.input.channel;
    tiles.from_group = shape_.input.outer[1];
    tiles.from_image = shape_.input.outer[0];
    tiles.to_column = packed.channels;
    tiles.to_group = layout_.input_channels;
    tiles.to_image = positions * packed.channels;
    tiles.ChooseSquares(load_unit_);
  }

  // False if the output's planes cannot be written by tiles.
  bool SetOutputTiles() {
    const CudnnPacked& packed = layout_.output;
    const bool is_one_group =
        shape_.outer[1] == 1 || shape_.output.outer[1] == shape_.output.channel * shape_.output_channels;
    if (!half_ || !is_one_group || packed.channels % 8 != 0) return false;
    store_unit_ = PlaneUnit(shape_.output, packed);
    if (store_unit_ == 0) return false;
    const auto positions = static_cast<uint32_t>(shape_.Positions());
    HalfTiles& tiles = output_tiles_;
    tiles = HalfTiles(packed.images, 1, positions, positions, static_cast<uint32_t>(packed.channels));
    tiles.from_row = packed.channels;
    tiles.from_image = positions * packed.channels;
    tiles.to_column = shape_.output.channel;
    tiles.to_image = shape_.output.outer[0];
    tiles.ChooseSquares(store_unit_);
    return true;
  }

  bool Finish(const ConvolutionProblem& problem, const LowerContext& context, const Rest& rest,
              std::string* why_not) {
    const bool in_place = rest.from == problem.type && !layout_.packs_output;
    if (!in_place) sums_ = AddScratch("sums", shape_.Elements() * (rest.from == DataType::kFloat16 ? 2 : 4));
    if (graph_->workspace_bytes() != 0) {
      workspace_ = AddScratch("workspace", graph_->workspace_bytes() + kWorkspaceAlignment);
    }
    if (!rest.bias && !rest.activation && (in_place || SetOutputTiles())) return true;
    if (tail_) {
      *why_not = "what comes after sums is done where channels are brought apart, by tiles";
      return false;
    }
    LoweredOperator lowered;
    const ConvolutionTensor sums = PackedOutput(shape_, layout_.channels_last);
    const Status status = ChooseKernel(RestOf(problem, sums, rest), context.ForPart(), &lowered);
    if (!status.ok()) {
      *why_not = status.message();
      return false;
    }
    rest_ = AddPart(lowered.implementation, std::move(lowered.kernel));
    return true;
  }

  FilterPacking FilterTo(const void* from, void* to) const {
    FilterPacking packing(layout_.forward, /*of=*/{}, layout_.filter_channels);
    packing.from = from;
    packing.to = to;
    return packing;
  }

  uint64_t FilterBlocks(const FilterPacking& packing) const {
    return packing.to == nullptr ? 0 : layout_.filter.images * packing.chunks.divisor();
  }

  // Does nothing if there is nothing to pack.
  void Pack(KernelChain* chain, OperandPacking packing) const {
    packing.image_blocks = static_cast<uint32_t>(DivideUp(packing.images.units, kPackThreads));
    const uint64_t blocks = packing.image_blocks + FilterBlocks(packing.filter);
    if (blocks == 0) return;
    chain->Launch(half_ ? PackOperands<__half, false> : PackOperands<float, false>, blocks, kPackThreads,
                  packing);
  }

  ConvolutionShape shape_;
  CudnnLayout layout_;
  bool half_, filter_is_owned_, has_bias_;
  std::optional<ConvolutionTail> tail_;
  bool fuses_bias_ = false;
  std::shared_ptr<const cudnn::Graph> graph_;
  std::optional<DeviceCopies> input_copies_;
  HalfTiles input_tiles_, output_tiles_;     // without addresses
  uint32_t load_unit_ = 0, store_unit_ = 0;  // of these tiles, in bytes; 0: no tiles
  ScratchLayout::Piece input_, filter_, sums_, workspace_;
  std::optional<uint32_t> rest_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionCudnn(const ConvolutionProblem& problem,
                                                     const LowerContext& context, std::string* why_not) {
  CudnnLayout layout;
  *why_not = layout.Set(problem);
  if (problem.tail) {
    if (why_not->empty() && (problem.type != DataType::kFloat16 || !layout.packs_output)) {
      *why_not = "what comes after sums is done where channels of FLOAT16 are brought apart";
    }
    if (why_not->empty()) *why_not = WhyNotTail(problem);
  }
  if (why_not->empty()) *why_not = WhyNotPacked(problem, layout);
  if (why_not->empty()) *why_not = cudnn::TheLibrary().why_not;
  if (!why_not->empty()) return nullptr;
  auto kernel = std::make_unique<ConvolutionCudnn>(problem, layout);
  if (!kernel->Create(problem, context, why_not)) return nullptr;
  return kernel;
}

}  // namespace anydml
