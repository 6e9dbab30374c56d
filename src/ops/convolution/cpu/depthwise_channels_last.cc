// Filters of one channel, of channels-last tensors. A row of outputs at a time: pixels in its middle share
// the same taps, those at its ends sum only the taps inside the input.
#include <algorithm>
#include <cstring>

#include "kernel/scratch_layout.h"
#include "ops/common/parallel.h"
#include "ops/convolution/cpu/depthwise_pixels.h"
#include "ops/convolution/problem.h"
#include "ops/numbers/epilogue.h"
#include "ops/numbers/load_store.h"

namespace anydml {
namespace {

constexpr uint64_t kMostDepthwiseTaps = 128;
constexpr uint64_t kWeightFloats = 6144;                    // of all taps: they stay in L1
constexpr uint64_t kDepthwiseChannels = 64;                 // minimum per part
constexpr uint64_t kDepthwiseProducts = uint64_t{1} << 16;  // with fewer, a thread costs more than it saves
constexpr double kMostDepthwiseWeights = 0x1p30;

class DepthwiseChannelsLast final : public Kernel {
 public:
  DepthwiseChannelsLast(const ConvolutionProblem& problem, uint32_t threads)
      : problem_(problem), epilogue_(problem.activation) {
    const ConvolutionShape& p = problem_.shape;
    channels_ = p.outer[1];
    halves_ = problem.type == DataType::kFloat16;
    clips_ = !epilogue_.empty() && epilogue_.limits().has_value() && !halves_;
    some_channels_ = std::max(kDepthwiseChannels, kWeightFloats / p.Taps() / 64 * 64);
    channel_parts_ = (channels_ + some_channels_ - 1) / some_channels_;
    some_channels_ = ((channels_ + channel_parts_ - 1) / channel_parts_ + 15) / 16 * 16;
    channel_parts_ = (channels_ + some_channels_ - 1) / some_channels_;
    rows_ = p.outer[0] * p.windows[0].output * p.windows[1].output;
    const double products = static_cast<double>(p.Elements()) * static_cast<double>(p.Taps());
    const auto useful = static_cast<uint64_t>(
        std::clamp<double>(products / static_cast<double>(kDepthwiseProducts), 1, threads));
    workers_ = static_cast<uint32_t>(std::min(rows_ * channel_parts_, useful));
    bias_ = scratch_.Add("bias", channels_ * sizeof(float), 64);
    const uint64_t bytes = channels_ * p.Taps() * sizeof(float);
    weights_ = (problem.filter_is_owned ? persistent_ : scratch_).Add("filters", bytes, 64);
    if (halves_) {
      sums_ = scratch_.Add("sums", workers_ * kDepthwisePixels * some_channels_ * sizeof(float), 64);
    }
  }

  uint64_t temporary_bytes() const override { return scratch_.bytes(); }
  uint64_t persistent_bytes() const override { return persistent_.bytes(); }
  bool packs_input(uint32_t input) const override { return input == 1 && problem_.filter_is_owned; }

  Status Initialize(const KernelArguments& arguments) const override {
    LoadWeights(arguments.inputs[1].data, weights_.In<float>(arguments.persistent));
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    const ConvolutionShape& p = problem_.shape;
    if (!problem_.filter_is_owned)
      LoadWeights(arguments.inputs[1].data, weights_.In<float>(arguments.temporary));
    float* const bias = bias_.In<float>(arguments.temporary);
    std::fill_n(bias, channels_, 0.0f);
    if (problem_.bias) {
      FindLoad(problem_.type, Class::kF32)(arguments.inputs[2].data,
                                           {.columns = channels_, .column_stride = *problem_.bias}, bias);
    }
    const uint64_t parts = rows_ * channel_parts_;
    SharedParts shared(parts, workers_);
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      float* const sums =
          halves_ ? sums_.In<float>(arguments.temporary) + worker * kDepthwisePixels * some_channels_
                  : nullptr;
      for (uint64_t part; shared.Take(worker, &part);) {
        // Parts are all rows of some channels, so that weights are reused.
        const uint64_t row = part % rows_, rows = p.windows[1].output, slices = p.windows[0].output;
        RunRow({row / rows / slices, row / rows % slices, row % rows}, part / rows_ * some_channels_, sums,
               arguments);
      }
    });
    return {};
  }

 private:
  uint64_t Width() const { return BitSize(problem_.type) / 8; }

  // For each tap, the weights of all channels.
  void LoadWeights(const std::byte* filter, float* to) const {
    const ConvolutionShape& p = problem_.shape;
    const LoadBlock load = FindLoad(problem_.type, Class::kF32);
    for (uint64_t tap = 0; tap < p.Taps(); ++tap, to += channels_) {
      uint64_t rest = tap, at = p.filter.offset;
      for (uint32_t d = kMaxSpatial; d-- > 0; rest /= p.windows[d].taps) {
        at += rest % p.windows[d].taps * p.filter.spatial[d];
      }
      load(filter + static_cast<ptrdiff_t>(at * Width()),
           {.columns = channels_, .column_stride = p.filter.outer[1]}, to);
    }
  }

  struct Row {
    uint64_t batch, slice, line;
  };

