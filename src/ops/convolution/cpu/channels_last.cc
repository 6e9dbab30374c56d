// Convolutions of channels-last tensors: products of pixels with filters that read the pixels in place. A
// tile of output pixels reads, for each tap, runs of input channels; pixels with taps outside the input sum
// only the taps inside. Planes are brought into channels-last order, and results out of it, by transposing
// squares.
#include <algorithm>
#include <optional>

#include "kernel/scratch_layout.h"
#include "ops/common/parallel.h"
#include "ops/convolution/cpu/channel_numbers.h"
#include "ops/convolution/cpu/channels_last_choice.h"
#include "ops/convolution/cpu/pixel_ahead.h"
#include "ops/convolution/cpu/pixel_filter.h"
#include "ops/convolution/cpu/pixel_input.h"
#include "ops/convolution/cpu/pixel_parts.h"
#include "ops/convolution/cpu/pixel_steps.h"
#include "ops/convolution/cpu/pixel_tile.h"
#include "ops/convolution/cpu/pixel_weights.h"
#include "ops/convolution/cpu/pixels.h"
#include "ops/numbers/convert_rows.h"
#include "ops/numbers/epilogue.h"

namespace anydml {
namespace {

constexpr uint64_t kNearBytes = uint64_t{1} << 20;  // below this size an output is likely to be in a cache
constexpr uint32_t kWide = 8;
constexpr uint64_t kNothing = ~uint64_t{0};

// Whether the output's channels are not contiguous.
bool IsInPlanes(const ConvolutionShape& p, const ConvolutionTensor& tensor) {
  return p.output_channels > 1 && tensor.channel != 1;
}

PixelFinish::Limits LimitsOf(const ConvolutionLimits& limits) { return {limits.least, limits.most}; }

class ConvolutionChannelsLast final : public Kernel {
 public:
  ConvolutionChannelsLast(const ConvolutionProblem& problem, uint32_t threads)
      : problem_(problem),
        tiles_(ConvolutionPixelTiles()),
        filter_(problem.shape, problem.type, tiles_.lanes, tiles_.vectors),
        pixels_(problem.shape, problem.type, Adds() ? problem.tail->addition->tensor : problem.shape.output),
        numbers_(problem, filter_.vectors() * tiles_.lanes, &scratch_),
        steps_(ChannelsLastSteps(problem)),
        weights_(problem, filter_, steps_, &scratch_),
        epilogue_(problem.activation),
        threads_(threads),
        halves_(problem.type == DataType::kFloat16),
        planes_(IsInPlanes(problem.shape, problem.shape.output)),
        parts_(Cut()),
        input_(problem, pixels_, parts_, &scratch_) {
    completes_ = epilogue_.empty() || epilogue_.limits().has_value();
    finish_.to_halves = halves_;
    if (completes_ && (!epilogue_.empty() || halves_)) {
      finish_.clips = {epilogue_.limits()->low, epilogue_.limits()->high};
    }
    if (Normalizes()) finish_.normalizes = LimitsOf(problem.tail->normalization->limits);
    if (Adds()) finish_.adds = LimitsOf(problem.tail->addition->limits);
    asks_for_results_ = tiles_.lanes >= kWide && problem.shape.Elements() * sizeof(float) > kNearBytes;
    const uint64_t block = parts_.pixels * WidestBlock();
    if (halves_ || planes_) worker_floats_ += block;
    own_added_ = worker_floats_;
    if (Adds() && IsInPlanes(problem.shape, problem.tail->addition->tensor)) worker_floats_ += block;
    own_weights_ = worker_floats_;
    worker_floats_ += weights_.OwnFloats(WidestBlock());
    own_halves_ = worker_floats_;
    if (halves_ && planes_) worker_floats_ += (block + 31) / 32 * 16;
    own_input_ = worker_floats_;
    worker_floats_ += input_.OwnFloats();
    if (worker_floats_ != 0) {
      own_ = scratch_.Add("a block", parts_.workers * worker_floats_ * sizeof(float), 64);
    }
  }

  uint64_t temporary_bytes() const override { return scratch_.bytes(); }
  uint64_t persistent_bytes() const override { return weights_.persistent_bytes(); }
  bool packs_input(uint32_t input) const override { return input == 1 && problem_.filter_is_owned; }

  Status Initialize(const KernelArguments& arguments) const override {
    weights_.Initialize(arguments, threads_);
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    weights_.Pack(arguments, threads_);
    input_.Copy(arguments, parts_.workers);
    numbers_.Load(problem_, arguments);
    SharedParts shared(parts_.count, parts_.workers);
    ParallelFor(arguments.executor, parts_.workers, [&](uint32_t worker) {
      PartMemory memory;
      memory.own = own_.In<float>(arguments.temporary) + worker * worker_floats_;
      for (uint64_t part; shared.Take(worker, &part);) RunPart(part, arguments, &memory);
    });
    return {};
  }

