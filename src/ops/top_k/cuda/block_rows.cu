#include "ops/top_k/cuda/block_rows.cuh"

namespace anydml {

std::unique_ptr<const Kernel> CreateTopKCudaRows(const TopKProblem& problem, const LowerContext& context,
                                                 std::string* why_not) {
  const uint32_t bits = BitSize(problem.input.type);
  if (bits < 32) return CreateTopKCudaNarrowRows(problem, context, why_not);
  return bits == 32 ? top_k_rows::Create<4>(problem, context, why_not)
                    : top_k_rows::Create<8>(problem, context, why_not);
}

}  // namespace anydml
