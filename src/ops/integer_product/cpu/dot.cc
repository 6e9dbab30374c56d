// Exact sums of 8-bit numbers from panels, with byte dot-product instructions.
#include <algorithm>
#include <cstring>

#include "ops/common/nest_parts.h"
#include "ops/integer_product/cpu/dot_kernel.h"
#include "ops/integer_product/cpu/dot_sums.h"
#include "ops/integer_product/cpu/quads.h"
#include "ops/integer_product/problem.h"
#include "ops/product/batched.h"

namespace anydml {
namespace {

// An operand's contribution to the corrections: zero points for each group, and sums for each distinct
// matrix.
struct OperandPlan {
  std::optional<ZeroPoints> zero;
  DataType type;
  uint64_t elements;
  bool rows;       // it provides the product's rows
  bool has_zeros;  // some may not be 0
  bool has_sums;   // the other operand's zero points need them
  std::optional<PackedOperand> packed = std::nullopt;
  ScratchLayout::Piece zeros = {}, sums = {};  // the sums of a packed operand are persistent
};

bool HasZeros(const std::optional<ZeroPoints>& zero, DataType type, bool rows) {
  return zero.has_value() || ShiftInPanels(type, rows) != 0;
}

uint64_t Words(uint64_t steps, uint32_t row_words) {
  const uint64_t steps_at_a_time = uint64_t{row_words} * kStepsOfWord;
  return (steps + steps_at_a_time - 1) / steps_at_a_time * row_words;
}

// Up to this many rows are packed again for each piece of a product, so that threads may have several pieces.
constexpr uint64_t kFewRowsToPack = 256;

class IntegerDot final : public Kernel {
 public:
  IntegerDot(const IntegerProductProblem& whole, const DotTile& tile, uint32_t threads)
      : problem_(whole.sums),
        tile_(tile),
        kernel_(tile.kernel),
        words_(Words(problem_.shape.Steps(), tile.row_words)),
        in_output_(!whole.requantization && SumsAreRows(problem_.shape)),
        threads_(threads),
        product_({problem_.shape.outer, problem_.shape.output_channels, problem_.shape.Positions(), words_},
                 !in_output_, threads, &layout_, tile.kernel,
                 /*pieces=*/problem_.shape.output_channels <= kFewRowsToPack ? 4 : 1) {
    const IntegerSums& problem = whole.sums;
    const ConvolutionShape& s = problem.shape;
    if (whole.requantization) requantizer_.emplace(*whole.requantization, s);
    const bool filter_zeros = HasZeros(problem.filter_zero, problem.filter_type, true);
    const bool input_zeros = HasZeros(problem.input_zero, problem.input_type, false);
    filter_ = {problem.filter_zero, problem.filter_type, s.output_channels, true, filter_zeros, input_zeros};
    input_ = {problem.input_zero, problem.input_type, s.Positions(), false, input_zeros, filter_zeros};
    if (problem.filter_is_owned) {
      filter_.packed = PackedOperand::Create(
          {s.outer, s.filter.outer, s.output_channels, words_, kernel_.rows}, threads, &persistent_);
    }
    if (problem.input_is_owned) {
      input_.packed = PackedOperand::Create({s.outer, s.input.outer, s.Positions(), words_, kernel_.columns},
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
    product_.ForParts<int32_t>(
        arguments, [&](const BatchIndex& index, PartOf<int32_t> part, std::span<float> scratch) {
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
          if (tile_.begin != nullptr) tile_.begin();
          RunProduct<int32_t>(part, OperandOf(filter_.packed, arguments, index, Filter(arguments, index)),
                              OperandOf(input_.packed, arguments, index, Windows(arguments, index)),
                              plain ? nullptr : &sink, scratch, kernel_);
          if (tile_.end != nullptr) tile_.end();
        });
    return {};
  }

 private:
  // Loads one per element of each group. Returns whether any is not 0.
  bool LoadZeros(const OperandPlan& plan, const KernelArguments& arguments) const {
    if (!plan.has_zeros) return false;
    return LoadZeroPoints(plan.zero, plan.type, plan.rows, problem_.shape.outer[1], plan.elements, arguments,
                          plan.zeros.In<int32_t>(arguments.temporary));
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

  // Sums all elements over all steps, for all distinct matrices: in place, or from panels.
  template <typename SourceOf>
  void AddUp(const OperandPlan& plan, const KernelArguments& arguments, const Buffer& memory,
             SourceOf&& source_of) const {
    if (!plan.has_sums) return;
    constexpr uint64_t kTogether = 512;
    const bool at_once = source_of(BatchIndex{}).AddsUp();
    const uint64_t width = at_once ? kTogether : plan.rows ? kernel_.rows : kernel_.columns;
    const uint64_t pieces = (plan.elements + width - 1) / width;
    const uint64_t matrices = plan.packed ? plan.packed->count() : problem_.shape.Matrices();
    const uint32_t most =
        at_once ? PartsForBytes(matrices * plan.elements * problem_.shape.Steps(), threads_) : threads_;
    const auto workers = static_cast<uint32_t>(std::min<uint64_t>(most, matrices * pieces));
    ParallelFor(arguments.executor, workers, [&](uint32_t worker) {
      const uint64_t end = PartBegin(matrices * pieces, worker + 1, workers);
      if (!at_once && tile_.begin != nullptr) tile_.begin();
      for (uint64_t number = PartBegin(matrices * pieces, worker, workers); number < end; ++number) {
        const uint64_t matrix = number / pieces, first = number % pieces * width;
        const BatchIndex index =
            plan.packed ? plan.packed->FirstOf(matrix)
                        : BatchIndex{matrix / problem_.shape.outer[1], matrix % problem_.shape.outer[1]};
        const auto source = source_of(index);
        const uint64_t count = std::min(width, plan.elements - first);
        int32_t* const to = plan.sums.In<int32_t>(memory) + matrix * plan.elements + first;
        if (at_once) {
          source.AddUp(first, count, to);
        } else {
          AddUpPanel(plan, source, first, count, to);
        }
      }
      if (!at_once && tile_.end != nullptr) tile_.end();
    });
  }

  // A product with ones.
  void AddUpPanel(const OperandPlan& plan, const PanelSource& source, uint64_t first, uint64_t count,
                  int32_t* to) const {
    constexpr uint64_t kWords = 64;
    alignas(64) float panel[kWords * kMaxDotWidth], ones[kWords * kMaxDotWidth];
    alignas(64) float tile[kMaxTileRows * kMaxTileColumns];
    std::memset(ones, 1, sizeof(ones));
    const auto run = plan.rows && kernel_.narrow[0] != nullptr ? kernel_.narrow[0] : kernel_.run;
    for (uint64_t word = 0; word < words_; word += kWords) {
      const uint64_t words = std::min(kWords, words_ - word);
      source.Pack(first, count, word, words, plan.rows ? kernel_.rows : kernel_.columns, panel);
      run(plan.rows ? panel : ones, plan.rows ? ones : panel, kernel_.columns, words, tile, kernel_.columns,
          word != 0, {panel, 0});
    }
    for (uint64_t i = 0; i < count; ++i) {
      std::memcpy(to + i, tile + i * (plan.rows ? kernel_.columns : 1), sizeof(int32_t));
    }
  }

  FilterQuads Filter(const KernelArguments& arguments, const BatchIndex& index) const {
    const ConvolutionShape& s = problem_.shape;
    const std::byte* const data = arguments.inputs[problem_.filter].data;
    return {s, problem_.filter_type, data == nullptr ? nullptr : data + s.filter.Matrix(index[0], index[1]),
            tile_.row_words};
  }
  // Only images have padding, and these have a single zero point.
  WindowQuads Windows(const KernelArguments& arguments, const BatchIndex& index) const {
    const ConvolutionShape& s = problem_.shape;
    const std::byte* const data = arguments.inputs[problem_.input].data;
    if (data == nullptr) return {s, problem_.input_type, nullptr, {}, tile_.column_words};  // packed
    const std::byte zero =
        problem_.input_zero ? *arguments.inputs[problem_.input_zero->input].data : std::byte{};
    return {s, problem_.input_type, data + s.input.Matrix(index[0], index[1]), zero, tile_.column_words};
  }

  IntegerSums problem_;
  std::optional<RowRequantizer> requantizer_;
  const DotTile& tile_;
  const MicroKernel& kernel_;
  uint64_t words_;  // of all steps
  bool in_output_;  // sums are kept in the output
  uint32_t threads_;
  ScratchLayout layout_, persistent_;
  BatchedProduct product_;
  OperandPlan filter_, input_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateIntegerDot(const IntegerProductProblem& problem,
                                               const LowerContext& context, std::string* why_not) {
  if (!problem.program.program.instructions.empty() && !problem.requantization) {
    *why_not = "there are scales that rows do not share";
  } else if (problem.sums.sum_type != DataType::kInt32) {
    *why_not = "operands have more than 8 bits";
  } else if (const DotKernels* const kernels = FindDotKernels(); kernels == nullptr) {
    *why_not = "the processor has no instructions that add up products of bytes";
  } else {
    constexpr uint64_t kFewRows = 4;  // a whole tile takes as long as six single rows
    const bool few = problem.sums.shape.output_channels <= kFewRows;
    return std::make_unique<IntegerDot>(problem, few ? kernels->one_row : kernels->tile, context.threads);
  }
  return nullptr;
}

}  // namespace anydml
