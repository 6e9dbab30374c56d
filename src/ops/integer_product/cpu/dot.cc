// Exact sums of 8-bit numbers with instructions that add up products of bytes. Of numbers a and b with zero
// points x and y, the sum of (a - x)(b - y) is that of ab, less y times the sum of a, less x times the sum of
// b - y.
#include <algorithm>
#include <cstring>

#include "ops/element/cpu/blocks.h"
#include "ops/gemm/cpu/batched.h"
#include "ops/integer_product/cpu/dot_kernel.h"
#include "ops/integer_product/cpu/quads.h"
#include "ops/integer_product/cpu/requantize.h"
#include "ops/integer_product/problem.h"

namespace anydml {
namespace {

// Of one product: zero points and sums over all steps; null where they do not matter.
struct Corrections {
  const int32_t *row_zeros = nullptr, *row_sums = nullptr;
  const int32_t *column_zeros = nullptr, *column_sums = nullptr;
  uint64_t steps;
};

class DotSums final : public SumSink<int32_t> {
 public:
  DotSums(const ConvolutionShape& shape, const Corrections& corrections, const RowRequantizer* requantizer,
          bool in_output, const BatchIndex& index, const KernelArguments& arguments)
      : shape_(shape),
        corrections_(corrections),
        requantizer_(requantizer),
        in_output_(in_output),
        index_(index),
        arguments_(arguments) {}

  void Finish(uint64_t row, uint64_t column, uint64_t count, int32_t* sums) const override {
    Correct(row, column, count, reinterpret_cast<uint32_t*>(sums));
    if (requantizer_ != nullptr) return requantizer_->Put(arguments_, index_, row, column, count, sums);
    if (!in_output_) Scatter(row, column, count, sums);
  }

 private:
  void Scatter(uint64_t row, uint64_t column, uint64_t count, const int32_t* sums) const {
    auto* const output =
        reinterpret_cast<int32_t*>(arguments_.outputs[0].data) + shape_.output.Matrix(index_[0], index_[1]);
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t at = row * shape_.output.channel, position = column + i;
      for (uint32_t d = kMaxSpatial; d-- > 0; position /= shape_.windows[d].output) {
        at += position % shape_.windows[d].output * shape_.output.spatial[d];
      }
      output[at] = sums[i];
    }
  }

  // Wraps.
  void Correct(uint64_t row, uint64_t column, uint64_t count, uint32_t* sums) const {
    const Corrections& c = corrections_;
    const auto number = [](const int32_t* numbers, uint64_t at) {
      return numbers == nullptr ? 0 : static_cast<uint32_t>(numbers[at]);
    };
    const uint32_t x = number(c.row_zeros, row);
    if (c.column_zeros != nullptr) {
      const uint32_t rows = number(c.row_sums, row) - static_cast<uint32_t>(c.steps) * x;
      for (uint64_t i = 0; i < count; ++i)
        sums[i] -= static_cast<uint32_t>(c.column_zeros[column + i]) * rows;
    }
    if (x == 0) return;
    for (uint64_t i = 0; i < count; ++i) sums[i] -= x * static_cast<uint32_t>(c.column_sums[column + i]);
  }

  const ConvolutionShape& shape_;
  const Corrections& corrections_;
  const RowRequantizer* requantizer_;  // null: the output has the sums
  bool in_output_;                     // sums are kept there
  BatchIndex index_;
  const KernelArguments& arguments_;
};

// What an operand adds to the corrections: zero points for each group, and sums for each different matrix.
struct OperandPlan {
  std::optional<ZeroPoints> zero;
  DataType type;
  uint64_t elements;
  bool rows;       // of the product
  bool has_zeros;  // some may not be 0
  bool has_sums;   // the other one's zero points ask for them
  std::optional<PackedOperand> packed = std::nullopt;
  ScratchLayout::Piece zeros = {}, sums = {};  // sums of a packed operand are persistent
};

bool HasZeros(const std::optional<ZeroPoints>& zero, DataType type) {
  return zero.has_value() || type == DataType::kUInt8;
}

bool KeptInOutput(const ConvolutionShape& s) {
  uint64_t expected = 1;
  bool contiguous = true;
  for (uint32_t d = kMaxSpatial; d-- > 0; expected *= s.windows[d].output) {
    contiguous = contiguous && (s.windows[d].output == 1 || s.output.spatial[d] == expected);
  }
  return contiguous;
}

uint64_t Words(uint64_t steps) { return (steps + kStepsOfWord - 1) / kStepsOfWord; }

class IntegerDot final : public Kernel {
 public:
  IntegerDot(const IntegerProductProblem& whole, const MicroKernel& kernel, uint32_t threads)
      : problem_(whole.sums),
        kernel_(kernel),
        words_(Words(problem_.shape.Steps())),
        in_output_(!whole.requantization && KeptInOutput(problem_.shape)),
        threads_(threads),
        product_({problem_.shape.outer, problem_.shape.output_channels, problem_.shape.Positions(), words_},
                 !in_output_, threads, &layout_, kernel) {
    const IntegerSums& problem = whole.sums;
    const ConvolutionShape& s = problem.shape;
    if (whole.requantization) requantizer_.emplace(*whole.requantization, s);
    const bool filter_zeros = HasZeros(problem.filter_zero, problem.filter_type);
    const bool input_zeros = HasZeros(problem.input_zero, problem.input_type);
    filter_ = {problem.filter_zero, problem.filter_type, s.output_channels, true, filter_zeros, input_zeros};
    input_ = {problem.input_zero, problem.input_type, s.Positions(), false, input_zeros, filter_zeros};
    if (problem.filter_is_owned) {
      filter_.packed = PackedOperand::Create(
          {s.outer, s.filter.outer, s.output_channels, words_, kernel.rows}, threads, &persistent_);
    }
    if (problem.input_is_owned) {
      input_.packed = PackedOperand::Create({s.outer, s.input.outer, s.Positions(), words_, kernel.columns},
                                            threads, &persistent_);
    }
    for (OperandPlan* const plan : {&filter_, &input_}) {
      if (plan->has_zeros) {
        plan->zeros = layout_.Add("zero points", s.outer[1] * plan->elements * sizeof(int32_t));
      }
      const uint64_t matrices = plan->packed ? plan->packed->count() : s.Matrices();
      ScratchLayout* const layout = plan->packed ? &persistent_ : &layout_;
      if (plan->has_sums) plan->sums = layout->Add("sums", matrices * plan->elements * sizeof(int32_t));
    }
  }