 private:
  uint64_t WidestBlock() const {
    return std::min<uint64_t>(tiles_.vectors, filter_.vectors()) * tiles_.lanes;
  }
  bool Normalizes() const { return problem_.tail && problem_.tail->normalization; }
  bool Adds() const { return problem_.tail && problem_.tail->addition; }

  PixelParts Cut() const {
    // Many weights are read again for each block of pixels, and FLOAT16 is converted again; and planes should
    // have long rows in a block.
    const bool large = !weights_.is_near() || halves_ || planes_ || pixels_.has_planes();
    const PartWeights weights = weights_.turns() ? PartWeights::kTurned
                                : large          ? PartWeights::kMany
                                                 : PartWeights::kFew;
    const uint64_t tile = tiles_.pixels[filter_.BlockOf(0).vectors - 1];
    return CutPixels(problem_.shape, filter_.blocks(),
                     planes_ ? PixelsOfLines(problem_.shape, tile, ElementBytes()) : tile, weights, threads_);
  }

  // A worker's state between parts: those of the same pixels follow each other.
  struct PartMemory {
    OutputPixels pixels;
    uint64_t found = kNothing;  // the index of the pixels in `pixels`
    InputPixels::Range held;    // the part of the input in the worker's memory
    float* own;
  };

  void RunPart(uint64_t part, const KernelArguments& arguments, PartMemory* memory) const {
    const ConvolutionShape& p = problem_.shape;
    const uint64_t channel_part = part % parts_.channel_parts, number = part / parts_.channel_parts;
    const uint64_t group = number % p.outer[1], first = number / p.outer[1] * parts_.pixels;
    if (memory->found != number) {
      const uint64_t count = std::min(parts_.pixels, p.outer[0] * p.Positions() - first);
      pixels_.Find(first, count, group, &memory->pixels);
      memory->found = number;
    }
    const OutputPixels& pixels = memory->pixels;
    float* const own = memory->own;
    const uintptr_t input = input_.For(pixels, arguments, own + own_input_, &memory->held);
    const auto cut = static_cast<uint32_t>(parts_.channel_parts);
    const uint64_t begin = PartBegin(filter_.blocks(), static_cast<uint32_t>(channel_part), cut);
    const uint64_t end = PartBegin(filter_.blocks(), static_cast<uint32_t>(channel_part) + 1, cut);
    for (uint64_t index = begin; index < end; ++index) {
      const PixelFilter::Block block = filter_.BlockOf(index);
      const BlockRun run = {pixels, block, index, group, input, memory->held, arguments, own};
      if (own_weights_ != own_added_) TurnAdded(run);
      RunBlock(run);
      FinishBlock(run);
      if (planes_) TurnResults(run);
    }
  }

  // Some pixels of some output channels.
  struct BlockRun {
    const OutputPixels& pixels;
    const PixelFilter::Block& block;
    uint64_t number;  // the block's index
    uint64_t group;
    uintptr_t input;                 // address from which pixels count
    const InputPixels::Range& held;  // the part of the input that the worker holds
    const KernelArguments& arguments;
    float* own;  // the worker's memory: sums, added numbers, weights, FLOAT16, input
  };

  // What tiles prefetch.
  struct Ahead {
    bool pixels = false;  // prefetch the next tile's pixels
    std::optional<RowsAhead> rows, results;
  };

  uint64_t WidthOf(const PixelFilter::Block& block) const { return uint64_t{block.vectors} * tiles_.lanes; }

  float* SumsOf(const BlockRun& run, uint32_t pixel) const {
    if (halves_ || planes_) return run.own + pixel * WidthOf(run.block);
    return reinterpret_cast<float*>(run.arguments.outputs[0].data) + run.pixels.at[pixel].output +
           run.block.channel;
  }

  uint16_t* HalvesOf(const BlockRun& run, uint32_t pixel) const {
    if (planes_) return OwnHalves(run) + pixel * WidthOf(run.block);
    return reinterpret_cast<uint16_t*>(run.arguments.outputs[0].data) + run.pixels.at[pixel].output +
           run.block.channel;
  }

  uint16_t* OwnHalves(const BlockRun& run) const {
    return reinterpret_cast<uint16_t*>(run.own + own_halves_);
  }

