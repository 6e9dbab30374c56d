// UPSAMPLE_2D, the RESAMPLE operators and their gradients: along every dimension an output coordinate has a
// place in the input, and takes one element there or a weighted sum of several.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ops/implementation_list.h"
#include "ops/operator.h"
#include "schema/tensor_desc.h"

namespace anydml {

std::span<const Operator> ResampleOperators();

// Which elements an output coordinate takes, by its place x in the input. Indices outside the input are
// clamped.
enum class ResampleRule : uint8_t {
  kSame,      // the element with the same index
  kHalfUp,    // floor(x + 0.5)
  kFloor,     // floor(x)
  kCeil,      // ceil(x)
  kLinear,    // floor(x) and the one after it
  kTriangle,  // all elements closer than 1 / scale
};

struct ResampleAxis {
  uint32_t from = 1;  // number of elements of the forward operator's input
  uint32_t to = 1;    // and of its output
  // x = (number - output_offset) / scale - input_offset
  float scale = 1;
  float input_offset = 0;
  float output_offset = 0;
  ResampleRule rule = ResampleRule::kSame;
  // Of what is read and written. A gradient reads the tensor with `to` elements.
  uint32_t source_stride = 0;
  uint32_t target_stride = 0;
};

// All arithmetic is in FLOAT32. Sums along the last dimension are the innermost ones, and take their elements
// in ascending order. Elements with weight 0 are skipped, so that infinities and NaNs do not spread.
struct ResampleProblem {
  static constexpr std::string_view kFamily = "resample";

  DataType type = DataType::kFloat32;
  bool gradient = false;  // the transpose: each input element collects from the outputs that took it
  uint32_t rank = 0;
  std::array<ResampleAxis, kMaxDimensions> axes{};
};

// Whether elements are only moved.
constexpr bool IsNearest(const ResampleProblem& problem) {
  for (uint32_t d = 0; d < problem.rank; ++d) {
    if (problem.axes[d].rule >= ResampleRule::kLinear) return false;
  }
  return !problem.gradient;
}

std::unique_ptr<const Kernel> CreateResampleCopy(const ResampleProblem& problem, const LowerContext& context,
                                                 std::string* why_not);
std::unique_ptr<const Kernel> CreateResampleRows(const ResampleProblem& problem, const LowerContext& context,
                                                 std::string* why_not);
std::unique_ptr<const Kernel> CreateResampleCopyRowsCuda(const ResampleProblem& problem,
                                                         const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateResampleCopyCuda(const ResampleProblem& problem,
                                                     const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateResampleBilinearCuda(const ResampleProblem& problem,
                                                         const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateResampleSumsCuda(const ResampleProblem& problem,
                                                     const LowerContext& context, std::string* why_not);
std::unique_ptr<const Kernel> CreateResampleReference(const ResampleProblem& problem,
                                                      const LowerContext& context, std::string* why_not);

}  // namespace anydml
