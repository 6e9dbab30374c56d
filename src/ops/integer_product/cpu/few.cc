// A few rows times a matrix of bytes that is not worth packing: it is read once, in place.
#include <algorithm>
#include <cstring>

#include "kernel/scratch_layout.h"
#include "ops/common/nest_parts.h"
#include "ops/integer_product/cpu/dot_kernel.h"
#include "ops/integer_product/cpu/dot_sums.h"
#include "ops/integer_product/cpu/quads.h"
#include "ops/integer_product/problem.h"

namespace anydml {
namespace {

constexpr uint64_t kMaxRowsOfFew = kMaxFewRows - 1;  // and one of ones, for the columns' sums
// The sums that are kept in L1 at a time. Long rows are read faster than short ones.
constexpr uint64_t kSumsOfFew = 4096;
constexpr uint64_t kLeastColumnsOfFew = 512;

class IntegerFew final : public Kernel {
 public:
  IntegerFew(const IntegerProductProblem& whole, const FewDot& few, uint32_t threads)
      : problem_(whole.sums),
        few_(few),
        m_(problem_.shape.output_channels),
        n_(problem_.shape.Positions()),
        groups_((problem_.shape.Steps() + kFewSteps - 1) / kFewSteps),
        in_output_(!whole.requantization && SumsAreRows(problem_.shape)) {
    const ConvolutionShape& s = problem_.shape;
    if (whole.requantization) requantizer_.emplace(*whole.requantization, s);
    const uint32_t parts = PartsForBytes(s.Matrices() * n_ * s.Steps(), threads);
    const uint64_t of_matrix = (std::min(parts, threads) + s.Matrices() - 1) / s.Matrices();
    columns_ = std::clamp((n_ / of_matrix + kLeastColumnsOfFew - 1) / kLeastColumnsOfFew * kLeastColumnsOfFew,
                          kLeastColumnsOfFew, kSumsOfFew / m_);
    columns_ = columns_ / few.columns * few.columns;
    blocks_ = (n_ + columns_ - 1) / columns_;
    workers_ = static_cast<uint32_t>(std::min<uint64_t>(blocks_ * s.Matrices(), parts));
    rows_ = layout_.Add("rows", s.Matrices() * groups_ * kMaxFewRows * kFewSteps);
    row_sums_ = layout_.Add("sums of rows", s.Matrices() * m_ * sizeof(int32_t));
    row_zeros_ = layout_.Add("zero points", s.outer[1] * m_ * sizeof(int32_t));
    column_zeros_ = layout_.Add("zero points", s.outer[1] * n_ * sizeof(int32_t));
    column_sums_ = layout_.Add("sums of columns", s.Matrices() * n_ * sizeof(int32_t));
    sums_ = layout_.Add("sums", workers_ * kMaxFewRows * columns_ * sizeof(int32_t), 64);
    ordered_ = layout_.Add("sums in order", workers_ * columns_ * sizeof(int32_t));
  }

  uint64_t temporary_bytes() const override { return layout_.bytes(); }

  Status Run(const KernelArguments& arguments) const override {
    const ConvolutionShape& s = problem_.shape;
    Corrected corrected;
    corrected.rows = LoadZeroPoints(problem_.filter_zero, problem_.filter_type, true, s.outer[1], m_,
                                    arguments, row_zeros_.In<int32_t>(arguments.temporary));
    corrected.columns = LoadZeroPoints(problem_.input_zero, problem_.input_type, false, s.outer[1], n_,
                                       arguments, column_zeros_.In<int32_t>(arguments.temporary));
    for (uint64_t matrix = 0; matrix < s.Matrices(); ++matrix) LoadRows(matrix, arguments);
    const uint64_t blocks = blocks_ * s.Matrices();
    SharedParts shared(blocks, workers_);
    ParallelFor(arguments.executor, workers_, [&](uint32_t worker) {
      for (uint64_t block; shared.Take(worker, &block);) {
        RunColumns(block / blocks_, block % blocks_ * columns_, corrected, worker, arguments);
      }
    });
    return {};
  }