  const void* AddedOf(const BlockRun& run, uint32_t pixel) const {
    if (own_weights_ != own_added_) {
      return reinterpret_cast<const std::byte*>(run.own + own_added_) +
             pixel * WidthOf(run.block) * ElementBytes();
    }
    return run.arguments.inputs[ConvolutionTail::kAdded].data +
           (run.pixels.at[pixel].added + run.block.channel) * ElementBytes();
  }

  uint64_t ElementBytes() const { return halves_ ? sizeof(uint16_t) : sizeof(float); }

  void RunBlock(const BlockRun& run) const {
    const OutputPixels& pixels = run.pixels;
    const float* const bias = numbers_.Bias(run.arguments, run.group) + run.block.channel;
    PixelTile tile;
    tile.last_channels = halves_ || planes_ ? 0 : run.block.last_channels;
    tile.normal = Normalizes() ? bias + numbers_.stride() : nullptr;
    tile.normal_stride = numbers_.stride();
    PixelTile::Run runs[PixelSteps::kMaxPieceTaps];
    for (const PixelSteps::Piece& piece : steps_.pieces()) {
      const bool is_last = &piece == &steps_.pieces().back();
      const PixelWeights::Place place = {run.group, run.block, run.number, piece};
      tile.weights = weights_.Of(run.arguments, place, run.own + own_weights_);
      tile.start = piece.first == 0 ? bias : nullptr;
      tile.finish = completes_ && is_last ? &finish_ : nullptr;
      if (tile.finish != nullptr) tile.last_channels = run.block.last_channels;
      Ahead ahead = AskAhead(run, place, &tile);
      for (uint32_t c = 0; c < pixels.class_count; ++c) {
        const OutputPixels::Class& same = pixels.classes[c];
        if (same.begin == same.end) continue;
        const PixelSteps::Runs own = steps_.RunsOf(piece, pixels_, same, runs);
        tile.runs = own.first;
        tile.run_count = own.count;
        AddTiles(run, pixels.order + same.begin, same.end - same.begin, &ahead, &tile);
      }
    }
  }

  // With many weights, tiles of pixels share the prefetch of the next piece, which follows this one or
  // consists of rows of the filter tensor. Otherwise they prefetch the next tile's input if its channels are
  // contiguous, which each tile must be told; or the planes of the next pixels, and then those of the
  // results.
  Ahead AskAhead(const BlockRun& run, const PixelWeights::Place& place, PixelTile* tile) const {
    constexpr uint64_t kLineBytes = 64;
    const uint32_t most = tiles_.pixels[run.block.vectors - 1];
    Ahead ahead;
    tile->AskForNothing();
    if (!weights_.is_near()) {
      const PixelWeights::Next next = weights_.Behind(run.arguments, place);
      ahead.rows = next.rows;
      if (next.bytes == 0) return ahead;
      const uint64_t tiles = std::max<uint64_t>(run.pixels.count / most, 1);
      tile->ahead = next.first;
      tile->ahead_step = std::min(kLineBytes, next.bytes / (tiles * place.piece.steps) + 1);
      return ahead;
    }
    const bool is_last = &place.piece == &steps_.pieces().back();
    if (input_.turns()) {
      if (is_last && run.number + 1 == filter_.blocks()) ahead.rows = input_.Next(run.held, run.arguments);
    } else if (problem_.shape.Taps() == 1 && run.block.vector == 0 && !input_.converts()) {
      tile->ahead_step = std::min(kLineBytes, most * sizeof(float));
      ahead.pixels = true;
      return ahead;
    }
    if (is_last && planes_ && asks_for_results_) ahead.results = PlanesOf(run);
    return ahead;
  }

  void AddTiles(const BlockRun& run, const uint16_t* list, uint32_t count, Ahead* ahead,
                PixelTile* tile) const {
    const bool adds = tile->finish != nullptr && tile->finish->adds;
    const bool in_output = !halves_ && !planes_;
    const bool asks_for_results = in_output && asks_for_results_ && tile->start != nullptr;
    float* const output = reinterpret_cast<float*>(run.arguments.outputs[0].data) + run.block.channel;
    const uint64_t width = WidthOf(run.block);
    uint64_t steps = 0;
    for (uint32_t r = 0; r < tile->run_count; ++r) steps += tile->runs[r].steps;
    // Tiles of nearly equal size: small ones wait for their own sums.
    const uint32_t most = tiles_.pixels[run.block.vectors - 1], tiles = (count + most - 1) / most;
    for (uint32_t number = 0, done = 0; number < tiles; ++number) {
      const uint32_t some = (count - done) / (tiles - number);
      for (uint32_t i = 0; i < some; ++i) {
        const uint32_t pixel = list[done + i];
        const OutputPixels::Pixel& at = run.pixels.at[pixel];
        // This may be far outside the input, where only some taps are inside: it is a number, not a pointer
        // to an element.
        tile->inputs[i] = run.input + at.input * sizeof(float);
        tile->sums[i] = in_output ? output + at.output : run.own + pixel * width;
        if (adds) tile->added[i] = AddedOf(run, pixel);
        if (halves_) tile->halves[i] = HalvesOf(run, pixel);
      }
      if (asks_for_results) AskForResults(run, list + done + some, std::min(some, count - done - some), adds);
      if (ahead->pixels) {
        tile->ahead = tile->inputs[some - 1] + problem_.shape.input_channels * sizeof(float);
      }
      if (ahead->results && (!ahead->rows || ahead->rows->is_done())) {
        ahead->results->Ask(tile);
      } else if (ahead->rows) {
        ahead->rows->Ask(tile);
      }
      tiles_.add[some - 1][run.block.vectors - 1](*tile);
      if (!ahead->pixels) tile->ahead += tile->ahead_step * steps;
      done += some;
    }
  }

