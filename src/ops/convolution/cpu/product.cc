// A convolution as a matrix product of filters with windows that are never materialised: panels are packed
// from the input or, if elements are read more than once, from a copy with its padding.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "base/half.h"
#include "ops/convolution/cpu/padded.h"
#include "ops/numbers/epilogue.h"
#include "ops/numbers/load_store.h"
#include "ops/product/batched.h"
#include "ops/product/outside_taps.h"
#include "ops/product/window_panels.h"

namespace anydml {
namespace {

constexpr uint32_t kLast = kMaxSpatial - 1;

// The common stride of the output's positions in row-major order, if there is one.
bool PositionStride(const ConvolutionShape& p, uint64_t* stride) {
  *stride = 0;
  uint64_t next = 0;  // the stride that continues the dimensions so far
  for (uint32_t d = kMaxSpatial; d-- > 0;) {
    if (p.windows[d].output == 1) continue;
    if (*stride == 0) {
      *stride = next = p.output.spatial[d];
    } else if (p.output.spatial[d] != next) {
      return false;
    }
    next *= p.windows[d].output;
  }
  if (*stride == 0) *stride = 1;
  return true;
}

// Finished rows: a channel's positions, or a position's channels.
class ConvolutionSink final : public ProductSink {
 public:
  ConvolutionSink(const ConvolutionProblem& problem, const Epilogue& epilogue, bool channels_are_rows,
                  const std::byte* bias, std::byte* output)
      : problem_(problem),
        epilogue_(epilogue),
        channels_are_rows_(channels_are_rows),
        bias_(bias),
        output_(output) {
    one_stride_ = PositionStride(problem.shape, &position_stride_);
  }

  bool IsNaN(uint64_t channel, uint64_t position) const {
    const uint64_t at = channel * problem_.shape.output.channel +
                        (one_stride_ ? position * position_stride_ : OffsetOf(position));
    if (problem_.type == DataType::kFloat32) return std::isnan(reinterpret_cast<const float*>(output_)[at]);
    return std::isnan(ToFloat(reinterpret_cast<const Half*>(output_)[at]));
  }

  void Finish(uint64_t row, uint64_t column, uint64_t count, float* sums) const override {
    if (channels_are_rows_ && one_stride_ && position_stride_ == 1) {
      const uint64_t at = row * problem_.shape.output.channel + column;
      epilogue_.Finish(sums, count, bias_ == nullptr ? -0.0f : BiasOf(row), problem_.type,
                       output_ + at * (BitSize(problem_.type) / 8));
      return;
    }
    if (bias_ != nullptr) AddBias(channels_are_rows_ ? row : column, count, sums);
    epilogue_.Apply(sums, count);
    if (!channels_are_rows_) {
      Put(OffsetOf(row) + column * problem_.shape.output.channel, problem_.shape.output.channel, count, sums);
      return;
    }
    const uint64_t channel = row * problem_.shape.output.channel;
    if (one_stride_) {
      Put(channel + column * position_stride_, position_stride_, count, sums);
      return;
    }
    const uint64_t width = problem_.shape.windows[kLast].output;
    for (uint64_t done = 0; done < count;) {
      const uint64_t run = std::min(count - done, width - (column + done) % width);
      Put(channel + OffsetOf(column + done), problem_.shape.output.spatial[kLast], run, sums + done);
      done += run;
    }
  }

 private:
  uint64_t OffsetOf(uint64_t position) const {
    uint64_t offset = 0;
    for (uint32_t d = kMaxSpatial; d-- > 0; position /= problem_.shape.windows[d].output) {
      offset += position % problem_.shape.windows[d].output * problem_.shape.output.spatial[d];
    }
    return offset;
  }

  float BiasOf(uint64_t channel) const {
    float bias;
    FindLoad(problem_.type, Class::kF32)(bias_, {.offset = channel * *problem_.bias}, &bias);
    return bias;
  }

  void AddBias(uint64_t channel, uint64_t count, float* sums) const {
    const LoadBlock load = FindLoad(problem_.type, Class::kF32);
    if (channels_are_rows_) {
      const float bias = BiasOf(channel);
      for (uint64_t i = 0; i < count; ++i) sums[i] += bias;
      return;
    }
    constexpr uint64_t kSome = 64;
    float bias[kSome];
    for (uint64_t done = 0; done < count; done += kSome) {
      const uint64_t some = std::min(kSome, count - done);
      load(bias_,
           {.columns = some, .column_stride = *problem_.bias, .offset = (channel + done) * *problem_.bias},
           bias);
      for (uint64_t i = 0; i < some; ++i) sums[done + i] += bias[i];
    }
  }

