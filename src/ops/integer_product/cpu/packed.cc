// Exact sums of 8-bit numbers with the FLOAT32 product: 256 products of numbers up to 255 add up without
// rounding, and go into INT32 then.
#include <algorithm>
#include <cstring>

#include "kernel/scratch_layout.h"
#include "ops/common/parallel.h"
#include "ops/convolution/cpu/panels.h"
#include "ops/element/cpu/blocks.h"
#include "ops/integer_product/problem.h"

namespace anydml {
namespace {

constexpr uint64_t kProductsPerThread = uint64_t{1} << 17;

// A channel's sums into an output that is not contiguous.
class StridedSums final : public SumSink<int32_t> {
 public:
  StridedSums(const ConvolutionShape& shape, int32_t* output) : shape_(shape), output_(output) {}

  void Finish(uint64_t row, uint64_t column, uint64_t count, int32_t* sums) const override {
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t at = row * shape_.output.channel, position = column + i;
      for (uint32_t d = kMaxSpatial; d-- > 0; position /= shape_.windows[d].output) {
        at += position % shape_.windows[d].output * shape_.output.spatial[d];
      }
      output_[at] = sums[i];
    }
  }

 private:
  const ConvolutionShape& shape_;
  int32_t* output_;
};

class IntegerPacked final : public Kernel {
 public:
  IntegerPacked(const IntegerSums& problem, uint32_t threads) : problem_(problem) {
    const ConvolutionShape& s = problem_.shape;
    uint64_t expected = 1;
    for (uint32_t d = kMaxSpatial; d-- > 0; expected *= s.windows[d].output) {
      in_output_ = in_output_ && (s.windows[d].output == 1 || s.output.spatial[d] == expected);
    }
    const auto useful = static_cast<uint32_t>(
        std::clamp<uint64_t>(s.Elements() * s.Steps() / kProductsPerThread, 1, threads));
    const uint64_t matrices = s.Matrices();
    grid_ = CutProduct(s.output_channels, s.Positions(),
                       matrices >= useful ? 1 : useful / static_cast<uint32_t>(matrices));
    parts_ = matrices * grid_.rows * grid_.columns;
    workers_ = static_cast<uint32_t>(std::min<uint64_t>(parts_, useful));
    worker_floats_ = ProductScratch(std::min(grid_.row_step, s.output_channels),
                                    std::min(grid_.column_step, s.Positions()), s.Steps(), !in_output_);
    panels_ = layout_.Add("panels", workers_ * worker_floats_ * sizeof(float), 64);
    if (problem.input_zero) {
      input_zeros_ = layout_.Add("zero points of the input", s.outer[1] * s.Positions() * sizeof(float));
    }
    if (problem.filter_zero) {
      filter_zeros_ =
          layout_.Add("zero points of the filter", s.outer[1] * s.output_channels * sizeof(float));
    }
  }

  uint64_t temporary_bytes() const override { return layout_.bytes(); }

  Status Run(const KernelArguments& arguments) const override {
    const ConvolutionShape& s = problem_.shape;
    LoadZeros(problem_.input_zero, problem_.input_type, s.Positions(), input_zeros_, arguments);
    LoadZeros(problem_.filter_zero, problem_.filter_type, s.output_channels, filter_zeros_, arguments);
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      float* const scratch = panels_.In<float>(arguments.temporary) + worker * worker_floats_;
      const uint64_t end = PartBegin(parts_, worker + 1, workers_);
      for (uint64_t part = PartBegin(parts_, worker, workers_); part < end; ++part) {
        RunPart(part, arguments, scratch);
      }
    });
    return {};
  }

 private:
  // One for each of `count`, for each of outer[1].
  void LoadZeros(const std::optional<ZeroPoints>& zero, DataType type, uint64_t count,
                 const ScratchLayout::Piece& piece, const KernelArguments& arguments) const {
    if (!zero) return;
    const Block block = {problem_.shape.outer[1], count, zero->group, zero->stride, 0};
    FindLoad(type, Class::kF32)(arguments.inputs[zero->input].data, block,
                                piece.In<float>(arguments.temporary));
  }

  void RunPart(uint64_t number, const KernelArguments& arguments, float* scratch) const {
    const ConvolutionShape& s = problem_.shape;
    const uint64_t column = number % grid_.columns * grid_.column_step;
    const uint64_t row = number / grid_.columns % grid_.rows * grid_.row_step;
    const uint64_t matrix = number / grid_.columns / grid_.rows;
    const uint64_t outer0 = matrix / s.outer[1], outer1 = matrix % s.outer[1];
    auto* const output =
        reinterpret_cast<int32_t*>(arguments.outputs[0].data) + s.output.Matrix(outer0, outer1);
    const auto zeros = [&](bool present, const ScratchLayout::Piece& piece, uint64_t count) {
      return present ? piece.In<float>(arguments.temporary) + outer1 * count : nullptr;
    };
    const FilterPanels filters(s, problem_.filter_type,
                               arguments.inputs[problem_.filter].data + s.filter.Matrix(outer0, outer1),
                               zeros(problem_.filter_zero.has_value(), filter_zeros_, s.output_channels));
    const WindowPanels windows(s, problem_.input_type,
                               arguments.inputs[problem_.input].data + s.input.Matrix(outer0, outer1),
                               zeros(problem_.input_zero.has_value(), input_zeros_, s.Positions()));
    const StridedSums sink(s, output);
    PartOf<int32_t> part = {row,       std::min(grid_.row_step, s.output_channels - row),
                            column,    std::min(grid_.column_step, s.Positions() - column),
                            s.Steps(), nullptr,
                            0};
    if (in_output_) {
      part.sums = output + row * s.output.channel + column;
      part.sums_stride = s.output.channel;
    }
    RunProduct<int32_t>(part, filters, windows, in_output_ ? nullptr : &sink, scratch);
  }

  IntegerSums problem_;
  bool in_output_ = true;  // sums are kept where the output is
  ProductGrid grid_;
  uint64_t parts_;
  uint32_t workers_;
  uint64_t worker_floats_;
  ScratchLayout layout_;
  ScratchLayout::Piece panels_, input_zeros_, filter_zeros_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateIntegerSums(const IntegerProductProblem& problem,
                                                const LowerContext& context, std::string* why_not) {
  if (!problem.program.program.instructions.empty()) {
    *why_not = "there are scales";
    return nullptr;
  }
  if (problem.sums.sum_type != DataType::kInt32) {
    *why_not = "operands have more than 8 bits";
    return nullptr;
  }
  return std::make_unique<IntegerPacked>(problem.sums, context.threads);
}

}  // namespace anydml