  uint64_t temporary_bytes() const override { return layout_.bytes(); }
  uint64_t persistent_bytes() const override { return persistent_.bytes(); }
  bool packs_input(uint32_t input) const override {
    return (input == problem_.filter && filter_.packed) || (input == problem_.input && input_.packed);
  }

  Status Initialize(const KernelArguments& arguments) const override {
    if (filter_.packed) {
      const auto source = [&](const BatchIndex& index) { return Filter(arguments, index); };
      filter_.packed->Pack(arguments, source);
      AddUp(filter_, arguments, arguments.persistent, source);
    }
    if (input_.packed) {
      const auto source = [&](const BatchIndex& index) { return Windows(arguments, index); };
      input_.packed->Pack(arguments, source);
      AddUp(input_, arguments, arguments.persistent, source);
    }
    return {};
  }

  Status Run(const KernelArguments& arguments) const override {
    const ConvolutionShape& s = problem_.shape;
    const bool row_zeros = LoadZeros(filter_, arguments), column_zeros = LoadZeros(input_, arguments);
    if (column_zeros && !filter_.packed) {
      AddUp(filter_, arguments, arguments.temporary,
            [&](const BatchIndex& index) { return Filter(arguments, index); });
    }
    if (row_zeros && !input_.packed) {
      AddUp(input_, arguments, arguments.temporary,
            [&](const BatchIndex& index) { return Windows(arguments, index); });
    }
    product_.ForParts<int32_t>(arguments, [&](const BatchIndex& index, PartOf<int32_t> part, float* scratch) {
      Corrections corrections;
      corrections.steps = s.Steps();
      if (row_zeros) {
        corrections.row_zeros = Zeros(filter_, arguments, index);
        corrections.column_sums = Sums(input_, arguments, index);
      }
      if (column_zeros) {
        corrections.column_zeros = Zeros(input_, arguments, index);
        corrections.row_sums = Sums(filter_, arguments, index);
      }
      const DotSums sink(s, corrections, requantizer_ ? &*requantizer_ : nullptr, in_output_, index,
                         arguments);
      if (in_output_) {
        part.sums = reinterpret_cast<int32_t*>(arguments.outputs[0].data) +
                    s.output.Matrix(index[0], index[1]) + part.row * s.output.channel + part.column;
        part.sums_stride = s.output.channel;
      }
      const bool plain = in_output_ && !row_zeros && !column_zeros;
      RunProduct<int32_t>(part, OperandOf(filter_.packed, arguments, index, Filter(arguments, index)),
                          OperandOf(input_.packed, arguments, index, Windows(arguments, index)),
                          plain ? nullptr : &sink, scratch, kernel_);
    });
    return {};
  }

 private:
  // One for each element of each group. Whether one is not 0.
  bool LoadZeros(const OperandPlan& plan, const KernelArguments& arguments) const {
    if (!plan.has_zeros) return false;
    auto* const zeros = plan.zeros.In<int32_t>(arguments.temporary);
    const uint64_t count = problem_.shape.outer[1] * plan.elements;
    if (plan.zero) {
      const Block block = {problem_.shape.outer[1], plan.elements, plan.zero->group, plan.zero->stride, 0};
      FindLoad(plan.type, Class::kI32)(arguments.inputs[plan.zero->input].data, block, zeros);
    } else {
      std::fill_n(zeros, count, 0);
    }
    if (plan.type == DataType::kUInt8) {
      for (uint64_t i = 0; i < count; ++i) zeros[i] -= 128;
    }
    return std::any_of(zeros, zeros + count, [](int32_t zero) { return zero != 0; });
  }

