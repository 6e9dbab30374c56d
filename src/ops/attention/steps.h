// Attention in steps: logits are a product, weights their softmax, and the output is another product.
#pragma once

#include "ops/attention/operands.h"

namespace anydml {

class AttentionSteps : public AttentionOperands {
 public:
  // Chooses the kernels for the products.
  Status Create(const LowerContext& context);
  Status Run(const KernelArguments& arguments) const override;

 protected:
  // `for_libraries`: products are for GPU libraries, which require rows with one stride and do not round
  // FLOAT32 sums to FLOAT16.
  AttentionSteps(const AttentionProblem& problem, bool for_libraries)
      : AttentionOperands(problem, {.matching_types = true, .one_stride = for_libraries}),
        for_libraries_(for_libraries) {}

  virtual void Weigh(float* logits, const AttentionWeightsMemory& memory,
                     const KernelArguments& arguments) const = 0;
  // With lengths: recomputes NaNs in the output without the values of keys that the query does not see. The
  // product multiplies these by 0, which turns infinities into NaNs.
  virtual void LeaveOutUnseen(const float* weights, const AttentionWeightsMemory& memory,
                              const KernelArguments& arguments) const = 0;

 private:
  GemmMatrix PackedGroup(uint64_t columns) const;
  Status AddProducts(const LowerContext& context);
  Status AddConversion(const LowerContext& part);

  const bool for_libraries_;
  bool converts_ = false;  // the second product is not written to the output directly
  uint32_t logits_part_ = 0, output_part_ = 0, conversion_part_ = 0;
  ScratchLayout::Piece logits_, result_;
};

template <typename Steps>
std::unique_ptr<const Kernel> CreateAttentionSteps(const AttentionProblem& problem,
                                                   const LowerContext& context, std::string* why_not) {
  auto kernel = std::make_unique<Steps>(problem, context);
  const Status status = kernel->Create(context);
  if (status.ok()) return kernel;
  *why_not = status.message();
  return nullptr;
}

}  // namespace anydml