  void RunRow(const Row& row, uint64_t channel, float* sums, const KernelArguments& arguments) const {
    const ConvolutionShape& p = problem_.shape;
    const auto &z = p.windows[0], &y = p.windows[1], &x = p.windows[2];
    const uint64_t input = p.input.Matrix(row.batch, 0) + channel;
    const uint64_t output = p.output.Matrix(row.batch, 0) + row.slice * p.output.spatial[0] +
                            row.line * p.output.spatial[1] + channel;
    const Buffer& memory = problem_.filter_is_owned ? arguments.persistent : arguments.temporary;
    const float* const weights = weights_.In<const float>(memory) + channel;
    // The taps of the pixels from `first` on, as offsets from the input's first pixel.
    DepthwiseTap taps[kMostDepthwiseTaps];
    const auto find_taps = [&](uint32_t first) {
      uint32_t count = 0;
      uint64_t number = 0;
      for (uint32_t i = 0; i < z.taps; ++i) {
        const int64_t slice = InputIndex(z, false, static_cast<uint32_t>(row.slice), i);
        for (uint32_t j = 0; j < y.taps; ++j) {
          const int64_t line = InputIndex(y, false, static_cast<uint32_t>(row.line), j);
          for (uint32_t k = 0; k < x.taps; ++k, ++number) {
            const int64_t column = InputIndex(x, false, first, k);
            if (slice < 0 || line < 0 || column < 0) continue;
            taps[count++] = {static_cast<uint64_t>(slice) * p.input.spatial[0] +
                                 static_cast<uint64_t>(line) * p.input.spatial[1] +
                                 static_cast<uint64_t>(column) * p.input.spatial[2],
                             weights + number * channels_};
          }
        }
      }
      return count;
    };
    const auto is_inner = [&](uint32_t at) {
      const int64_t first = int64_t{at} * x.stride - x.start_padding;
      return at < x.reached && first >= 0 && first + int64_t{x.taps - 1} * x.dilation < x.input;
    };
    DepthwisePixels pixels;
    pixels.halves = halves_;
    pixels.input_stride = x.stride * p.input.spatial[2];
    pixels.taps = taps;
    pixels.threes = x.taps == 3 && x.dilation == x.stride;
    pixels.channels = std::min(some_channels_, channels_ - channel);
    pixels.start = bias_.In<const float>(arguments.temporary) + channel;
    pixels.clips = clips_;
    pixels.low = clips_ ? epilogue_.limits()->low : 0;
    pixels.high = clips_ ? epilogue_.limits()->high : 0;
    uint32_t inner_from = 0;  // the first inner pixel with known taps
    bool inner_known = false;
    for (uint32_t at = 0; at < x.output;) {
      const bool inner = is_inner(at);
      const bool together = inner && x.output - at >= kDepthwisePixels && is_inner(at + kDepthwisePixels - 1);
      if (!inner || !inner_known) {
        pixels.tap_count = find_taps(at);
        inner_known = inner;
        inner_from = at;
      }
      const uint64_t moved = inner ? (at - inner_from) * pixels.input_stride : 0;
      pixels.input = arguments.inputs[0].data + (input + moved) * Width();
      const uint32_t count = together ? kDepthwisePixels : 1;
      const uint64_t to = output + at * p.output.spatial[2];
      pixels.sums = halves_ ? sums : reinterpret_cast<float*>(arguments.outputs[0].data) + to;
      pixels.sums_stride = halves_ ? some_channels_ : p.output.spatial[2];
      if (together) {
        AddDepthwisePixels(pixels);
      } else {
        AddDepthwisePixel(pixels);
      }
      if (halves_ || (!clips_ && !epilogue_.empty())) {
        Finish(pixels, count, arguments.outputs[0].data + to * Width());
      }
      at += count;
    }
  }

  void Finish(const DepthwisePixels& pixels, uint32_t count, std::byte* output) const {
    for (uint32_t i = 0; i < count; ++i) {
      epilogue_.Finish(pixels.sums + i * pixels.sums_stride, pixels.channels, -0.0f, problem_.type,
                       output + i * problem_.shape.output.spatial[2] * Width());
    }
  }

  ConvolutionProblem problem_;
  Epilogue epilogue_;
  uint64_t channels_, some_channels_, channel_parts_;  // of all; per part
  uint64_t rows_;                                      // of the output, in all images
  bool halves_, clips_;
  uint32_t workers_;
  ScratchLayout scratch_, persistent_;
  ScratchLayout::Piece bias_, weights_, sums_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionDepthwiseChannelsLast(const ConvolutionProblem& problem,
                                                                     const LowerContext& context,
                                                                     std::string* why_not) {
  const ConvolutionShape& p = problem.shape;
  if (p.input_channels != 1 || p.output_channels != 1) {
    *why_not =
        StrCat("groups have ", p.input_channels, " input channels and ", p.output_channels, " of the output");
  } else if (p.backward) {
    *why_not = "it is backward";
  } else if (p.outer[1] == 1) {
    *why_not = "there is one channel";
  } else if (p.input.outer[1] != 1 || p.output.outer[1] != 1) {
    *why_not = "channels are not neighbours in memory";
  } else if (p.Taps() > kMostDepthwiseTaps) {
    *why_not = StrCat("filters have ", p.Taps(), " taps, more than ", kMostDepthwiseTaps);
  } else if (static_cast<double>(p.outer[1]) * static_cast<double>(p.Taps()) > kMostDepthwiseWeights) {
    *why_not = "its filters are too large";
  } else {
    return std::make_unique<DepthwiseChannelsLast>(problem, context.threads);
  }
  return nullptr;
}

}  // namespace anydml