 private:
  struct Corrected {
    bool rows, columns;  // some have zero points
  };
  using Steps = int8_t[kFewSteps];

  BatchIndex IndexOf(uint64_t matrix) const {
    return {matrix / problem_.shape.outer[1], matrix % problem_.shape.outer[1]};
  }

  // As in panels, kFewSteps of each row at a time. Missing steps are 0.
  void LoadRows(uint64_t matrix, const KernelArguments& arguments) const {
    const ConvolutionShape& s = problem_.shape;
    const BatchIndex index = IndexOf(matrix);
    const auto* const from = reinterpret_cast<const uint8_t*>(arguments.inputs[problem_.filter].data) +
                             s.filter.Matrix(index[0], index[1]);
    const uint8_t flip = FlipInPanels(problem_.filter_type, /*rows=*/true);
    auto* const to = rows_.In<Steps>(arguments.temporary) + matrix * groups_ * kMaxFewRows;
    std::memset(to, 0, groups_ * kMaxFewRows * kFewSteps);
    for (uint64_t row = 0; row < kMaxFewRows; ++row) {
      const bool ones = row == m_;
      uint32_t sum = 0;
      for (uint64_t step = 0; row <= m_ && step < s.Steps(); ++step) {
        const uint8_t byte = ones ? 1 : from[row * s.filter.output_channel + step * s.filter.channel] ^ flip;
        const auto number = static_cast<int8_t>(byte);
        to[step / kFewSteps * kMaxFewRows + row][step % kFewSteps] = number;
        sum += static_cast<uint32_t>(number);
      }
      if (row < m_) row_sums_.In<uint32_t>(arguments.temporary)[matrix * m_ + row] = sum;
    }
  }

  void RunColumns(uint64_t matrix, uint64_t column, const Corrected& corrected, uint32_t worker,
                  const KernelArguments& arguments) const {
    const ConvolutionShape& s = problem_.shape;
    const BatchIndex index = IndexOf(matrix);
    const uint64_t count = std::min(columns_, n_ - column);
    auto* const sums = sums_.In<int32_t>(arguments.temporary) + worker * kMaxFewRows * columns_;
    AddUp(matrix, column, count, m_ + (corrected.rows ? 1 : 0), arguments, sums);

    Corrections corrections;
    corrections.steps = s.Steps();
    if (corrected.rows) {
      auto* const column_sums = column_sums_.In<int32_t>(arguments.temporary) + matrix * n_;
      PutInOrder(sums + m_ * columns_, count, column_sums + column);
      corrections.row_zeros = row_zeros_.In<int32_t>(arguments.temporary) + index[1] * m_;
      corrections.column_sums = column_sums;
    }
    if (corrected.columns) {
      corrections.column_zeros = column_zeros_.In<int32_t>(arguments.temporary) + index[1] * n_;
      corrections.row_sums = row_sums_.In<int32_t>(arguments.temporary) + matrix * m_;
    }
    const DotSums sink(s, corrections, requantizer_ ? &*requantizer_ : nullptr, in_output_, index, arguments);
    for (uint64_t row = 0; row < m_; ++row) {
      int32_t* to = ordered_.In<int32_t>(arguments.temporary) + worker * columns_;
      if (in_output_) {
        to = reinterpret_cast<int32_t*>(arguments.outputs[0].data) + s.output.Matrix(index[0], index[1]) +
             row * s.output.channel + column;
      }
      PutInOrder(sums + row * columns_, count, to);
      sink.Finish(row, column, count, to);
    }
  }

