// A convolution by cuDNN, where that is installed. FLOAT32 tensors that are packed as they are listed are
// read where they are; everything else has its channels as neighbours, or is brought into that order around
// it.
#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "kernel/composite.h"
#include "kernel/device_properties.h"
#include "ops/common/cuda_copies.cuh"
#include "ops/convolution/cuda/channels_last.cuh"
#include "ops/convolution/cuda/cudnn_plan.h"
#include "ops/convolution/cuda/layout.cuh"
#include "ops/operator_table.h"

namespace anydml {
namespace {

constexpr uint64_t kWorkspaceAlignment = 256;
constexpr uint32_t kMostReach = 1 << 15;  // of strides, dilations and padding

// A tensor without gaps, whose channels are of all groups.
struct PackedTensor {
  uint64_t images = 1, channels = 1;
  std::array<uint64_t, kMaxSpatial> sizes{};
  bool channels_last = false;

  ConvolutionTensor Strides() const {
    ConvolutionTensor result;
    uint64_t stride = channels_last ? channels : 1;
    for (uint32_t d = kMaxSpatial; d-- > 0; stride *= sizes[d]) result.spatial[d] = stride;
    result.channel = channels_last ? 1 : stride;
    result.outer[0] = channels_last ? stride : stride * channels;
    return result;
  }

  // Whether a tensor's elements are there, too.
  bool Is(const ConvolutionTensor& tensor, uint64_t groups) const {
    const ConvolutionTensor packed = Strides();
    bool same = tensor.offset == 0 && (images == 1 || tensor.outer[0] == packed.outer[0]) &&
                (channels == groups || tensor.channel == packed.channel) &&
                (groups == 1 || tensor.outer[1] == packed.channel * (channels / groups));
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {
      same = same && (sizes[d] == 1 || tensor.spatial[d] == packed.spatial[d]);
    }
    return same;
  }

  CudnnTensor For(DataType type, uint32_t first_dimension) const {
    const ConvolutionTensor strides = Strides();
    CudnnTensor result = {type,
                          {static_cast<int64_t>(images), static_cast<int64_t>(channels)},
                          {static_cast<int64_t>(strides.outer[0]), static_cast<int64_t>(strides.channel)}};
    for (uint32_t d = first_dimension; d < kMaxSpatial; ++d) {
      result.sizes.push_back(static_cast<int64_t>(sizes[d]));
      result.strides.push_back(static_cast<int64_t>(strides.spatial[d]));
    }
    return result;
  }
};

PackedTensor InputOf(const ConvolutionShape& s, uint64_t group_channels, bool channels_last) {
  return {s.outer[0],
          s.outer[1] * group_channels,
          {s.windows[0].input, s.windows[1].input, s.windows[2].input},
          channels_last};
}
PackedTensor OutputOf(const ConvolutionShape& s, bool channels_last) {
  return {s.outer[0],
          s.outer[1] * s.output_channels,
          {s.windows[0].output, s.windows[1].output, s.windows[2].output},
          channels_last};
}

// The forward convolution whose gradient a backward one is.
ConvolutionShape ForwardOf(const ConvolutionShape& shape) {
  ConvolutionShape result = shape;
  if (!shape.backward) return result;
  std::swap(result.input, result.output);
  std::swap(result.input_channels, result.output_channels);
  std::swap(result.filter.channel, result.filter.output_channel);
  for (ConvolutionWindow& w : result.windows) std::swap(w.input, w.output);
  return result;
}

// The padding at the end that makes a window's outputs as many as there are; that of the beginning where it
// does. False: there is none.
bool EndPadding(const ConvolutionWindow& w, int64_t* padding) {
  const int64_t reach = int64_t{w.taps - 1} * w.dilation + 1;
  const auto fits = [&](int64_t end) {
    const int64_t all = int64_t{w.input} + w.start_padding + end - reach;
    return all >= 0 && all / w.stride + 1 == w.output;
  };
  *padding = w.start_padding;
  if (fits(*padding)) return true;
  const int64_t least = (int64_t{w.output} - 1) * w.stride + reach - w.input - w.start_padding;
  *padding = std::max<int64_t>(least, 0);
  return fits(*padding);
}

std::string WhyNotCudnn(const ConvolutionProblem& problem) {
  const ConvolutionShape& s = problem.shape;
  if (s.input.offset != 0 || s.output.offset != 0) return "a tensor does not begin with its first element";
  for (const ConvolutionWindow& w : s.windows) {
    if (w.reached != w.output) return "there are outputs without taps";
    if (std::max({w.stride, w.dilation, w.start_padding}) > kMostReach) {
      return StrCat("it is for strides, dilations and padding of up to ", kMostReach);
    }
  }
  ConvolutionProblem forward = problem;
  forward.shape.backward = false;
  const std::string why_not = WhyNotChannelsLast(forward);
  if (!why_not.empty() || !s.backward) return why_not;
  forward.shape = ForwardOf(s);
  forward.shape.backward = false;
  const uint64_t unit = UnitOf(problem.type);
  if (s.input_channels % unit != 0 || s.output_channels % unit != 0) {
    return StrCat("it is for multiples of ", unit, " channels, backward");
  }
  return WhyNotChannelsLast(forward);
}

// What comes after cuDNN's result: the bias, the activation, another order.
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

class ConvolutionCudnn final : public CompositeKernel {
 public:
  explicit ConvolutionCudnn(const ConvolutionProblem& problem)
      : shape_(problem.shape),
        forward_(ForwardOf(problem.shape)),
        half_(problem.type == DataType::kFloat16),
        filter_is_owned_(problem.filter_is_owned),
        has_bias_(problem.bias.has_value()) {}