  void Put(uint64_t at, uint64_t stride, uint64_t count, const float* sums) const {
    if (problem_.type == DataType::kFloat32 && stride == 1) {
      float* const target = reinterpret_cast<float*>(output_) + at;
      if (target != sums) std::memcpy(target, sums, count * sizeof(float));
      return;
    }
    FindStore(Class::kF32, problem_.type)(sums, {.columns = count, .column_stride = stride, .offset = at},
                                          output_);
  }

  const ConvolutionProblem& problem_;
  const Epilogue& epilogue_;
  bool channels_are_rows_;
  const std::byte* bias_;  // of the group's first channel
  std::byte* output_;      // of its first element
  bool one_stride_;
  uint64_t position_stride_;
};

// Whether the product's rows are output channels and its columns positions, or the reverse.
struct Orientation {
  bool channels_are_rows;
  uint64_t m, n;
  bool in_output;  // sums are kept in the output
  uint64_t row_stride;

  explicit Orientation(const ConvolutionProblem& problem) {
    const ConvolutionShape& p = problem.shape;
    uint64_t stride;
    const bool one_stride = PositionStride(p, &stride);
    channels_are_rows = !(p.output_channels > 1 && p.output.channel == 1);  // as in memory
    m = channels_are_rows ? p.output_channels : p.Positions();
    n = channels_are_rows ? p.Positions() : p.output_channels;
    in_output = problem.type == DataType::kFloat32 && one_stride && (stride == 1 || !channels_are_rows);
    row_stride = channels_are_rows ? p.output.channel : stride;
  }
};

class ConvolutionProduct final : public Kernel {
 public:
  ConvolutionProduct(const ConvolutionProblem& problem, uint32_t threads)
      : problem_(problem),
        epilogue_(problem.activation),
        outside_(problem.shape),
        way_(problem),
        product_({problem.shape.outer, way_.m, way_.n, problem.shape.Steps()}, !way_.in_output, threads,
                 &layout_) {
    const ConvolutionShape& p = problem.shape;
    padded_ = PaddedInput::Create(p, problem.type, threads, &layout_);
    float nan = std::numeric_limits<float>::quiet_NaN();
    epilogue_.Apply(&nan, 1);
    shows_nans_ = std::isnan(nan);
    if (!problem.filter_is_owned) return;
    const MicroKernel& tile = GemmMicroKernel();
    filter_ = PackedOperand::Create(
        {p.outer, p.filter.outer, p.output_channels, p.Steps(),
         way_.channels_are_rows ? tile.rows : tile.columns, problem.type == DataType::kFloat16},
        threads, &persistent_);
  }

  uint64_t temporary_bytes() const override { return layout_.bytes(); }
  uint64_t persistent_bytes() const override { return persistent_.bytes(); }
  bool packs_input(uint32_t input) const override { return input == 1 && filter_; }

  Status Initialize(const KernelArguments& arguments) const override {
    filter_->Pack(arguments, [&](const BatchIndex& index) { return Filter(arguments, index); });
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    const ConvolutionShape& p = problem_.shape;
    const std::byte* const input = arguments.inputs[0].data;
    if (padded_) padded_->Load(input, arguments);
    product_.ForParts<float>(arguments, [&](const BatchIndex& index, ProductPart part,
                                            std::span<float> scratch) {
      std::byte* const output = arguments.outputs[0].data + p.output.Matrix(index[0], index[1]) * Width();
      const std::byte* const bias =
          problem_.bias ? arguments.inputs[2].data + index[1] * p.output_channels * *problem_.bias * Width()
                        : nullptr;
      const WindowPanels windows(p, problem_.type, input + p.input.Matrix(index[0], index[1]) * Width());
      std::optional<PaddedInput::Panels> panels;
      if (padded_) panels.emplace(padded_->Find(arguments, index[0], index[1]));
      const ProductOperand positions = panels ? ProductOperand(*panels) : ProductOperand(windows);
      const FilterPanels filter = Filter(arguments, index);
      const ProductOperand filters = OperandOf(filter_, arguments, index, filter);
      const ConvolutionSink sink(problem_, epilogue_, way_.channels_are_rows, bias, output);
      if (way_.in_output) {
        part.sums = reinterpret_cast<float*>(output) + part.row * way_.row_stride + part.column;
        part.sums_stride = way_.row_stride;
      }
      const bool plain = way_.in_output && bias == nullptr && epilogue_.empty();
      RunProduct<float>(part, way_.channels_are_rows ? filters : positions,
                        way_.channels_are_rows ? positions : filters, plain ? nullptr : &sink, scratch);
      if (outside_.any()) {
        Repair(part, filters, input, p.input.Matrix(index[0], index[1]), sink);
      }
    });
    return {};
  }

