// A convolution as a matrix product of filters with windows that are never written out: panels are packed
// from the input itself.
#include <algorithm>
#include <cstring>

#include "kernel/scratch_layout.h"
#include "ops/common/parallel.h"
#include "ops/convolution/cpu/panels.h"
#include "ops/element/cpu/blocks.h"
#include "ops/element/cpu/epilogue.h"

namespace anydml {
namespace {

constexpr uint64_t kProductsPerThread = uint64_t{1} << 17;
constexpr uint32_t kLast = kMaxSpatial - 1;

// Positions of the output that are neighbours in memory have one stride.
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

// Finished rows: of a channel's positions, or of a position's channels.
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

  void Finish(uint64_t row, uint64_t column, uint64_t count, float* sums) const override {
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

  void AddBias(uint64_t channel, uint64_t count, float* sums) const {
    const LoadBlock load = FindLoad(problem_.type, Class::kF32);
    if (channels_are_rows_) {
      float bias;
      load(bias_, {.offset = channel * *problem_.bias}, &bias);
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

class ConvolutionProduct final : public Kernel {
 public:
  ConvolutionProduct(const ConvolutionProblem& problem, uint32_t threads)
      : problem_(problem), epilogue_(problem.activation) {
    const ConvolutionShape& p = problem_.shape;
    uint64_t stride;
    const bool one_stride = PositionStride(p, &stride);
    channels_are_rows_ = !(p.output_channels > 1 && p.output.channel == 1);
    m_ = channels_are_rows_ ? p.output_channels : p.Positions();
    n_ = channels_are_rows_ ? p.Positions() : p.output_channels;
    in_output_ = problem.type == DataType::kFloat32 && one_stride && (stride == 1 || !channels_are_rows_);
    row_stride_ = channels_are_rows_ ? p.output.channel : stride;
    const auto useful = static_cast<uint32_t>(
        std::clamp<uint64_t>(p.Elements() * p.Steps() / kProductsPerThread, 1, threads));
    const uint64_t matrices = p.Matrices();
    grid_ = CutProduct(m_, n_, matrices >= useful ? 1 : useful / static_cast<uint32_t>(matrices));
    parts_ = matrices * grid_.rows * grid_.columns;
    workers_ = static_cast<uint32_t>(std::min<uint64_t>(parts_, useful));
    worker_floats_ =
        ProductScratch(std::min(grid_.row_step, m_), std::min(grid_.column_step, n_), p.Steps(), !in_output_);
    scratch_ = layout_.Add("panels", workers_ * worker_floats_ * sizeof(float), 64);
  }

  uint64_t temporary_bytes() const override { return layout_.bytes(); }

  Status Run(const KernelArguments& arguments) const override {
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      float* const scratch = scratch_.In<float>(arguments.temporary) + worker * worker_floats_;
      const uint64_t end = PartBegin(parts_, worker + 1, workers_);
      for (uint64_t part = PartBegin(parts_, worker, workers_); part < end; ++part) {
        RunPart(part, arguments, scratch);
      }
    });
    return {};
  }

 private:
  void RunPart(uint64_t number, const KernelArguments& arguments, float* scratch) const {
    const ConvolutionShape& p = problem_.shape;
    const uint64_t column = number % grid_.columns * grid_.column_step;
    const uint64_t row = number / grid_.columns % grid_.rows * grid_.row_step;
    const uint64_t matrix = number / grid_.columns / grid_.rows;
    const uint64_t batch = matrix / p.outer[1], group = matrix % p.outer[1];
    const uint64_t width = BitSize(problem_.type) / 8;
    std::byte* const output = arguments.outputs[0].data + p.output.Matrix(batch, group) * width;
    const std::byte* const bias =
        problem_.bias ? arguments.inputs[2].data + group * p.output_channels * *problem_.bias * width
                      : nullptr;
    const FilterPanels filters(p, problem_.type,
                               arguments.inputs[1].data + p.filter.Matrix(batch, group) * width);
    const WindowPanels windows(p, problem_.type,
                               arguments.inputs[0].data + p.input.Matrix(batch, group) * width);
    const ConvolutionSink sink(problem_, epilogue_, channels_are_rows_, bias, output);
    ProductPart part = {row,       std::min(grid_.row_step, m_ - row),
                        column,    std::min(grid_.column_step, n_ - column),
                        p.Steps(), nullptr,
                        0};
    if (in_output_) {
      part.sums = reinterpret_cast<float*>(output) + row * row_stride_ + column;
      part.sums_stride = row_stride_;
    }
    const bool plain = in_output_ && bias == nullptr && epilogue_.empty();
    const PanelSource& a = channels_are_rows_ ? static_cast<const PanelSource&>(filters) : windows;
    const PanelSource& b = channels_are_rows_ ? static_cast<const PanelSource&>(windows) : filters;
    RunProduct<float>(part, a, b, plain ? nullptr : &sink, scratch);
  }

  ConvolutionProblem problem_;
  Epilogue epilogue_;
  bool channels_are_rows_;  // of the product; otherwise they are its columns, as they are in memory
  uint64_t m_, n_;
  bool in_output_;  // sums are kept where the output is
  uint64_t row_stride_;
  ProductGrid grid_;
  uint64_t parts_;
  uint32_t workers_;
  uint64_t worker_floats_;
  ScratchLayout layout_;
  ScratchLayout::Piece scratch_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateConvolutionProduct(const ConvolutionProblem& problem,
                                                       const LowerContext& context, std::string*) {
  return std::make_unique<ConvolutionProduct>(problem, context.threads);
}

}  // namespace anydml