  bool Create(const ConvolutionProblem& problem, const LowerContext& context, std::string* why_not) {
    CudnnProblem cudnn;
    if (!SetProblem(problem, &cudnn)) {
      *why_not = "its outputs are not those of cuDNN's formula";
      return false;
    }
    SumLimits limits;
    const bool has_limits = limits.Set(problem.activation);
    const bool has_activation = !problem.activation.instructions.empty();
    const auto is_half = [](float number) { return ToFloat(ToHalf(number)) == number; };
    // FLOAT16 is rounded after the bias and the activation; those that only limit may come after that.
    std::vector<Rest> ways;
    const bool is_bare = !has_bias_ && !has_activation;
    const bool can_fuse =
        has_limits && (!has_activation || std::isfinite(limits.least)) && problem.bias.value_or(1) == 1;
    if (is_bare || (half_ && can_fuse)) ways.push_back({false, false, problem.type});
    if (half_ && !has_bias_ && has_activation && has_limits && is_half(limits.least) &&
        is_half(limits.most)) {
      ways.push_back({false, true, problem.type});
    }
    if (!is_bare) ways.push_back({has_bias_, has_activation, DataType::kFloat32});
    for (const Rest& rest : ways) {
      cudnn.has_bias = has_bias_ && !rest.bias;
      cudnn.limits.reset();
      if (has_activation && !rest.activation) cudnn.limits = limits;
      (shape_.backward ? cudnn.x : cudnn.y).type = rest.from;
      std::string why;
      plan_ = CudnnPlan::Create(cudnn, context.device->ordinal, &why);
      if (plan_ == nullptr) {
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
  bool packs_input(uint32_t input) const override { return input == 1 && filter_is_owned_ && packs_filter_; }
  std::string made_of() const override {
    const std::string parts = CompositeKernel::made_of();
    return StrCat(plan_->name(), parts.empty() ? "" : ", ", parts);
  }

  Status Initialize(const KernelArguments& arguments) const override {
    KernelChain chain(arguments.stream);
    OperandPacking packing = {};
    packing.filter = FilterTo(arguments.inputs[1].data, arguments.persistent.data);
    Pack(&chain, packing);
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    KernelChain chain(arguments.stream);
    OperandPacking packing = {};
    const Buffer packed_input = input_.In(arguments.temporary);
    if (input_copies_) {
      KernelArguments part = arguments;
      part.outputs = {&packed_input, 1};
      input_copies_->Launch(&chain, part, /*fill=*/0);
    } else if (input_.bytes != 0) {
      packing.images = ImagePacking(shape_, padded_channels_, input_.bytes);
      packing.images.from = arguments.inputs[0].data;
      packing.images.to = packed_input.data;
    }
    const std::byte* filter = arguments.inputs[1].data;
    if (packs_input(1)) {
      filter = arguments.persistent.data;
    } else if (packs_filter_) {
      std::byte* const packed = filter_.In(arguments.temporary).data;
      packing.filter = FilterTo(filter, packed);
      filter = packed;
    }
    Pack(&chain, packing);
    const Buffer sums = sums_.bytes != 0 ? sums_.In(arguments.temporary) : arguments.outputs[0];
    void* workspace = workspace_.In(arguments.temporary).data;
    size_t room = workspace_.bytes;
    if (room != 0) std::align(kWorkspaceAlignment, plan_->workspace_bytes(), workspace, room);
    const void* const input = input_.bytes != 0 ? packed_input.data : arguments.inputs[0].data;
    ANYDML_RETURN_IF_ERROR(
        plan_->Run(arguments.stream, {input, filter, fuses_bias_ ? arguments.inputs[2].data : nullptr,
                                      sums.data, room != 0 ? workspace : nullptr}));
    if (!rest_) return {};
    const Buffer inputs[] = {sums, arguments.inputs[2]};
    KernelArguments part = arguments;
    part.inputs = std::span(inputs).first(has_bias_ && !fuses_bias_ ? 2 : 1);
    return RunPart(*rest_, part);
  }

 private:
  uint64_t Width() const { return half_ ? 2 : 4; }
  uint64_t FilterBytes() const {
    return forward_.outer[1] * forward_.output_channels * forward_.Taps() * FilterChannels() * Width();
  }
  // Of a group, with padding.
  uint32_t FilterChannels() const {
    return shape_.backward ? static_cast<uint32_t>(forward_.input_channels) : padded_channels_;
  }

  // Chooses the order of channels, too; false where there is no such convolution.
  bool SetProblem(const ConvolutionProblem& problem, CudnnProblem* cudnn) {
    const uint64_t groups = shape_.outer[1];
    const auto filter_of = [&](uint64_t channels, bool last) {
      const auto& w = forward_.windows;
      return PackedTensor{
          groups * forward_.output_channels, channels, {w[0].taps, w[1].taps, w[2].taps}, last};
    };
    ConvolutionTensor filter = forward_.filter;
    filter.outer[0] = filter.output_channel;
    const bool filter_in_order = groups == 1 || filter.outer[1] == filter.outer[0] * forward_.output_channels;
    channels_last_ = half_ || !InputOf(shape_, shape_.input_channels, false).Is(shape_.input, groups) ||
                     !OutputOf(shape_, false).Is(shape_.output, groups) || !filter_in_order ||
                     !filter_of(forward_.input_channels, false).Is(filter, 1);
    padded_channels_ =
        static_cast<uint32_t>(channels_last_ ? PaddedChannels(problem) : shape_.input_channels);
    const PackedTensor input = InputOf(shape_, padded_channels_, channels_last_);
    const PackedTensor output = OutputOf(shape_, channels_last_);
    const PackedTensor packed_filter = filter_of(FilterChannels(), channels_last_);
    packs_filter_ =
        !filter_in_order || FilterChannels() != forward_.input_channels || !packed_filter.Is(filter, 1);
    if (padded_channels_ != shape_.input_channels || !input.Is(shape_.input, groups)) {
      input_ = AddScratch("input", input.images * input.Strides().outer[0] * Width());
      SetCopies(input);
    }
    if (packs_filter_ && !filter_is_owned_) filter_ = AddScratch("filter", FilterBytes());
    const bool is_3d =
        shape_.windows[0].input > 1 || shape_.windows[0].output > 1 || shape_.windows[0].taps > 1;
    const uint32_t first = is_3d ? 0 : 1;
    cudnn->backward = shape_.backward;
    cudnn->w = packed_filter.For(problem.type, first);
    cudnn->x = (shape_.backward ? output : input).For(problem.type, first);
    cudnn->y = (shape_.backward ? input : output).For(problem.type, first);
    for (uint32_t d = first; d < kMaxSpatial; ++d) {
      const ConvolutionWindow& w = forward_.windows[d];
      int64_t end;
      if (!EndPadding(w, &end)) return false;
      cudnn->steps.push_back(w.stride);
      cudnn->dilations.push_back(w.dilation);
      cudnn->pre_paddings.push_back(w.start_padding);
      cudnn->post_paddings.push_back(end);
    }
    return true;
  }

  // Few channels, or few elements, are packed by the kernel that packs the filter; so is padding.
  void SetCopies(const PackedTensor& packed) {
    constexpr uint64_t kFewChannels = 16, kFewElements = 1 << 19;
    if (padded_channels_ != shape_.input_channels || padded_channels_ <= kFewChannels ||
        input_.bytes / Width() <= kFewElements) {
      return;
    }
    ConvolutionTensor to = packed.Strides();
    to.outer[1] = padded_channels_;
    PlacedCopy copy;
    copy.nest = InputNest(shape_, to);
    input_copies_.emplace(std::vector<PlacedCopy>{copy}, static_cast<uint32_t>(Width()));
  }

  bool Finish(const ConvolutionProblem& problem, const LowerContext& context, const Rest& rest,
              std::string* why_not) {
    const PackedTensor output = OutputOf(shape_, channels_last_);
    const bool in_place = rest.from == problem.type && output.Is(shape_.output, shape_.outer[1]);
    if (!in_place) sums_ = AddScratch("sums", shape_.Elements() * (rest.from == DataType::kFloat16 ? 2 : 4));
    if (plan_->workspace_bytes() != 0) {
      workspace_ = AddScratch("workspace", plan_->workspace_bytes() + kWorkspaceAlignment);
    }
    if (in_place && !rest.bias && !rest.activation) return true;
    LoweredOperator lowered;
    const ConvolutionTensor sums = PackedOutput(shape_, channels_last_);
    const Status status = ChooseKernel(OperatorTableOf(context.backend).element, RestOf(problem, sums, rest),
                                       context.ForPart(), &lowered);
    if (!status.ok()) {
      *why_not = status.message();
      return false;
    }
    rest_ = AddPart(lowered.implementation, std::move(lowered.kernel));
    return true;
  }

  FilterPacking FilterTo(const void* from, void* to) const {
    FilterPacking packing(forward_, FilterChannels());
    packing.from = from;
    packing.to = to;
    return packing;
  }

  // Nothing where there is nothing to pack.
  void Pack(KernelChain* chain, OperandPacking packing) const {
    packing.image_blocks = static_cast<uint32_t>(DivideUp(packing.images.units, kPackThreads));
    const uint64_t filters = packing.filter.to == nullptr ? 0 : forward_.outer[1] * forward_.output_channels;
    const uint64_t blocks = packing.image_blocks + filters * packing.filter.chunks.divisor();
    if (blocks == 0) return;
    chain->Launch(half_ ? PackOperands<__half> : PackOperands<float>, blocks, kPackThreads, packing);
  }

  ConvolutionShape shape_, forward_;
  bool half_, filter_is_owned_, has_bias_;
  bool channels_last_ = false;
  bool packs_filter_ = false;
  bool fuses_bias_ = false;
  uint32_t padded_channels_ = 0;  // of the input, in a group
  std::unique_ptr<const CudnnPlan> plan_;
  std::optional<DeviceCopies> input_copies_;
  ScratchLayout::Piece input_, filter_, sums_, workspace_;
  std::optional<uint32_t> rest_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionCudnn(const ConvolutionProblem& problem,
                                                     const LowerContext& context, std::string* why_not) {
  *why_not = WhyNotCudnn(problem);
  if (why_not->empty()) *why_not = cudnn::TheLibrary().why_not;
  if (!why_not->empty()) return nullptr;
  auto kernel = std::make_unique<ConvolutionCudnn>(problem);
  if (!kernel->Create(problem, context, why_not)) return nullptr;
  return kernel;
}

}  // namespace anydml