  void AddUp(uint64_t matrix, uint64_t column, uint64_t count, uint64_t rows,
             const KernelArguments& arguments, int32_t* sums) const {
    const ConvolutionShape& s = problem_.shape;
    const BatchIndex index = IndexOf(matrix);
    const auto* const b = reinterpret_cast<const uint8_t*>(arguments.inputs[problem_.input].data) +
                          s.input.Matrix(index[0], index[1]) + column;
    const auto* a = rows_.In<const Steps>(arguments.temporary) + matrix * groups_ * kMaxFewRows;
    const uint64_t whole = count / few_.columns * few_.columns, rest = count - whole;
    std::memset(sums, 0, rows * columns_ * sizeof(int32_t));
    FewBytes bytes = {{}, 0, FlipInPanels(problem_.input_type, /*rows=*/false)}, last = bytes;
    alignas(64) uint8_t edge[kFewSteps][kMaxFewColumns] = {};
    for (uint32_t i = 0; i < kFewSteps; ++i) last.b[i] = edge[i];
    for (uint64_t group = 0; group < groups_; ++group, a += kMaxFewRows) {
      const uint64_t step = group * kFewSteps;
      for (uint32_t i = 0; i < kFewSteps; ++i) {  // missing steps are multiplied by 0
        bytes.b[i] = b + std::min(step + i, s.Steps() - 1) * s.input.channel;
        std::memcpy(edge[i], bytes.b[i] + whole, rest);
      }
      bytes.ahead = step + 2 * kFewSteps <= s.Steps() ? kFewSteps * s.input.channel : 0;
      few_.add(a, static_cast<uint32_t>(rows), bytes, whole, sums, columns_);
      if (rest != 0) few_.add(a, static_cast<uint32_t>(rows), last, few_.columns, sums + whole, columns_);
    }
  }

  // Undoes FewDot's order.
  void PutInOrder(const int32_t* sums, uint64_t count, int32_t* to) const {
    constexpr uint64_t kSome = 4, kRun = 16;
    for (uint64_t done = 0; done < count; done += few_.columns, sums += few_.columns) {
      const int32_t* from = sums;
      for (uint64_t some = 0; some < kRun; some += kSome) {
        for (uint64_t at = done + some; at < done + few_.columns; at += kRun, from += kSome) {
          if (at < count) std::memcpy(to + at, from, std::min(kSome, count - at) * sizeof(int32_t));
        }
      }
    }
  }

  IntegerSums problem_;
  std::optional<RowRequantizer> requantizer_;
  FewDot few_;
  uint64_t m_, n_;
  uint64_t groups_;            // of kFewSteps
  bool in_output_;             // sums are written to the output
  uint64_t columns_, blocks_;  // per block; per matrix
  uint32_t workers_;
  ScratchLayout layout_;
  ScratchLayout::Piece rows_, row_sums_, row_zeros_, column_zeros_, column_sums_, sums_, ordered_;
};

}  // namespace

std::unique_ptr<const Kernel> CreateIntegerFew(const IntegerProductProblem& problem,
                                               const LowerContext& context, std::string* why_not) {
  const ConvolutionShape& s = problem.sums.shape;
  if (!problem.program.program.instructions.empty() && !problem.requantization) {
    *why_not = "there are scales that rows do not share";
  } else if (problem.sums.sum_type != DataType::kInt32) {
    *why_not = "operands have more than 8 bits";
  } else if (s.output_channels > kMaxRowsOfFew) {
    *why_not = StrCat("the output has more than ", kMaxRowsOfFew, " rows");
  } else if (!PositionsAreNeighbours(s)) {
    *why_not = "the second operand's rows are not contiguous";
  } else if (problem.sums.input_is_owned) {
    *why_not = "the second operand is packed when the operator is initialized";
  } else if (const DotKernels* const kernels = FindDotKernels();
             kernels == nullptr || kernels->few.add == nullptr) {
    *why_not = "there is no such kernel for the processor";
  } else {
    return std::make_unique<IntegerFew>(problem, kernels->few, context.threads);
  }
  return nullptr;
}

}  // namespace anydml
