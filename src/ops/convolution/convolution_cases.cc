#include "ops/convolution/convolution_test_support.h"
#include "ops/gemm/gemm_cases.h"
#include "support/cases.h"

namespace anydml::testing {
namespace {

constexpr OperatorType kOperators[] = {OperatorType::kConvolution};

// A spatial dimension with consistent sizes.
struct Spatial {
  uint32_t input, taps, output, stride, dilation, start, end, output_padding;
};

constexpr Spatial kSingle = {1, 1, 1, 1, 1, 0, 0, 0};

// Limit of a case's multiplications. With sanitizers a fuzzer takes a quarter of a microsecond for each.
constexpr uint64_t kMostProducts = uint64_t{1} << 25;

// Sizes as in networks, in rows of whole vectors.
Spatial MakeUsual(ByteSource& source, uint32_t stride) {
  const uint32_t size = 4 * source.Between(1, 6);
  return {size, 3, (size - 1) / stride + 1, stride, 1, 1, 1, 0};
}

Spatial MakeSpatial(ByteSource& source, bool backward) {
  Spatial s = {};
  s.taps = source.OneIn(3) ? 1 : source.Between(1, 5);
  s.stride = source.OneIn(2) ? 1 : source.Between(1, 3);
  s.dilation = source.OneIn(2) ? 1 : source.Between(1, 3);
  s.start = source.OneIn(2) ? 0 : source.Between(0, 3);
  s.end = source.OneIn(2) ? 0 : source.Between(0, 3);
  if (!backward && source.OneIn(6)) return MakeUsual(source, source.Between(1, 2));
  const uint32_t reach = (s.taps - 1) * s.dilation + 1;
  if (backward) {
    s.input = source.Between(1, 8);
    s.output_padding = source.OneIn(2) ? 0 : source.Between(0, 2);
    const uint32_t whole = (s.input - 1) * s.stride + reach + s.output_padding;
    const uint32_t padding = s.start + s.end, step = std::max(s.stride, s.dilation);
    if (whole <= padding && padding - whole + 1 < step) {
      s.output = source.Between(1, step - 1 - (padding - whole));
      return s;
    }
    if (whole <= padding) s.start = s.end = 0;
    // Clients express output padding by a larger output.
    s.output = whole - s.start - s.end + (source.OneIn(4) ? source.Between(0, 2) : 0);
    return s;
  }
  s.input = source.Between(reach > s.start + s.end ? reach - s.start - s.end : 1, 14 + reach);
  const uint32_t windows = (s.input + s.start + s.end - reach) / s.stride + 1;
  s.output_padding = source.OneIn(8) ? source.Between(0, 2) : 0;
  s.output = windows + s.output_padding;
  if (source.OneIn(8)) s.output = source.Between(1, s.output);
  return s;
}

constexpr OperatorType kActivations[] = {OperatorType::kActivationRelu, OperatorType::kActivationTanh,
                                         OperatorType::kActivationSigmoid, OperatorType::kActivationGelu};

// Whole units of 16 bytes, more than one tile of a device's kernels.
constexpr uint32_t kManyIn[] = {8, 16, 64, 72}, kManyOut[] = {8, 40, 72, 136};

// Around multiples of vectors of channels, and of tiles of them.
constexpr uint32_t kOddIn[] = {1, 2, 3, 5, 17, 33}, kOddOut[] = {1, 3, 5, 8, 17, 24, 33, 50};

// One tap or three, with rows of whole units of 16 bytes.
Spatial MakeUnits(ByteSource& source, uint32_t taps) {
  const uint32_t size = 8 * source.Between(1, 3);
  return {size, taps, size, 1, 1, taps / 2, taps / 2, 0};
}

// One tap of few channels: whole units, since products take 32 channels at a time.
constexpr uint32_t kPointIn[] = {8, 24, 40, 72, 144};

Spatial MakePoints(ByteSource& source, bool whole) {
  const uint32_t size = whole ? 8 * source.Between(1, 3) : source.Between(1, 14);
  return {size, 1, size, 1, 1, 0, 0, 0};
}

struct Kind {
  bool depthwise, many, points, channels_last;
  uint32_t spatial;  // number of spatial dimensions
};

struct Channels {
  uint32_t groups, in, out;  // `in` and `out` per group
};

Channels MakeChannels(ByteSource& source, const Kind& kind) {
  Channels c = {};
  c.groups = source.OneIn(2) ? 1 : source.Between(1, kind.many ? 2 : 4);
  c.in = source.OneIn(4) ? 1 : source.Between(1, 9);
  c.out = source.OneIn(4) ? 1 : source.Between(1, 20);
  if (kind.many) {
    c.in = source.Any(kManyIn);
    c.out = source.Any(kManyOut);
    if (kind.points) {
      c.in = source.Any(kPointIn);
      c.groups = 1;
    }
  } else if (kind.depthwise) {
    c.in = c.out = 1;
    c.groups = kind.channels_last ? source.Any(kOddOut) : 4 * source.Between(1, 2);
  } else if (kind.channels_last && kind.spatial < 3 && source.OneIn(2)) {
    c.groups = source.OneIn(4) ? 2 : 1;
    c.in = source.Any(kOddIn);
    c.out = source.Any(kOddOut);
  }
  return c;
}

void AddBiasAndActivation(DataType type, const std::vector<uint32_t>& bias, CaseMaker& make, Case* problem) {
  if (make.source().OneIn(2)) {
    const TensorDesc tensor = make.Input(type, bias);
    SetField(&problem->desc, "BiasTensor", tensor);
    problem->inputs[2] = NumbersThatAddUp(tensor, make);
  }
  if (make.source().OneIn(3)) {
    const OperatorDesc activation = MakeDesc(FindOperator(make.source().Any(kActivations))->name, {});
    SetField(&problem->desc, "FusedActivation", std::make_shared<const OperatorDesc>(activation));
  }
}

Case MakeConvolution(OperatorType, CaseMaker& make) {
  ByteSource& source = make.source();
  const DataType type = source.OneIn(2) ? DataType::kFloat16 : DataType::kFloat32;
  const bool depthwise = source.OneIn(6), many = !depthwise && source.OneIn(5);
  const bool units = many && source.OneIn(2), points = units && source.OneIn(2);
  const bool channels_last = source.OneIn(depthwise || many ? 2 : 4);
  const uint32_t spatial = depthwise || units ? 2 : source.Between(1, many ? 2 : 3);
  const uint32_t backward = !depthwise && !units && source.OneIn(3) ? 1 : 0,
                 usual_stride = source.Between(1, 2);
  const uint32_t batch = source.Between(1, 2);
  const auto [groups, in, out] = MakeChannels(source, {depthwise, many, points, channels_last, spatial});
  std::vector<uint32_t> input = {batch, in * groups}, output = {batch, out * groups}, filter,
                        bias = {1, out * groups};
  if (backward != 0) {
    filter = {in * groups, out};
  } else {
    filter = {out * groups, in};
  }
  std::vector<uint32_t> strides, dilations, start, end, padding;
  const uint32_t usual_taps = source.OneIn(2) ? 1 : 3;
  uint64_t products = uint64_t{in} * groups * out;  // per image
  for (uint32_t d = 0; d < spatial; ++d) {
    const bool usual = depthwise && !(channels_last && source.OneIn(2));
    Spatial s = points  ? MakePoints(source, !channels_last || source.OneIn(2))
                : units ? MakeUnits(source, usual_taps)
                : usual ? MakeUsual(source, usual_stride)
                        : MakeSpatial(source, backward != 0);
    const bool has_room = products * s.output * s.taps <= kMostProducts;
    if (!has_room || (spatial == 3 && d == 0 && s.input > 4 && s.taps == 1)) s = kSingle;
    products *= uint64_t{s.output} * s.taps;
    input.push_back(s.input);
    filter.push_back(s.taps);
    output.push_back(s.output);
    bias.push_back(1);
    strides.push_back(s.stride);
    dilations.push_back(s.dilation);
    start.push_back(s.start);
    end.push_back(s.end);
    padding.push_back(s.output_padding);
  }
  if (batch * products > kMostProducts) input[0] = output[0] = 1;
  const auto gap = [&] { return !points && source.OneIn(4) ? source.Between(1, 3) : 0; };
  // A network's first convolution may change to channels-last.
  const bool input_last = channels_last && !source.OneIn(6);
  const auto planes = [&](const std::vector<uint32_t>& sizes) {
    return points && source.OneIn(2) ? Packed(type, sizes) : make.Input(type, sizes);
  };
  const TensorDesc input_tensor = input_last ? ChannelsLast(type, input, gap()) : planes(input),
                   filter_tensor = points ? Packed(type, filter) : make.Input(type, filter),
                   output_tensor =
                       channels_last ? ChannelsLast(type, output, gap()) : make.Output(type, output);
  Case problem;
  problem.desc = MakeDesc("CONVOLUTION", {{"InputTensor", input_tensor},
                                          {"FilterTensor", filter_tensor},
                                          {"OutputTensor", output_tensor},
                                          {"Mode", source.Between(0, 1)},
                                          {"Direction", backward},
                                          {"DimensionCount", spatial},
                                          {"Strides", strides},
                                          {"Dilations", dilations},
                                          {"StartPadding", start},
                                          {"EndPadding", end},
                                          {"OutputPadding", padding},
                                          {"GroupCount", groups}});
  problem.inputs = {NumbersThatAddUp(input_tensor, make), NumbersThatAddUp(filter_tensor, make), {}};
  AddBiasAndActivation(type, bias, make, &problem);
  return problem;
}

}  // namespace

CaseFamily family::convolution::Cases() { return {"convolution", kOperators, MakeConvolution}; }

}  // namespace anydml::testing
