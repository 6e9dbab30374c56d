// Exact sums of 8-bit numbers with the FLOAT32 product: 256 products of numbers up to 255 are summed exactly
// in FLOAT32, then added to an INT32 sum.
#include <algorithm>
#include <cstring>

#include "ops/integer_product/cpu/requantize.h"
#include "ops/integer_product/problem.h"
#include "ops/numbers/load_store.h"
#include "ops/product/batched.h"
#include "ops/product/window_panels.h"

namespace anydml {
namespace {

// A channel's sums as bytes.
class RequantizedSums final : public SumSink<int32_t> {
 public:
  RequantizedSums(const RowRequantizer& requantizer, const BatchIndex& index,
                  const KernelArguments& arguments)
      : requantizer_(requantizer), index_(index), arguments_(arguments) {}

  void Finish(uint64_t row, uint64_t column, uint64_t count, int32_t* sums) const override {
    requantizer_.Put(arguments_, index_, row, column, count, sums);
  }

 private:
  const RowRequantizer& requantizer_;
  BatchIndex index_;
  const KernelArguments& arguments_;
};

// A channel's sums in an output that is not contiguous.
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

bool KeptInOutput(const ConvolutionShape& s) {
  uint64_t expected = 1;
  bool contiguous = true;
  for (uint32_t d = kMaxSpatial; d-- > 0; expected *= s.windows[d].output) {
    contiguous = contiguous && (s.windows[d].output == 1 || s.output.spatial[d] == expected);
  }
  return contiguous;
}

class IntegerPacked final : public Kernel {
 public:
  IntegerPacked(const IntegerProductProblem& whole, uint32_t threads)
      : problem_(whole.sums),
        in_output_(!whole.requantization && KeptInOutput(problem_.shape)),
        input_zeros_(AddZeros(problem_.input_zero, problem_.shape.Positions())),
        filter_zeros_(AddZeros(problem_.filter_zero, problem_.shape.output_channels)),
        zeros_bytes_(layout_.bytes()),
        product_({problem_.shape.outer, problem_.shape.output_channels, problem_.shape.Positions(),
                  problem_.shape.Steps()},
                 !in_output_, threads, &layout_) {
    const IntegerSums& problem = whole.sums;
    const ConvolutionShape& s = problem.shape;
    if (whole.requantization) requantizer_.emplace(*whole.requantization, s);
    const MicroKernel& tile = GemmMicroKernel();
    // Groups with the same numbers may have different zero points.
    const auto strides = [](std::array<uint64_t, 2> outer, const std::optional<ZeroPoints>& zero) {
      if (zero) outer[1] += zero->group;
      return outer;
    };
    if (problem.filter_is_owned) {
      filter_ = PackedOperand::Create(
          {s.outer, strides(s.filter.outer, problem.filter_zero), s.output_channels, s.Steps(), tile.rows},
          threads, &persistent_);
    }
    if (problem.input_is_owned) {
      input_ = PackedOperand::Create(
          {s.outer, strides(s.input.outer, problem.input_zero), s.Positions(), s.Steps(), tile.columns},
          threads, &persistent_);
    }
  }

  uint64_t temporary_bytes() const override { return layout_.bytes(); }
  uint64_t persistent_bytes() const override { return persistent_.bytes(); }
  uint64_t initialization_temporary_bytes() const override { return zeros_bytes_; }
  bool packs_input(uint32_t input) const override {
    return (input == problem_.filter && filter_) || (input == problem_.input && input_);
  }

