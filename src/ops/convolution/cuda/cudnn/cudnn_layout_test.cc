// Evaluates the description that cuDNN gets of a convolution by cuDNN's formulas, and compares with
// DirectML's convolution.
#include "ops/convolution/cuda/cudnn/cudnn_layout.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace anydml {
namespace {

using Numbers = std::vector<int64_t>;

class Problems {
 public:
  // In DirectML's dimensions: see ShapeOf.
  ConvolutionProblem Next() {
    ConvolutionProblem p;
    p.type = Below(2) == 0 ? DataType::kFloat16 : DataType::kFloat32;
    ConvolutionShape& s = p.shape;
    s.backward = Below(3) == 0;
    s.outer = {1 + Below(2), Below(2) == 0 ? 1 : 1 + Below(3)};
    s.input_channels = s.backward ? 8 * (1 + Below(2)) : 1 + Below(9);
    s.output_channels = s.backward ? 8 * (1 + Below(2)) : 1 + Below(5);
    for (uint32_t d = Below(3); d < kMaxSpatial; ++d) {
      ConvolutionWindow& w = s.windows[d];
      w.taps = 1 + Below(3);
      w.stride = 1 + Below(3);
      w.dilation = 1 + Below(2);
      w.start_padding = Below(3);
      const uint32_t reach = (w.taps - 1) * w.dilation + 1, end = Below(3);
      w.input = reach + Below(3);
      const uint32_t padding = std::min(w.start_padding + end, reach - 1);
      w.start_padding = std::min(w.start_padding, padding);
      w.output = s.backward ? (w.input - 1) * w.stride + reach - padding
                            : (w.input + padding - reach) / w.stride + 1;
      w.reached = w.output;
    }
    const auto& w = s.windows;
    SetImage(&s.input, s.input_channels, s.outer[1], {w[0].input, w[1].input, w[2].input});
    SetImage(&s.output, s.output_channels, s.outer[1], {w[0].output, w[1].output, w[2].output});
    SetFilter(&s);
    return p;
  }

  uint32_t Below(uint32_t limit) { return static_cast<uint32_t>(random_() % limit); }

 private:
  // As listed or channels last, some with gaps.
  void SetImage(ConvolutionTensor* image, uint64_t channels, uint64_t groups,
                const std::array<uint64_t, kMaxSpatial>& sizes) {
    const uint64_t all = channels * groups + (Below(3) == 0 ? 1 : 0);
    *image = CudnnPacked{1, all, sizes, Below(2) == 0}.Strides();
    image->outer[1] = image->channel * channels;
  }

  void SetFilter(ConvolutionShape* s) {
    const uint64_t outer = s->backward ? s->input_channels : s->output_channels;
    const uint64_t inner = s->backward ? s->output_channels : s->input_channels;
    const auto& w = s->windows;
    const CudnnPacked packed = {outer * s->outer[1], inner, {w[0].taps, w[1].taps, w[2].taps}, Below(2) == 0};
    ConvolutionTensor& f = s->filter;
    f = packed.Strides();
    const uint64_t outer_stride = f.outer[0], inner_stride = f.channel;
    f.outer = {0, outer * outer_stride};
    f.output_channel = s->backward ? inner_stride : outer_stride;
    f.channel = s->backward ? outer_stride : inner_stride;
    if (Below(3) != 0) return;
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {  // mirrored
      f.offset += f.spatial[d] * (w[d].taps - 1);
      f.spatial[d] = uint64_t{0} - f.spatial[d];
    }
  }