  const int32_t* Zeros(const OperandPlan& plan, const KernelArguments& arguments,
                       const BatchIndex& index) const {
    return plan.zeros.In<int32_t>(arguments.temporary) + index[1] * plan.elements;
  }
  const int32_t* Sums(const OperandPlan& plan, const KernelArguments& arguments,
                      const BatchIndex& index) const {
    if (plan.packed) {
      return plan.sums.In<int32_t>(arguments.persistent) + plan.packed->IndexOf(index) * plan.elements;
    }
    return plan.sums.In<int32_t>(arguments.temporary) +
           (index[0] * problem_.shape.outer[1] + index[1]) * plan.elements;
  }

  // The sums of all elements over all steps, for all (different) matrices.
  template <typename SourceOf>
  void AddUp(const OperandPlan& plan, const KernelArguments& arguments, const Buffer& memory,
             SourceOf&& source_of) const {
    if (!plan.has_sums) return;
    const uint32_t width = plan.rows ? kernel_.rows : kernel_.columns;
    const uint64_t panels = (plan.elements + width - 1) / width;
    const uint64_t all = (plan.packed ? plan.packed->count() : problem_.shape.Matrices()) * panels;
    const auto workers = static_cast<uint32_t>(std::min<uint64_t>(threads_, all));
    ParallelFor(arguments.executor, workers, [&](uint32_t worker) {
      const uint64_t end = PartBegin(all, worker + 1, workers);
      for (uint64_t number = PartBegin(all, worker, workers); number < end; ++number) {
        const uint64_t matrix = number / panels, first = number % panels * width;
        const BatchIndex index =
            plan.packed ? plan.packed->FirstOf(matrix)
                        : BatchIndex{matrix / problem_.shape.outer[1], matrix % problem_.shape.outer[1]};
        AddUpPanel(plan, source_of(index), first, std::min<uint64_t>(width, plan.elements - first),
                   plan.sums.In<int32_t>(memory) + matrix * plan.elements + first);
      }
    });
  }

  // A product with ones.
  void AddUpPanel(const OperandPlan& plan, const PanelSource& source, uint64_t first, uint64_t count,
                  int32_t* to) const {
    constexpr uint64_t kWords = 128;
    alignas(64) float panel[kWords * kMaxDotWidth], ones[kWords * kMaxDotWidth];
    alignas(64) float tile[kMaxDotWidth * kMaxDotWidth];
    std::memset(ones, 1, sizeof(ones));
    for (uint64_t word = 0; word < words_; word += kWords) {
      const uint64_t words = std::min(kWords, words_ - word);
      source.Pack(first, count, word, words, plan.rows ? kernel_.rows : kernel_.columns, panel);
      kernel_.run(plan.rows ? panel : ones, plan.rows ? ones : panel, kernel_.columns, words, tile,
                  kernel_.columns, word != 0);
    }
    for (uint64_t i = 0; i < count; ++i) {
      std::memcpy(to + i, tile + i * (plan.rows ? kernel_.columns : 1), sizeof(int32_t));
    }
  }

  FilterQuads Filter(const KernelArguments& arguments, const BatchIndex& index) const {
    const ConvolutionShape& s = problem_.shape;
    const std::byte* const data = arguments.inputs[problem_.filter].data;
    return {s, problem_.filter_type, data == nullptr ? nullptr : data + s.filter.Matrix(index[0], index[1])};
  }
  // Only images have padding, and one zero point.
  WindowQuads Windows(const KernelArguments& arguments, const BatchIndex& index) const {
    const ConvolutionShape& s = problem_.shape;
    const std::byte* const data = arguments.inputs[problem_.input].data;
    if (data == nullptr) return {s, problem_.input_type, nullptr, {}};  // packed
    const std::byte zero =
        problem_.input_zero ? *arguments.inputs[problem_.input_zero->input].data : std::byte{};
    return {s, problem_.input_type, data + s.input.Matrix(index[0], index[1]), zero};
  }

  IntegerSums problem_;
  std::optional<RowRequantizer> requantizer_;
  const MicroKernel& kernel_;
  uint64_t words_;  // of all steps
  bool in_output_;  // sums are kept where the output is
  uint32_t threads_;
  ScratchLayout layout_, persistent_;
  BatchedProduct product_;
  OperandPlan filter_, input_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateIntegerDot(const IntegerProductProblem& problem,
                                               const LowerContext& context, std::string* why_not) {
  const MicroKernel* const kernel = FindDotKernel(problem.sums.shape.output_channels);
  if (!problem.program.program.instructions.empty() && !problem.requantization) {
    *why_not = "there are scales that rows do not share";
  } else if (problem.sums.sum_type != DataType::kInt32) {
    *why_not = "operands have more than 8 bits";
  } else if (kernel == nullptr) {
    *why_not = "the processor has no instructions that add up products of bytes";
  } else {
    return std::make_unique<IntegerDot>(problem, *kernel, context.threads);
  }
  return nullptr;
}

}  // namespace anydml