  Status Initialize(const KernelArguments& arguments) const override {
    if (filter_) {
      LoadFilterZeros(arguments);
      filter_->Pack(arguments, [&](const BatchIndex& index) { return Filter(arguments, index); });
    }
    if (input_) {
      LoadInputZeros(arguments);
      input_->Pack(arguments, [&](const BatchIndex& index) { return Windows(arguments, index); });
    }
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    const ConvolutionShape& s = problem_.shape;
    if (!filter_) LoadFilterZeros(arguments);
    if (!input_) LoadInputZeros(arguments);
    product_.ForParts<int32_t>(
        arguments, [&](const BatchIndex& index, PartOf<int32_t> part, std::span<float> scratch) {
          auto* const output =
              reinterpret_cast<int32_t*>(arguments.outputs[0].data) + s.output.Matrix(index[0], index[1]);
          const StridedSums sink(s, output);
          if (in_output_) {
            part.sums = output + part.row * s.output.channel + part.column;
            part.sums_stride = s.output.channel;
          }
          const auto run = [&](const SumSink<int32_t>* to) {
            RunProduct<int32_t>(part, OperandOf(filter_, arguments, index, Filter(arguments, index)),
                                OperandOf(input_, arguments, index, Windows(arguments, index)), to, scratch);
          };
          if (requantizer_) {
            const RequantizedSums bytes(*requantizer_, index, arguments);
            run(&bytes);
          } else {
            run(in_output_ ? nullptr : &sink);
          }
        });
    return {};
  }

 private:
  // One for each of `count`, for each of outer[1].
  ScratchLayout::Piece AddZeros(const std::optional<ZeroPoints>& zero, uint64_t count) {
    if (!zero) return {};
    return layout_.Add("zero points", problem_.shape.outer[1] * count * sizeof(float));
  }
  void LoadZeros(const std::optional<ZeroPoints>& zero, DataType type, uint64_t count,
                 const ScratchLayout::Piece& piece, const KernelArguments& arguments) const {
    if (!zero) return;
    const Block block = {problem_.shape.outer[1], count, zero->group, zero->stride, 0};
    FindLoad(type, Class::kF32)(arguments.inputs[zero->input].data, block,
                                piece.In<float>(arguments.temporary));
  }
  void LoadInputZeros(const KernelArguments& arguments) const {
    LoadZeros(problem_.input_zero, problem_.input_type, problem_.shape.Positions(), input_zeros_, arguments);
  }
  void LoadFilterZeros(const KernelArguments& arguments) const {
    LoadZeros(problem_.filter_zero, problem_.filter_type, problem_.shape.output_channels, filter_zeros_,
              arguments);
  }

  FilterPanels Filter(const KernelArguments& arguments, const BatchIndex& index) const {
    const ConvolutionShape& s = problem_.shape;
    const std::byte* const data = arguments.inputs[problem_.filter].data;
    if (data == nullptr) return {s, problem_.filter_type, nullptr};  // packed
    const float* const zeros =
        problem_.filter_zero ? filter_zeros_.In<float>(arguments.temporary) + index[1] * s.output_channels
                             : nullptr;
    return {s, problem_.filter_type, data + s.filter.Matrix(index[0], index[1]), zeros};
  }
  WindowPanels Windows(const KernelArguments& arguments, const BatchIndex& index) const {
    const ConvolutionShape& s = problem_.shape;
    const std::byte* const data = arguments.inputs[problem_.input].data;
    if (data == nullptr) return {s, problem_.input_type, nullptr};  // packed
    const float* const zeros = problem_.input_zero
                                   ? input_zeros_.In<float>(arguments.temporary) + index[1] * s.Positions()
                                   : nullptr;
    return {s, problem_.input_type, data + s.input.Matrix(index[0], index[1]), zeros};
  }

  IntegerSums problem_;
  std::optional<RowRequantizer> requantizer_;
  bool in_output_;  // sums are kept in the output
  ScratchLayout layout_, persistent_;
  ScratchLayout::Piece input_zeros_, filter_zeros_;
  uint64_t zeros_bytes_;
  BatchedProduct product_;
  std::optional<PackedOperand> filter_, input_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateIntegerSums(const IntegerProductProblem& problem,
                                                const LowerContext& context, std::string* why_not) {
  if (!problem.program.program.instructions.empty() && !problem.requantization) {
    *why_not = "there are scales that rows do not share";
    return nullptr;
  }
  if (problem.sums.sum_type != DataType::kInt32) {
    *why_not = "operands have more than 8 bits";
    return nullptr;
  }
  return std::make_unique<IntegerPacked>(problem, context.threads);
}

}  // namespace anydml
