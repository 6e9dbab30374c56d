// Random scatters of given shapes, for the tests; and what scatters must give.
#pragma once

#include <random>
#include <vector>

#include "support/operator_runner.h"

namespace anydml::testing {

OperatorDesc ScatterNd(const TensorDesc& input, const TensorDesc& indices, const TensorDesc& updates,
                       const TensorDesc& output, uint32_t input_dimensions, uint32_t indices_dimensions);
OperatorDesc ScatterElements(const TensorDesc& input, const TensorDesc& indices, const TensorDesc& updates,
                             const TensorDesc& output, uint32_t axis);

// Independent algorithms that the reference must agree with.
// From the output's side, by flat row-major numbers, no coordinates of more than three parts: for every
// element the last update that names it is looked for.
void ExpectElementsByLookup(const OperatorDesc& desc, const std::vector<Bytes>& inputs,
                            const RunResult& result);
// Slices as flat ranges of row-major numbers.
void ExpectNdBySlices(const OperatorDesc& desc, const std::vector<Bytes>& inputs, const RunResult& result);

// Each takes any index type, any layouts, and the input's memory for the output or other; the
// indices are mostly in range. Every implementation must agree with the reference, and the
// reference with an independent algorithm.

// `lookup`: whether to run the latter, which takes time for long axes.
void RunElementsCase(DataType type, const std::vector<uint32_t>& sizes, uint32_t axis,
                     std::mt19937_64& random, bool lookup = true);

// `positions` and `input` are the meaningful sizes, `rank` is that of all tensors.
void RunNdCase(DataType type, const std::vector<uint32_t>& positions, const std::vector<uint32_t>& input,
               uint32_t tuple_size, uint32_t rank, std::mt19937_64& random);

}  // namespace anydml::testing
