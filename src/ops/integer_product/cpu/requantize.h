// Converts sums of byte products to bytes of the output.
#pragma once

#include "ops/integer_product/problem.h"
#include "ops/product/batched.h"

namespace anydml {

// The parameters of one row.
struct RowScale {
  float scale;
  uint32_t bias;
  int32_t zero;
  float low, high;  // minus the zero point
};

class RowRequantizer {
 public:
  RowRequantizer(const Requantization& problem, const ConvolutionShape& shape);

  // Stores the sums of positions [column, column + count) of a row. Float sums are integers.
  void Put(const KernelArguments& arguments, const BatchIndex& index, uint64_t row, uint64_t column,
           uint64_t count, const int32_t* sums) const {
    PutAny(arguments, index, row, column, count, sums);
  }
  void Put(const KernelArguments& arguments, const BatchIndex& index, uint64_t row, uint64_t column,
           uint64_t count, const float* sums) const {
    PutAny(arguments, index, row, column, count, sums);
  }

 private:
  template <typename Sum>
  void PutAny(const KernelArguments& arguments, const BatchIndex& index, uint64_t row, uint64_t column,
              uint64_t count, const Sum* sums) const;

  Requantization problem_;
  std::array<uint64_t, kMaxSpatial> sizes_;  // of the output
  bool contiguous_;                          // positions are contiguous
};

}  // namespace anydml
