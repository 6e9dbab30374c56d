// Products of successive matrices with the same weights, which are packed once.
#pragma once

#include <memory>

#include "ops/gemm/problem.h"
#include "ops/recurrent/cpu/grouped_product.h"

namespace anydml {

// For a product without C and activation whose other matrices are packed FLOAT32. Initialize packs input 1,
// elements of type `weights`, into `persistent`; Run reads only that. Null if the output has so few rows that
// weights are better read in place, unless they are OWNED_BY_DML and so packed only once. `inputs` are added
// if there are more rows than that.
std::unique_ptr<const Kernel> CreatePackedProduct(const GemmProblem& problem,
                                                  const GroupedProduct::Inputs& inputs, DataType weights,
                                                  uint32_t threads);

}  // namespace anydml