 private:
  uint64_t Width() const { return BitSize(problem_.type) / 8; }

  FilterPanels Filter(const KernelArguments& arguments, const BatchIndex& index) const {
    const std::byte* const data = arguments.inputs[1].data;
    const uint64_t at = problem_.shape.filter.Matrix(index[0], index[1]) * Width();
    return {problem_.shape, problem_.type, data == nullptr ? nullptr : data + at};
  }

  // Recomputes sums that are NaN only because zeros of the padding were multiplied by infinities or NaNs.
  // Most sums show that there are none, without a look at the weights.
  void Repair(const ProductPart& part, const ProductOperand& filters, const std::byte* input, uint64_t matrix,
              const ConvolutionSink& sink) const {
    const bool rows = way_.channels_are_rows;
    const uint64_t first = rows ? part.row : part.column, channels = rows ? part.rows : part.columns;
    const uint64_t begin = rows ? part.column : part.row, end = begin + (rows ? part.columns : part.rows);
    for (uint64_t channel = first; channel < first + channels; ++channel) {
      bool is_known = false, is_finite = false;
      outside_.ForPositions(begin, end, [&](uint64_t position) {
        if ((shows_nans_ && !sink.IsNaN(channel, position)) || is_finite) return;
        if (!is_known) is_finite = HasFiniteFilter(filters, channel);
        is_known = true;
        if (is_finite) return;
        double sum = 0;
        ForWeights(filters, channel, [&](uint64_t step, uint64_t steps, const float* weights) {
          sum += SumInside(problem_.shape, problem_.type, input, matrix, position, step, steps, weights);
        });
        auto number = static_cast<float>(sum);
        sink.Finish(rows ? channel : position, rows ? position : channel, 1, &number);
      });
    }
  }

  bool HasFiniteFilter(const ProductOperand& filters, uint64_t channel) const {
    bool is_finite = true;
    ForWeights(filters, channel, [&](uint64_t, uint64_t steps, const float* weights) {
      is_finite = is_finite && AreFinite(weights, steps);
    });
    return is_finite;
  }

  // Calls body(step, steps, weights) for all steps of a channel, several at a time.
  template <typename Body>
  void ForWeights(const ProductOperand& filters, uint64_t channel, Body&& body) const {
    constexpr uint64_t kSome = 64;
    alignas(64) float panel[kSome * kMaxTileColumns];
    float weights[kSome];
    const uint64_t all = problem_.shape.Steps();
    const uint32_t width = way_.channels_are_rows ? GemmMicroKernel().rows : GemmMicroKernel().columns;
    const uint64_t first = channel / width * all * width + channel % width;  // offset in the packed filters
    for (uint64_t step = 0; step < all; step += kSome) {
      const uint64_t steps = std::min(kSome, all - step);
      if (filters.source != nullptr) filters.source->Pack(channel, 1, step, steps, width, panel);
      for (uint64_t s = 0; s < steps; ++s) {
        const uint64_t at = first + (step + s) * width;
        weights[s] = filters.source != nullptr   ? panel[s * width]
                     : filters.packed != nullptr ? filters.packed[at]
                                                 : ToFloat(Half{filters.packed_halves[at]});
      }
      body(step, steps, weights);
    }
  }

  ConvolutionProblem problem_;
  Epilogue epilogue_;
  OutsideTaps outside_;
  bool shows_nans_;  // NaNs remain visible after the activation
  Orientation way_;
  ScratchLayout layout_, persistent_;
  BatchedProduct product_;
  std::optional<PackedOperand> filter_;
  std::optional<PaddedInput> padded_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionProduct(const ConvolutionProblem& problem,
                                                       const LowerContext& context, std::string*) {
  return std::make_unique<ConvolutionProduct>(problem, context.threads);
}

}  // namespace anydml
