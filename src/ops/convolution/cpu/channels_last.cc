// Convolutions of tensors whose channels are neighbours in memory: products of pixels with filters that read
// the pixels where they are. What a tile of output pixels has of a tap are runs of their inputs' channels;
// pixels that have taps outside of the input add up only those that are inside.
#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "kernel/scratch_layout.h"
#include "ops/common/parallel.h"
#include "ops/convolution/cpu/pixel_filter.h"
#include "ops/convolution/cpu/pixel_tile.h"
#include "ops/convolution/cpu/pixels.h"
#include "ops/element/cpu/blocks.h"
#include "ops/element/cpu/epilogue.h"
#include "ops/element/cpu/rows.h"

namespace anydml {
namespace {

constexpr uint64_t kPieceFloats = 6144;  // weights that stay in the first-level cache
// Of a thread: with fewer it costs more than it saves.
constexpr uint64_t kPixelProductsPerThread = uint64_t{1} << 17;
constexpr uint64_t kPartsPerThread = 4, kMostCuts = 64;
constexpr uint64_t kFewInputChannels = 16;  // are brought together, wherever they are
constexpr uint64_t kManyWeightBytes = uint64_t{1} << 19;
constexpr double kMostNumbers = 0x1p28;  // of filters, and of a copy of the input

// Some steps at a time: whole taps, or some channels of one.
struct StepPiece {
  uint32_t tap, taps;
  uint64_t channel, channels;  // of each tap
  uint64_t first = 0, steps = 0;
  uint32_t run = 0, runs = 0;  // of pixels that have all taps
};

class ConvolutionChannelsLast final : public Kernel {
 public:
  ConvolutionChannelsLast(const ConvolutionProblem& problem, uint32_t threads)
      : problem_(problem),
        tiles_(ConvolutionPixelTiles()),
        filter_(problem.shape, problem.type, tiles_.lanes, tiles_.vectors),
        pixels_(problem.shape, problem.type),
        epilogue_(problem.activation),
        threads_(threads) {
    halves_ = problem.type == DataType::kFloat16;
    clips_ = epilogue_.limits().has_value() && (!epilogue_.empty() || halves_);
    completes_ = epilogue_.empty() || clips_;
    MakePieces();
    Cut();
    bias_ = scratch_.Add("bias", BiasFloats() * sizeof(float), 64);
    if (pixels_.copies()) copy_ = scratch_.Add("input", pixels_.CopyFloats() * sizeof(float), 64);
    if (problem.filter_is_owned) {
      packed_ = persistent_.Add("filters", filter_.bytes(), 64);
    } else {
      packed_ = scratch_.Add("filters", filter_.bytes(), 64);
    }
    if (halves_) {
      const uint64_t width = uint64_t{tiles_.vectors} * tiles_.lanes;
      worker_floats_ = (block_pixels_ + MostSteps()) * width;
      own_ = scratch_.Add("sums and weights", workers_ * worker_floats_ * sizeof(float), 64);
    }
  }

  uint64_t temporary_bytes() const override { return scratch_.bytes(); }
  uint64_t persistent_bytes() const override { return persistent_.bytes(); }
  bool packs_input(uint32_t input) const override { return input == 1 && problem_.filter_is_owned; }

  Status Initialize(const KernelArguments& arguments) const override {
    filter_.Pack(arguments.inputs[1].data, arguments.executor, threads_,
                 packed_.In<std::byte>(arguments.persistent));
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    if (!problem_.filter_is_owned) {
      filter_.Pack(arguments.inputs[1].data, arguments.executor, threads_,
                   packed_.In<std::byte>(arguments.temporary));
    }
    if (pixels_.copies()) {
      pixels_.Copy(arguments.inputs[0].data, arguments.executor, workers_,
                   copy_.In<float>(arguments.temporary));
    }
    LoadBias(arguments);
    SharedParts shared(parts_, workers_);
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      for (uint64_t part; shared.Take(worker, &part);) {
        RunPart(part, arguments, own_.In<float>(arguments.temporary) + worker * worker_floats_);
      }
    });
    return {};
  }

 private:
  uint64_t BiasFloats() const { return problem_.shape.outer[1] * filter_.vectors() * tiles_.lanes; }

  uint64_t MostSteps() const {
    uint64_t most = 0;
    for (const StepPiece& piece : pieces_) most = std::max(most, piece.steps);
    return most;
  }

