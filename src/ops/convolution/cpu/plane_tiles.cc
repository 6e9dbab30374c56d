// Convolutions with one tap between planes: products of filters with strips of positions, on pixel_tile.h's
// tiles of pixels: a filter's numbers take the role of a pixel's, and positions that of channels. Results are
// planes directly, and an input of planes is read in place. A channels-last tensor on either side is
// transposed; that pays if it is the smaller side. The bits equal those of tiles of pixels.
#include <algorithm>
#include <optional>

#include "kernel/scratch_layout.h"
#include "ops/common/parallel.h"
#include "ops/common/transpose_block.h"
#include "ops/convolution/cpu/channel_numbers.h"
#include "ops/convolution/cpu/pixel_tile.h"
#include "ops/convolution/one_tap.h"
#include "ops/convolution/tail.h"
#include "ops/numbers/epilogue.h"

namespace anydml {
namespace {

constexpr uint64_t kMostSteps = 4096;  // a strip of this many planes fits into L2
constexpr double kMostWeights = 0x1p28;
constexpr uint64_t kMostStripsOfPart = 4;
constexpr uint64_t kStripsPerThread = 4;  // minimum, if there are enough
constexpr uint64_t kSomeChannels = 8;     // of a tile, approximately
constexpr uint64_t kStripLines = 4;       // most per plane and strip
constexpr uint64_t kNearChannels = 128;
constexpr uint32_t kManyChannelVectors = 3;  // of a strip with more channels

// The stride between neighbouring positions if it is the same for all; otherwise 0.
uint64_t StepOf(const ConvolutionShape& p, const ConvolutionTensor& tensor) {
  uint64_t step = 0;
  return PositionStride(p, tensor, &step) ? step : 0;
}

enum class Order : uint8_t { kPlanes, kChannelsLast, kOther };

Order OrderOf(const ConvolutionShape& p, const ConvolutionTensor& tensor, uint64_t channels) {
  const uint64_t step = StepOf(p, tensor);
  if (step == 1) return Order::kPlanes;
  return step != 0 && (channels == 1 || tensor.channel == 1) ? Order::kChannelsLast : Order::kOther;
}

bool Adds(const ConvolutionProblem& problem) { return problem.tail && problem.tail->addition; }

class ConvolutionPlaneTiles final : public Kernel {
 public:
  ConvolutionPlaneTiles(const ConvolutionProblem& problem, uint32_t threads)
      : problem_(problem),
        tiles_(ConvolutionPixelTiles()),
        numbers_(problem, problem.shape.output_channels, &scratch_),
        threads_(threads) {
    const ConvolutionShape& p = problem.shape;
    from_planes_ = OrderOf(p, p.input, p.input_channels) == Order::kPlanes;
    to_planes_ = OrderOf(p, p.output, p.output_channels) == Order::kPlanes;
    const Epilogue epilogue(problem.activation);
    if (!epilogue.empty()) finish_.clips = {epilogue.limits()->low, epilogue.limits()->high};
    if (Adds(problem)) {
      const ConvolutionLimits& limits = problem.tail->addition->limits;
      finish_.adds = {limits.least, limits.most};
    }
    Cut();
    if (problem.filter_is_owned) {
      filters_ = persistent_.Add("filters", p.output_channels * p.input_channels * sizeof(float), 64);
    }
    strip_floats_ = p.input_channels * strip_vectors_ * tiles_.lanes;
    worker_floats_ = strip_floats_;
    if (!to_planes_) worker_floats_ += p.output_channels * strip_vectors_ * tiles_.lanes;
    own_ = scratch_.Add("strips", workers_ * worker_floats_ * sizeof(float), 64);
  }

  uint64_t temporary_bytes() const override { return scratch_.bytes(); }
  uint64_t persistent_bytes() const override { return persistent_.bytes(); }
  bool packs_input(uint32_t input) const override { return input == 1 && problem_.filter_is_owned; }

  Status Initialize(const KernelArguments& arguments) const override {
    const ConvolutionShape& p = problem_.shape;
    const auto* const from = reinterpret_cast<const float*>(arguments.inputs[1].data) + p.filter.Matrix(0, 0);
    float* to = filters_.In<float>(arguments.persistent);
    for (uint64_t c = 0; c < p.output_channels; ++c) {
      for (uint64_t k = 0; k < p.input_channels; ++k) {
        *to++ = from[c * p.filter.output_channel + k * p.filter.channel];
      }
    }
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    numbers_.Load(problem_, arguments);
    SharedParts shared(parts_, workers_);
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      float* const own = own_.In<float>(arguments.temporary) + worker * worker_floats_;
      for (uint64_t part; shared.Take(worker, &part);) RunPart(part, arguments, own);
    });
    return {};
  }