  std::mt19937 random_{1};
};

using Index = std::array<uint64_t, 6>;  // image, group, channel, position

void ForEach(const Index& sizes, const std::function<void(const Index&)>& call) {
  Index at{};
  for (;;) {
    call(at);
    size_t d = at.size();
    while (d > 0 && ++at[d - 1] == sizes[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

uint64_t Offset(const ConvolutionTensor& t, const Index& at) {
  return t.Matrix(at[0], at[1]) + at[2] * t.channel + at[3] * t.spatial[0] + at[4] * t.spatial[1] +
         at[5] * t.spatial[2];
}

// A distinct number for every element of a tensor.
int64_t Value(uint64_t offset) { return static_cast<int64_t>(offset * 2654435761u % 17) - 8; }

// The sums as problem.h defines them.
int64_t SumOf(const ConvolutionShape& s, const Index& at) {
  int64_t sum = 0;
  const auto& w = s.windows;
  ForEach({1, 1, s.input_channels, w[0].taps, w[1].taps, w[2].taps}, [&](const Index& step) {
    Index from = {at[0], at[1], step[2]};
    for (uint32_t d = 0; d < kMaxSpatial; ++d) {
      const int64_t index =
          InputIndex(w[d], s.backward, static_cast<uint32_t>(at[d + 3]), static_cast<uint32_t>(step[d + 3]));
      if (index < 0) return;
      from[d + 3] = static_cast<uint64_t>(index);
    }
    const Index tap = {0, at[1], step[2], step[3], step[4], step[5]};
    sum += Value(Offset(s.input, from)) * Value(Offset(s.filter, tap) + at[2] * s.filter.output_channel);
  });
  return sum;
}

// The tensor that cuDNN reads: the original, or packed with zeros.
Numbers Memory(const CudnnPacked& packed, uint64_t groups, uint64_t true_channels,
               const std::function<int64_t(const Index&)>& value) {
  Numbers memory(packed.Elements());
  const uint64_t channels = packed.channels / groups;
  ConvolutionTensor to = packed.Strides();
  to.outer[1] = to.channel * channels;
  ForEach({packed.images, groups, true_channels, packed.sizes[0], packed.sizes[1], packed.sizes[2]},
          [&](const Index& at) { memory[Offset(to, at)] = value(at); });
  return memory;
}

// Convolves as cuDNN defines it, with tensors of four or five dimensions; returns the result's memory.
Numbers Convolve(const CudnnProblem& p, const Numbers& input, const Numbers& filter, size_t elements) {
  Numbers result(elements);
  const size_t spatial = p.windows.steps.size();
  const auto wide = [&](const Numbers& sizes, int64_t missing) {
    Numbers all = sizes;
    if (spatial == 2) all.insert(all.begin() + 2, missing);
    return all;
  };
  const Numbers x = wide(p.x.shape.sizes, 1), w = wide(p.w.shape.sizes, 1), y = wide(p.y.shape.sizes, 1);
  const Numbers xs = wide(p.x.shape.strides, 0), ws = wide(p.w.shape.strides, 0),
                ys = wide(p.y.shape.strides, 0);
  for (size_t d = 0; d < spatial; ++d) {  // cuDNN's formula
    const int64_t reach = (p.w.shape.sizes[d + 2] - 1) * p.windows.dilations[d] + 1;
    EXPECT_EQ(p.y.shape.sizes[d + 2],
              (p.x.shape.sizes[d + 2] + p.windows.pre_paddings[d] + p.windows.post_paddings[d] - reach) /
                      p.windows.steps[d] +
                  1);
  }
  const int64_t groups = x[1] / w[1], group_outputs = w[0] / groups;
  EXPECT_EQ(x[1] % w[1], 0);
  EXPECT_EQ(y[1], w[0]);
  const auto at = [](int64_t number) { return static_cast<uint64_t>(number); };
  ForEach({at(x[0]), at(w[0]), at(w[1]), at(y[2]), at(y[3]), at(y[4])}, [&](const Index& i) {
    ForEach({1, 1, 1, at(w[2]), at(w[3]), at(w[4])}, [&](const Index& tap) {
      const auto channel = static_cast<int64_t>(i[1]) / group_outputs * w[1] + static_cast<int64_t>(i[2]);
      int64_t x_at = static_cast<int64_t>(i[0]) * xs[0] + channel * xs[1];
      int64_t y_at = static_cast<int64_t>(i[0]) * ys[0] + static_cast<int64_t>(i[1]) * ys[1];
      int64_t w_at = static_cast<int64_t>(i[1]) * ws[0] + static_cast<int64_t>(i[2]) * ws[1];
      for (size_t d = 0; d < 3; ++d) {
        const auto position = static_cast<int64_t>(i[d + 3]), number = static_cast<int64_t>(tap[d + 3]);
        const bool is_missing = d + spatial < 3;
        const size_t n = is_missing ? 0 : d + spatial - 3;
        const int64_t from = is_missing ? 0
                                        : position * p.windows.steps[n] - p.windows.pre_paddings[n] +
                                              number * p.windows.dilations[n];
        if (from < 0 || from >= x[d + 2]) return;
        x_at += from * xs[d + 2];
        y_at += position * ys[d + 2];
        w_at += number * ws[d + 2];
      }
      if (p.backward) {
        result[at(x_at)] += input[at(y_at)] * filter[at(w_at)];
      } else {
        result[at(y_at)] += input[at(x_at)] * filter[at(w_at)];
      }
    });
  });
  return result;
}

TEST(CudnnLayout, DescribesTheSameConvolution) {
  Problems problems;
  int backward = 0, in_place = 0;
  for (int i = 0; i < 200; ++i) {
    const ConvolutionProblem problem = problems.Next();
    const ConvolutionShape& s = problem.shape;
    CudnnLayout layout;
    const std::string why_not = layout.Set(problem);
    ASSERT_EQ(why_not, "") << i;
    const uint64_t groups = s.outer[1];
    const Numbers input = Memory(layout.input, groups, s.input_channels,
                                 [&](const Index& at) { return Value(Offset(s.input, at)); });
    const ConvolutionTensor& f = layout.forward.filter;
    const uint64_t filters = layout.forward.output_channels;
    const Numbers filter = Memory(layout.filter, 1, layout.forward.input_channels, [&](const Index& at) {
      const Index tap = {0, at[0] / filters, at[2], at[3], at[4], at[5]};
      return Value(Offset(f, tap) + at[0] % filters * f.output_channel);
    });
    const Numbers output = Convolve(layout.problem, input, filter, layout.output.Elements());
    ConvolutionTensor packed = layout.output.Strides();
    packed.outer[1] = packed.channel * s.output_channels;
    const auto& w = s.windows;
    ForEach({s.outer[0], groups, s.output_channels, w[0].output, w[1].output, w[2].output},
            [&](const Index& at) {
              ASSERT_EQ(output[Offset(packed, at)], SumOf(s, at)) << i;
              if (!layout.packs_output) {
                ASSERT_EQ(Offset(packed, at), Offset(s.output, at)) << i;
              }
            });
    if (!layout.packs_input) {
      ConvolutionTensor there = layout.input.Strides();
      there.outer[1] = there.channel * layout.input_channels;
      ForEach({s.outer[0], groups, s.input_channels, w[0].input, w[1].input, w[2].input},
              [&](const Index& at) { ASSERT_EQ(Offset(there, at), Offset(s.input, at)) << i; });
    }
    backward += s.backward;
    in_place += !layout.packs_input && !layout.packs_filter && !layout.packs_output;
  }
  EXPECT_GT(backward, 20);
  EXPECT_GT(in_place, 5);
}

TEST(CudnnLayout, SaysWhyNot) {
  Problems problems;
  ConvolutionProblem problem = problems.Next();
  while (problem.shape.backward) problem = problems.Next();
  CudnnLayout layout;
  problem.shape.windows[2].dilation = 1 << 20;
  EXPECT_EQ(layout.Set(problem), "it is for strides, dilations and padding of up to 32768");
  problem.shape.windows[2] = {.input = 9, .output = 3, .taps = 3, .reached = 3};
  EXPECT_EQ(layout.Set(problem), "there are more or fewer outputs than cuDNN's formula gives");
  problem.shape.windows[2].reached = 2;
  EXPECT_EQ(layout.Set(problem), "there are outputs without taps");
}

}  // namespace
}  // namespace anydml