  void MakePieces() {
    const ConvolutionShape& p = problem_.shape;
    const uint64_t width = uint64_t{std::min<uint64_t>(tiles_.vectors, filter_.vectors())} * tiles_.lanes;
    const uint64_t most = std::max<uint64_t>(kPieceFloats / width, 16);
    const uint64_t channels = p.input_channels;
    if (channels > most) {
      const uint64_t count = (channels + most - 1) / most;
      const uint64_t some = ((channels + count - 1) / count + 15) / 16 * 16;
      for (uint32_t tap = 0; tap < p.Taps(); ++tap) {
        for (uint64_t c = 0; c < channels; c += some) {
          AddPiece({.tap = tap, .taps = 1, .channel = c, .channels = std::min(some, channels - c)});
        }
      }
      return;
    }
    const auto taps = static_cast<uint32_t>(p.Taps());
    const auto count = static_cast<uint32_t>((p.Steps() + most - 1) / most);
    const uint32_t some = (taps + count - 1) / count;
    for (uint32_t tap = 0; tap < taps; tap += some) {
      AddPiece({.tap = tap, .taps = std::min(some, taps - tap), .channel = 0, .channels = channels});
    }
  }

  void AddPiece(StepPiece piece) {
    piece.first = pieces_.empty() ? 0 : pieces_.back().first + pieces_.back().steps;
    piece.steps = piece.taps * piece.channels;
    piece.run = static_cast<uint32_t>(runs_.size());
    for (uint32_t t = 0; t < piece.taps; ++t) {
      const uint64_t offset = pixels_.TapOffset(piece.tap + t) + piece.channel;
      // Taps of a row may follow each other.
      if (t != 0 && runs_.back().offset + runs_.back().steps == offset) {
        runs_.back().steps += piece.channels;
      } else {
        runs_.push_back({offset, piece.channels});
      }
    }
    piece.runs = static_cast<uint32_t>(runs_.size()) - piece.run;
    pieces_.push_back(piece);
  }

  // Into parts: some pixels times some blocks of channels, of a group. Of all ways the one that ends first,
  // if workers take parts one after the other.
  void Cut() {
    const ConvolutionShape& p = problem_.shape;
    const uint64_t positions = p.outer[0] * p.Positions();
    const double products = static_cast<double>(p.Elements()) * static_cast<double>(p.Steps());
    const auto useful = static_cast<uint64_t>(std::clamp<double>(
        products / static_cast<double>(kPixelProductsPerThread), 1, static_cast<double>(threads_)));
    const auto divide_up = [](uint64_t value, uint64_t by) { return (value + by - 1) / by; };
    const bool many_weights = filter_.bytes() > kManyWeightBytes;  // are read again for each block of pixels
    const uint64_t least_blocks = divide_up(positions, many_weights ? kMaxBlockPixels : kMaxBlockPixels / 2);
    const uint64_t tiles = divide_up(positions, kMaxTilePixels);
    // Reading the weights of a block of channels takes as long as some pixels do.
    const uint64_t pixels_of_weights = many_weights ? 3 * kMaxTilePixels : kMaxTilePixels;
    const uint64_t more = useful == 1 ? 0 : std::min(kPartsPerThread * useful, kMostCuts);
    double least = std::numeric_limits<double>::max();
    for (uint64_t channels = 1; channels <= std::min(filter_.blocks(), more + 1); ++channels) {
      for (uint64_t blocks = least_blocks;
           blocks == least_blocks || blocks <= std::min(tiles, least_blocks + more); ++blocks) {
        const uint64_t pixels = divide_up(positions, blocks);
        const uint64_t work = (divide_up(pixels, kMaxTilePixels) * kMaxTilePixels + pixels_of_weights) *
                              divide_up(filter_.blocks(), channels);
        const uint64_t rounds = divide_up(divide_up(positions, pixels) * p.outer[1] * channels, useful);
        // Small ones even out threads of unequal speed.
        const double time = (static_cast<double>(rounds) + 0.25) * static_cast<double>(work);
        if (time >= least) continue;
        least = time;
        block_pixels_ = pixels;
        channel_parts_ = channels;
      }
    }
    parts_ = divide_up(positions, block_pixels_) * p.outer[1] * channel_parts_;
    workers_ = static_cast<uint32_t>(std::min(parts_, useful));
  }

