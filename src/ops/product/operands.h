// A strided matrix as a source of panels, and the sink for finished rows.
#pragma once

#include "ops/gemm/problem.h"
#include "ops/numbers/epilogue.h"
#include "ops/product/blocked.h"

namespace anydml {

// Loads `count` numbers, which are `stride` elements apart, as FLOAT32.
void LoadNumbers(const std::byte* data, DataType type, uint64_t stride, uint64_t count, float* to);

// Elements of any type; element e of step s is at e * element_stride + s * step_stride.
class StridedPanels final : public PanelSource {
 public:
  StridedPanels(const std::byte* data, DataType type, uint64_t element_stride, uint64_t step_stride)
      : data_(data), type_(type), element_stride_(element_stride), step_stride_(step_stride) {}

  void Pack(uint64_t first, uint64_t count, uint64_t step, uint64_t steps, uint32_t width,
            float* to) const override;
  bool PackHalves(uint64_t first, uint64_t count, uint64_t step, uint64_t steps, uint32_t width,
                  uint16_t* to) const override;
  Place FindRows(uint64_t first) const override;
  Place FindSteps(uint64_t first) const override;

 private:
  bool IsFloatOrHalf() const { return type_ == DataType::kFloat32 || type_ == DataType::kFloat16; }
  Place At(uint64_t element, uint64_t stride) const {
    return {data_ + element * (BitSize(type_) / 8), stride, type_ == DataType::kFloat16};
  }

  const std::byte* data_;
  DataType type_;
  uint64_t element_stride_;
  uint64_t step_stride_;
};

// Writes activation(Alpha * sums + Beta * C) to the output.
class GemmSink final : public ProductSink {
 public:
  GemmSink(const GemmProblem& problem, const Epilogue& epilogue, const std::byte* c, std::byte* output)
      : problem_(problem), epilogue_(epilogue), c_(c), output_(output) {}

  // Whether sums in the output are already the result.
  static bool IsPlain(const GemmProblem& problem) {
    return problem.alpha == 1 && !problem.c && problem.activation.instructions.empty();
  }

  void Finish(uint64_t row, uint64_t column, uint64_t count, float* sums) const override;
  void FinishRows(uint64_t row, uint64_t rows, uint64_t column, uint64_t count, float* sums,
                  uint64_t stride) const override;

 private:
  const GemmProblem& problem_;
  const Epilogue& epilogue_;
  const std::byte* c_;
  std::byte* output_;
};

}  // namespace anydml
