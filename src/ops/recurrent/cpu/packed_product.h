// Products of one matrix after the other with the same weights, which are packed once.
#pragma once

#include <memory>

#include "ops/gemm/problem.h"
#include "ops/recurrent/cpu/grouped_product.h"

namespace anydml {

// For a product without C and activation whose other matrices are packed FLOAT32. Initialize packs input 1,
// elements of `weights`, into `persistent`; Run reads nothing else of it. Null where the output has so few
// rows that weights are better read where they are, unless they are OWNED_BY_DML, and packed only once.
// `inputs` are added where there are more rows than that.
std::unique_ptr<const Kernel> CreatePackedProduct(const GemmProblem& problem,
                                                  const GroupedProduct::Inputs& inputs, DataType weights,
                                                  uint32_t threads);

}  // namespace anydml