  // As floats, with zeros where vectors are not whole.
  void LoadBias(const KernelArguments& arguments) const {
    const ConvolutionShape& p = problem_.shape;
    float* const to = bias_.In<float>(arguments.temporary);
    std::fill_n(to, BiasFloats(), 0.0f);
    if (!problem_.bias) return;
    const LoadBlock load = FindLoad(problem_.type, Class::kF32);
    const uint64_t stride = *problem_.bias;
    for (uint64_t group = 0; group < p.outer[1]; ++group) {
      load(arguments.inputs[2].data,
           {.columns = p.output_channels,
            .column_stride = stride,
            .offset = group * p.output_channels * stride},
           to + group * filter_.vectors() * tiles_.lanes);
    }
  }

  void RunPart(uint64_t part, const KernelArguments& arguments, float* scratch) const {
    const ConvolutionShape& p = problem_.shape;
    const uint64_t channel_part = part % channel_parts_, group = part / channel_parts_ % p.outer[1];
    const uint64_t first = part / channel_parts_ / p.outer[1] * block_pixels_;
    const uint64_t count = std::min(block_pixels_, p.outer[0] * p.Positions() - first);
    OutputPixels pixels;
    pixels_.Find(first, count, group, &pixels);
    const auto cut = static_cast<uint32_t>(channel_parts_);
    const uint64_t begin = PartBegin(filter_.blocks(), static_cast<uint32_t>(channel_part), cut);
    const uint64_t end = PartBegin(filter_.blocks(), static_cast<uint32_t>(channel_part) + 1, cut);
    for (uint64_t number = begin; number < end; ++number) {
      const PixelFilter::Block block = filter_.BlockOf(number);
      const BlockRun run = {pixels, block, group, arguments, scratch};
      RunBlock(run);
      FinishBlock(run);
    }
  }

  // Some pixels of some output channels.
  struct BlockRun {
    const OutputPixels& pixels;
    const PixelFilter::Block& block;
    uint64_t group;
    const KernelArguments& arguments;
    float* scratch;  // FLOAT16: sums, then weights
  };

  uint64_t WidthOf(const PixelFilter::Block& block) const { return uint64_t{block.vectors} * tiles_.lanes; }

  float* SumsOf(const BlockRun& run, uint32_t pixel) const {
    if (halves_) return run.scratch + pixel * WidthOf(run.block);
    return reinterpret_cast<float*>(run.arguments.outputs[0].data) + run.pixels.at[pixel].output +
           run.block.channel;
  }

  uint16_t* HalvesOf(const BlockRun& run, uint32_t pixel) const {
    return reinterpret_cast<uint16_t*>(run.arguments.outputs[0].data) + run.pixels.at[pixel].output +
           run.block.channel;
  }

  const float* WeightsOf(const BlockRun& run, const StepPiece& piece) const {
    const uint64_t width = WidthOf(run.block);
    const uint64_t at = filter_.OffsetOf(run.group, run.block) + piece.first * width;
    const Buffer& memory = problem_.filter_is_owned ? run.arguments.persistent : run.arguments.temporary;
    if (!halves_) return packed_.In<const float>(memory) + at;
    float* const weights = run.scratch + block_pixels_ * width;
    HalvesToFloats(packed_.In<const uint16_t>(memory) + at, weights, piece.steps * width);
    return weights;
  }

  void RunBlock(const BlockRun& run) const {
    const OutputPixels& pixels = run.pixels;
    const float* const bias = bias_.In<const float>(run.arguments.temporary) +
                              (run.group * filter_.vectors() + run.block.vector) * tiles_.lanes;
    for (uint32_t i = 0; i < pixels.edge_count; ++i) {
      std::memcpy(SumsOf(run, pixels.edge[i]), bias, run.block.channels * sizeof(float));
    }
    PixelTile tile;
    tile.last_channels = run.block.last_channels;
    tile.low = clips_ ? epilogue_.limits()->low : 0;
    tile.high = clips_ ? epilogue_.limits()->high : 0;
    for (const StepPiece& piece : pieces_) {
      const float* const weights = WeightsOf(run, piece);
      tile.weights = weights;
      tile.runs = runs_.data() + piece.run;
      tile.run_count = piece.runs;
      tile.start = piece.first == 0 ? bias : nullptr;
      const bool is_last = &piece == &pieces_.back();
      tile.clips = clips_ && is_last;
      tile.to_halves = halves_ && completes_ && is_last;
      AddTiles(run, pixels.inner, pixels.inner_count, &tile);
      if (pixels.edge_count == 0) continue;
      tile.run_count = 1;
      tile.start = nullptr;
      tile.clips = tile.to_halves = false;
      for (uint32_t t = 0; t < piece.taps; ++t) {
        uint16_t inside[kMaxBlockPixels];
        const uint32_t count = pixels_.FindInside(pixels, piece.tap + t, inside);
        const PixelTile::Run own = {pixels_.TapOffset(piece.tap + t) + piece.channel, piece.channels};
        tile.runs = &own;
        tile.weights = weights + t * piece.channels * WidthOf(run.block);
        AddTiles(run, inside, count, &tile);
      }
    }
  }