 private:
  // Cuts the work: strips of an image, with nearly equal numbers of vectors, times some channels.
  void Cut() {
    const ConvolutionShape& p = problem_.shape;
    const auto divide_up = [](uint64_t value, uint64_t by) { return (value + by - 1) / by; };
    vectors_ = divide_up(p.Positions(), tiles_.lanes);
    // Strips of many channels do not fit into L1 and are read again by each tile: narrower strips have tiles
    // with more filters, hence fewer of them.
    strip_vectors_ =
        p.input_channels > kNearChannels ? std::min(kManyChannelVectors, tiles_.vectors) : tiles_.vectors;
    strips_ = divide_up(vectors_, strip_vectors_);
    const uint64_t all = strips_ * p.outer[0], wanted = threads_ == 1 ? 1 : threads_ * kStripsPerThread;
    strips_of_part_ = std::clamp<uint64_t>(all / wanted, 1, std::min(strips_, kMostStripsOfPart));
    strip_parts_ = divide_up(strips_, strips_of_part_);
    const uint64_t channels = divide_up(wanted, strip_parts_ * p.outer[0]);
    channel_parts_ = std::clamp<uint64_t>(channels, 1, divide_up(p.output_channels, kSomeChannels));
    parts_ = p.outer[0] * strip_parts_ * channel_parts_;
    workers_ = static_cast<uint32_t>(std::min<uint64_t>(parts_, threads_));
  }

  struct Strip {
    uint64_t image, first, count;  // positions
    uint32_t vectors, last;        // numbers of the last vector, if it is partial
  };

  Strip StripOf(uint64_t image, uint64_t number) const {
    const uint64_t begin = vectors_ * number / strips_, end = vectors_ * (number + 1) / strips_;
    Strip strip;
    strip.image = image;
    strip.first = begin * tiles_.lanes;
    strip.count = std::min(end * tiles_.lanes, problem_.shape.Positions()) - strip.first;
    strip.vectors = static_cast<uint32_t>(end - begin);
    strip.last = static_cast<uint32_t>(strip.count % tiles_.lanes);
    return strip;
  }

  const float* InputOf(const KernelArguments& arguments, const Strip& strip) const {
    const ConvolutionTensor& input = problem_.shape.input;
    return reinterpret_cast<const float*>(arguments.inputs[0].data) + input.Matrix(strip.image, 0) +
           strip.first * StepOf(problem_.shape, input);
  }

  void RunPart(uint64_t part, const KernelArguments& arguments, float* own) const {
    const ConvolutionShape& p = problem_.shape;
    const auto channel_part = static_cast<uint32_t>(part % channel_parts_),
               cut = static_cast<uint32_t>(channel_parts_);
    const uint64_t strip_part = part / channel_parts_ % strip_parts_,
                   image = part / channel_parts_ / strip_parts_;
    const uint64_t begin = PartBegin(p.output_channels, channel_part, cut),
                   end = PartBegin(p.output_channels, channel_part + 1, cut);
    const uint64_t first = strip_part * strips_of_part_;
    for (uint64_t number = first; number < std::min(first + strips_of_part_, strips_); ++number) {
      const Strip strip = StripOf(image, number);
      const bool packs = FirstTilePacks(strip, end - begin);
      if (!packs) LoadStrip(arguments, strip, own);
      RunStrip(arguments, strip, begin, end, packs, own);
      if (!to_planes_) StorePixels(arguments, strip, begin, end, own);
    }
  }

  // The first of several tiles reads planes in place and packs them for the others.
  bool FirstTilePacks(const Strip& strip, uint64_t channels) const {
    return from_planes_ && tiles_.pack_and_add[strip.vectors - 1] != nullptr &&
           channels > tiles_.pixels[strip.vectors - 1];
  }

  void LoadStrip(const KernelArguments& arguments, const Strip& strip, float* own) const {
    const ConvolutionShape& p = problem_.shape;
    const float* const input = InputOf(arguments, strip);
    if (from_planes_) {
      tiles_.gather(input, p.input.channel, p.input_channels, strip.vectors, strip.last, own);
      return;
    }
    const uint64_t width = uint64_t{strip.vectors} * tiles_.lanes;
    for (uint64_t k = 0; strip.last != 0 && k < p.input_channels; ++k) {
      std::fill_n(own + k * width + strip.count, width - strip.count, 0.0f);
    }
    TransposeBlock(reinterpret_cast<const uint32_t*>(input), static_cast<int64_t>(StepOf(p, p.input)),
                   p.input_channels, strip.count, reinterpret_cast<uint32_t*>(own),
                   static_cast<int64_t>(width), TransposeTo::kTile);
  }