  // Prefetches the places of the next tile's results and the numbers that are added to them, if the tensor is
  // large and so not in a cache.
  void AskForResults(const BlockRun& run, const uint16_t* list, uint32_t count, bool adds) const {
    constexpr uint64_t kLineBytes = 64;
    const uint64_t bytes = WidthOf(run.block) * sizeof(float);
    for (uint32_t i = 0; i < count; ++i) {
      const auto ask = [&](const void* row) {
        for (uint64_t at = 0; at < bytes; at += kLineBytes) {
          __builtin_prefetch(static_cast<const std::byte*>(row) + at, 0, 2);
        }
      };
      ask(SumsOf(run, list[i]));
      if (adds) ask(AddedOf(run, list[i]));
    }
  }

  // The planes to which the block's results are stored at its end; there is enough time to prefetch for tiles
  // of four steps at a time.
  RowsAhead PlanesOf(const BlockRun& run) const {
    const uint64_t stride = problem_.shape.output.channel * ElementBytes();
    return {.first = reinterpret_cast<uintptr_t>(run.arguments.outputs[0].data) +
                     run.pixels.at[0].output * ElementBytes() + run.block.channel * stride,
            .bytes = run.pixels.count * ElementBytes(),
            .stride = stride,
            .count = run.block.channels,
            .most_step = 16};
  }

  // Does what tiles cannot: an activation that is no limit.
  void FinishBlock(const BlockRun& run) const {
    if (completes_) return;
    for (uint32_t pixel = 0; pixel < run.pixels.count; ++pixel) {
      float* const sums = SumsOf(run, pixel);
      void* const to = halves_ ? static_cast<void*>(HalvesOf(run, pixel)) : sums;
      epilogue_.Finish(sums, run.block.channels, -0.0f, problem_.type, to);
    }
  }

  void TurnAdded(const BlockRun& run) const {
    const uint64_t stride = problem_.tail->addition->tensor.channel;
    run.pixels.LoadPlanes(
        problem_.type,
        run.arguments.inputs[ConvolutionTail::kAdded].data + run.block.channel * stride * ElementBytes(),
        stride, run.block.channels, WidthOf(run.block), run.own + own_added_);
  }

  void TurnResults(const BlockRun& run) const {
    const uint64_t stride = problem_.shape.output.channel;
    const void* const results = halves_ ? static_cast<const void*>(OwnHalves(run)) : run.own;
    run.pixels.StorePlanes(problem_.type, results, WidthOf(run.block), run.block.channels, stride,
                           run.arguments.outputs[0].data + run.block.channel * stride * ElementBytes());
  }

  ConvolutionProblem problem_;
  const PixelTiles& tiles_;
  ScratchLayout scratch_;
  PixelFilter filter_;
  InputPixels pixels_;
  ChannelNumbers numbers_;
  PixelSteps steps_;
  PixelWeights weights_;
  Epilogue epilogue_;
  uint32_t threads_;
  bool halves_, planes_;  // the output is FLOAT16; is planes
  PixelParts parts_;
  PixelInput input_;
  bool completes_;  // tiles also do everything after the sums
  bool asks_for_results_;
  PixelFinish finish_;
  // Per worker, with the offsets of its parts.
  uint64_t worker_floats_ = 0, own_added_, own_weights_, own_halves_, own_input_;
  ScratchLayout::Piece own_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionChannelsLast(const ConvolutionProblem& problem,
                                                            const LowerContext& context,
                                                            std::string* why_not) {
  *why_not = WhyNotChannelsLast(problem);
  if (!why_not->empty()) return nullptr;
  return std::make_unique<ConvolutionChannelsLast>(problem, context.threads);
}

}  // namespace anydml