  void AddTiles(const BlockRun& run, const uint16_t* list, uint32_t count, PixelTile* tile) const {
    const float* const input = pixels_.copies()
                                   ? copy_.In<const float>(run.arguments.temporary)
                                   : reinterpret_cast<const float*>(run.arguments.inputs[0].data);
    // Nearly equal tiles: small ones wait for their own sums.
    const uint32_t tiles = (count + tiles_.pixels - 1) / tiles_.pixels;
    for (uint32_t number = 0, done = 0; number < tiles; ++number) {
      const uint32_t some = (count - done) / (tiles - number);
      for (uint32_t i = 0; i < some; ++i) {
        const uint32_t pixel = list[done + i];
        // Perhaps far outside of the input, where only a tap comes back into it: no pointer to an element.
        tile->inputs[i] = reinterpret_cast<uintptr_t>(input) + run.pixels.at[pixel].input * sizeof(float);
        tile->sums[i] = SumsOf(run, pixel);
        if (tile->to_halves) tile->halves[i] = HalvesOf(run, pixel);
      }
      tiles_.add[some - 1][run.block.vectors - 1](*tile);
      done += some;
    }
  }

  // What tiles have not done: of pixels at the edge, or an activation that is no limit.
  void FinishBlock(const BlockRun& run) const {
    if (epilogue_.empty() && !halves_) return;
    const uint32_t count = completes_ ? run.pixels.edge_count : run.pixels.count;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t pixel = completes_ ? run.pixels.edge[i] : i;
      float* const sums = SumsOf(run, pixel);
      void* const to = halves_ ? static_cast<void*>(HalvesOf(run, pixel)) : sums;
      epilogue_.Finish(sums, run.block.channels, -0.0f, problem_.type, to);
    }
  }

  ConvolutionProblem problem_;
  const PixelTiles& tiles_;
  PixelFilter filter_;
  InputPixels pixels_;
  Epilogue epilogue_;
  uint32_t threads_;
  bool halves_, clips_;
  bool completes_;  // tiles do all that is behind the sums
  std::vector<StepPiece> pieces_;
  std::vector<PixelTile::Run> runs_;
  uint64_t block_pixels_ = 1, channel_parts_ = 1, parts_;
  uint32_t workers_;
  uint64_t worker_floats_ = 0;
  ScratchLayout scratch_, persistent_;
  ScratchLayout::Piece bias_, copy_, packed_, own_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionChannelsLast(const ConvolutionProblem& problem,
                                                            const LowerContext& context,
                                                            std::string* why_not) {
  const ConvolutionShape& p = problem.shape;
  const auto numbers = [](std::initializer_list<uint64_t> factors) {
    double product = 1;
    for (const uint64_t factor : factors) product *= static_cast<double>(factor);
    return product;
  };
  const bool many_taps =
      std::ranges::any_of(p.windows, [](const ConvolutionWindow& w) { return w.taps > kMaxPixelTaps; });
  if (p.backward) {
    *why_not = "it is backward";
  } else if (p.output_channels > 1 && p.output.channel != 1) {
    *why_not = "output channels are not neighbours in memory";
  } else if (p.input_channels > kFewInputChannels && p.input.channel != 1) {
    *why_not = "input channels are not neighbours in memory";
  } else if (many_taps) {
    *why_not = StrCat("a filter has more than ", kMaxPixelTaps, " taps in one dimension");
  } else if (numbers({p.outer[1], p.output_channels + 64, p.Steps()}) > kMostNumbers) {
    *why_not = "its filters are too large";  // strides of 0 make any number of them from little memory
  } else if (numbers({p.Matrices(), p.input_channels, p.windows[0].input, p.windows[1].input,
                      p.windows[2].input}) > kMostNumbers) {
    *why_not = "its input is too large";
  } else {
    return std::make_unique<ConvolutionChannelsLast>(problem, context.threads);
  }
  return nullptr;
}

}  // namespace anydml