  void RunStrip(const KernelArguments& arguments, const Strip& strip, uint64_t begin, uint64_t end,
                bool packs, float* own) const {
    const ConvolutionShape& p = problem_.shape;
    const float* const bias = numbers_.Bias(arguments, 0);
    const bool owned = problem_.filter_is_owned;
    const float* const filters =
        owned ? filters_.In<const float>(arguments.persistent)
              : reinterpret_cast<const float*>(arguments.inputs[1].data) + p.filter.Matrix(0, 0);
    const uint64_t filter_stride = owned ? p.input_channels : p.filter.output_channel;
    float* const output =
        reinterpret_cast<float*>(arguments.outputs[0].data) + p.output.Matrix(strip.image, 0) + strip.first;
    const float* const added = Adds(problem_) ? AddedOf(arguments, strip) : nullptr;
    const uint64_t added_stride = added != nullptr ? problem_.tail->addition->tensor.channel : 0;
    float* const sums = own + strip_floats_;
    const uint64_t width = uint64_t{strip.vectors} * tiles_.lanes;
    const PixelTile::Run run = {0, p.input_channels, 0};
    PixelTile tile;
    tile.runs = &run;
    tile.run_count = 1;
    tile.weights = own;
    tile.start = nullptr;
    tile.last_channels = to_planes_ ? strip.last : 0;
    tile.finish = &finish_;
    const uint32_t most = tiles_.pixels[strip.vectors - 1];
    const auto tiles = static_cast<uint32_t>((end - begin + most - 1) / most);
    uint64_t channel = begin;
    if (packs) tile.packing = {InputOf(arguments, strip), p.input.channel, strip.last, own};
    for (uint32_t number = 0; number < tiles; ++number) {
      const bool packs_now = packs && number == 0;
      const auto some = packs_now ? most : static_cast<uint32_t>((end - channel) / (tiles - number));
      tile.starts = bias + channel;
      for (uint32_t i = 0; i < some; ++i) {
        tile.inputs[i] = reinterpret_cast<uintptr_t>(filters + (channel + i) * filter_stride);
        tile.sums[i] = to_planes_ ? output + (channel + i) * p.output.channel : sums + (channel + i) * width;
        if (added != nullptr) tile.added[i] = added + (channel + i) * added_stride;
        if (!to_planes_ || channel + i + some >= end) continue;
        AskForRow(output + (channel + i + some) * p.output.channel, strip);  // of the next tile
        if (added != nullptr) AskForRow(added + (channel + i + some) * added_stride, strip);
      }
      AskAhead(arguments, strip, number, tiles, &tile);
      (packs_now ? tiles_.pack_and_add[strip.vectors - 1] : tiles_.add[some - 1][strip.vectors - 1])(tile);
      channel += some;
    }
  }

  void AskForRow(const float* row, const Strip& strip) const {
    for (uint32_t v = 0; v < strip.vectors; ++v) __builtin_prefetch(row + v * tiles_.lanes, 0, 2);
  }

  const float* AddedOf(const KernelArguments& arguments, const Strip& strip) const {
    return reinterpret_cast<const float*>(arguments.inputs[ConvolutionTail::kAdded].data) +
           problem_.tail->addition->tensor.Matrix(strip.image, 0) + strip.first;
  }

  // The first tiles prefetch the next strip: a line of each plane, or consecutive lines.
  void AskAhead(const KernelArguments& arguments, const Strip& strip, uint32_t number, uint32_t tiles,
                PixelTile* tile) const {
    constexpr uint64_t kLineBytes = 64;
    const ConvolutionShape& p = problem_.shape;
    tile->AskForNothing();
    if (number >= std::min<uint64_t>(tiles, kStripLines) || strip.first + 2 * strip.count > p.Positions()) {
      return;
    }
    tile->ahead = reinterpret_cast<uintptr_t>(InputOf(arguments, strip) + strip.count * StepOf(p, p.input));
    if (from_planes_) {
      tile->ahead += number * kLineBytes;
      tile->ahead_step = p.input.channel * sizeof(float);
    } else {
      tile->ahead += number * p.input_channels * kLineBytes;
      tile->ahead_step = kLineBytes;
    }
  }

