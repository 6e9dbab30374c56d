// Corrections of sums of byte products. For numbers a and b with zero points x and y, the sum of (a - x)(b -
// y) is that of ab, minus y times the sum of a, minus x times the sum of b - y.
#pragma once

#include "ops/integer_product/cpu/requantize.h"
#include "ops/integer_product/problem.h"
#include "ops/product/batched.h"

namespace anydml {

// For one product: zero points, and sums over all steps of the numbers in panels; null if they are not
// needed.
struct Corrections {
  const int32_t *row_zeros = nullptr, *row_sums = nullptr;
  const int32_t *column_zeros = nullptr, *column_sums = nullptr;
  uint64_t steps;
};

class DotSums final : public SumSink<int32_t> {
 public:
  // `requantizer`: null if the output consists of the sums; in_output: they are already there.
  DotSums(const ConvolutionShape& shape, const Corrections& corrections, const RowRequantizer* requantizer,
          bool in_output, const BatchIndex& index, const KernelArguments& arguments)
      : shape_(shape),
        corrections_(corrections),
        requantizer_(requantizer),
        in_output_(in_output),
        index_(index),
        arguments_(arguments) {}

  void Finish(uint64_t row, uint64_t column, uint64_t count, int32_t* sums) const override;

 private:
  void Scatter(uint64_t row, uint64_t column, uint64_t count, const int32_t* sums) const;
  void Correct(uint64_t row, uint64_t column, uint64_t count, uint32_t* sums) const;

  const ConvolutionShape& shape_;
  const Corrections& corrections_;
  const RowRequantizer* requantizer_;
  bool in_output_;
  BatchIndex index_;
  const KernelArguments& arguments_;
};

// Whether the sums of a row are contiguous in the output.
bool SumsAreRows(const ConvolutionShape& shape);

// Zero points of the product's rows or columns, for numbers as in panels: `elements` for each of `groups`.
// Returns whether any is not 0.
bool LoadZeroPoints(const std::optional<ZeroPoints>& zero, DataType type, bool rows, uint64_t groups,
                    uint64_t elements, const KernelArguments& arguments, int32_t* zeros);

}  // namespace anydml
