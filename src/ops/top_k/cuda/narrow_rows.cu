#include "ops/top_k/cuda/block_rows.cuh"

namespace anydml {

std::unique_ptr<const Kernel> CreateTopKCudaNarrowRows(const TopKProblem& problem,
                                                       const LowerContext& context, std::string* why_not) {
  return BitSize(problem.input.type) == 8 ? top_k_rows::Create<1>(problem, context, why_not)
                                          : top_k_rows::Create<2>(problem, context, why_not);
}

}  // namespace anydml
