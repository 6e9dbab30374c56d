// A FLOAT32 product whose operands are contiguous along k runs as a convolution with one tap: rows of A are
// its windows, columns of B its filters, and its tiles are chosen so that they fill the device.
#include "ops/convolution/problem.h"
#include "ops/gemm/problem.h"

namespace anydml {
namespace {

// A row added to all rows is a bias.
ConvolutionProblem AsConvolution(const GemmProblem& problem) {
  ConvolutionProblem convolution;
  convolution.activation = problem.activation;
  if (problem.c) convolution.bias = problem.c->column;
  ConvolutionShape& s = convolution.shape;
  s.input_channels = problem.k;
  s.output_channels = problem.n;
  const auto rows = static_cast<uint32_t>(problem.m);
  s.windows[kMaxSpatial - 1] = {.input = rows, .output = rows, .reached = rows};
  s.input.channel = s.filter.channel = 1;
  s.input.spatial[kMaxSpatial - 1] = problem.a.row;
  s.filter.output_channel = problem.b.column;
  s.output.channel = problem.output.column;
  s.output.spatial[kMaxSpatial - 1] = problem.output.row;
  return convolution;
}

}  // namespace

std::unique_ptr<const Kernel> CreateGemmWindowsCuda(const GemmProblem& problem, const LowerContext& context,
                                                    std::string* why_not) {
  constexpr uint64_t kUnit = 4, kMost = uint64_t{1} << 31;
  const GemmProblem& p = problem;
  if (p.type != DataType::kFloat32 || p.output_type != DataType::kFloat32 || p.Batches() != 1) {
    *why_not = "it is for one FLOAT32 matrix";
  } else if (p.a.column != 1 || p.b.row != 1 || (p.k | p.a.row | p.b.column) % kUnit != 0) {
    *why_not = "the operands are not made of units of 16 bytes along k";
  } else if (p.alpha != 1 || !p.AddsRow()) {
    *why_not = "it is for an Alpha of 1, and a row that is added to all rows";
  } else if (p.m >= kMost || p.n >= kMost || p.k >= kMost) {
    *why_not = "it is for matrices of fewer elements";
  } else {
    return CreateConvolutionChannelsLastCuda(AsConvolution(p), context, why_not);
  }
  return nullptr;
}

}  // namespace anydml
