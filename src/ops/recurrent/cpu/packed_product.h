// Products of one matrix after the other with the same weights, which are packed once.
#pragma once

#include <memory>

#include "ops/gemm/problem.h"

namespace anydml {

// Below this many multiplications a thread costs more to wake than it saves.
inline constexpr uint64_t kProductsPerThread = uint64_t{1} << 17;

// For a product without C and activation whose other matrices are packed FLOAT32. Initialize packs input 1,
// elements of `weights`, into `persistent`; Run reads nothing else of it. Null where the output has so few
// rows that weights are better read where they are, unless they are OWNED_BY_DML, and packed only once.
std::unique_ptr<const Kernel> CreatePackedProduct(const GemmProblem& problem, DataType weights,
                                                  uint32_t threads);

}  // namespace anydml