  void StorePixels(const KernelArguments& arguments, const Strip& strip, uint64_t begin, uint64_t end,
                   const float* own) const {
    const ConvolutionShape& p = problem_.shape;
    const uint64_t step = StepOf(p, p.output), width = uint64_t{strip.vectors} * tiles_.lanes;
    const float* const sums = own + strip_floats_ + begin * width;
    float* const output = reinterpret_cast<float*>(arguments.outputs[0].data) +
                          p.output.Matrix(strip.image, 0) + strip.first * step + begin;
    TransposeBlock(reinterpret_cast<const uint32_t*>(sums), static_cast<int64_t>(width), strip.count,
                   end - begin, reinterpret_cast<uint32_t*>(output), static_cast<int64_t>(step),
                   TransposeTo::kTensor);
  }

  ConvolutionProblem problem_;
  const PixelTiles& tiles_;
  ScratchLayout scratch_, persistent_;
  ChannelNumbers numbers_;
  uint32_t threads_;
  bool from_planes_, to_planes_;
  PixelFinish finish_;
  uint64_t vectors_, strips_;  // per image
  uint32_t strip_vectors_;     // of the widest strip
  uint64_t strips_of_part_, strip_parts_, channel_parts_, parts_;
  uint32_t workers_;
  uint64_t strip_floats_, worker_floats_;
  ScratchLayout::Piece filters_, own_;
};

}  // namespace

// If positions have few numbers, either kernel would transpose them.
std::string BetterWithoutPlaneTiles(const ConvolutionProblem& problem, const LowerContext&) {
  constexpr uint32_t kWide = 8;
  constexpr uint64_t kFewChannels = 16;
  const ConvolutionShape& p = problem.shape;
  if (ConvolutionPixelTiles().lanes < kWide) return "vectors are short";
  if (p.Positions() < ConvolutionPixelTiles().lanes || p.output_channels < kSomeChannels)
    return "a small one";
  const bool from_planes = p.input.channel != 1, to_planes = p.output.channel != 1;
  const uint64_t as_pixels = (from_planes ? p.input_channels : 0) + (to_planes ? p.output_channels : 0) +
                             (to_planes && Adds(problem) ? p.output_channels : 0);
  const uint64_t as_planes = (from_planes ? 0 : p.input_channels) + (to_planes ? 0 : p.output_channels);
  return as_pixels < as_planes + kFewChannels ? "fewer numbers change their places without it" : "";
}

std::unique_ptr<const Kernel> CreateConvolutionPlaneTiles(const ConvolutionProblem& problem,
                                                          const LowerContext& context, std::string* why_not) {
  const ConvolutionShape& p = problem.shape;
  const Epilogue epilogue(problem.activation);
  const auto is_in_order = [&](const ConvolutionTensor& tensor, uint64_t channels) {
    return OrderOf(p, tensor, channels) != Order::kOther;
  };
  const bool to_planes = OrderOf(p, p.output, p.output_channels) == Order::kPlanes;
  if (problem.type != DataType::kFloat32) {
    *why_not = "it is not FLOAT32";
  } else if (p.backward || p.outer[1] != 1 || !WhyNotOneTap(p).empty()) {
    *why_not = "not every position is seen once, by all filters";
  } else if (!is_in_order(p.input, p.input_channels) || !is_in_order(p.output, p.output_channels)) {
    *why_not = "neither channels nor positions are neighbours in memory";
  } else if (!problem.filter_is_owned && p.input_channels > 1 && p.filter.channel != 1) {
    *why_not = "a filter's numbers are not neighbours in memory";
  } else if (!epilogue.empty() && !epilogue.limits()) {
    *why_not = "its activation is not a limit";
  } else if (problem.tail && (problem.tail->normalization || !TilesCanFinish(problem))) {
    *why_not = "its results are normalized, or limits are such that vectors do not compare with them";
  } else if (Adds(problem) && (!to_planes || OrderOf(p, problem.tail->addition->tensor, p.output_channels) !=
                                                 Order::kPlanes)) {
    *why_not = "what is added, or the output, is not in planes";
  } else if (p.input_channels > kMostSteps) {
    *why_not = StrCat("it has more than ", kMostSteps, " input channels");
  } else if (static_cast<double>(p.output_channels) * static_cast<double>(p.input_channels) > kMostWeights) {
    *why_not = "its filters are too large";  // with strides of 0, little memory describes any number of them
  } else {
    return std::make_unique<ConvolutionPlaneTiles>(problem, context.threads);
  }
  return nullptr;
}

}  // namespace anydml
