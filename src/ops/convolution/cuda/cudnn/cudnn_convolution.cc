#include "ops/convolution/cuda/cudnn/cudnn_convolution.h"

#include <bit>

namespace anydml {
namespace {

using cudnn::Graph;

cudnn::DataTypeNumber TypeNumber(DataType type) {
  return type == DataType::kFloat16 ? cudnn::kHalf : cudnn::kFloat;
}

// FLOAT32 products stay FLOAT32, sums have a fixed order, and an infinity in one window must not affect
// others (Winograd and FFT algorithms spread it over a tile).
bool IsAllowedInConvolution(int note, bool is_half) {
  switch (note) {
    case cudnn::kTensorCore:
    case cudnn::kDownConvertInputs:
      return is_half;
    case cudnn::kReducedPrecisionReduction:
    case cudnn::kFft:
    case cudnn::kNondeterministic:
      return false;
    default:
      return note < cudnn::kWinograd || note > cudnn::kWinogradTile13x13;
  }
}

bool IsAllowedOfHalves(int note) { return IsAllowedInConvolution(note, true); }
bool IsAllowedOfFloats(int note) { return IsAllowedInConvolution(note, false); }

void DescribeConvolution(const CudnnProblem& p, Graph* graph) {
  const auto add = [&](const CudnnTensor& tensor) {
    return graph->AddTensor(TypeNumber(tensor.type), tensor.shape);
  };
  const Graph::Tensor x = add(p.x), w = add(p.w), y = add(p.y);
  Graph::Tensor bias = nullptr;
  if (p.has_bias) {
    const int64_t channels = p.result().shape.sizes[1];
    CudnnTensor tensor = {p.w.type, {}};
    tensor.shape.sizes.assign(p.w.shape.sizes.size(), 1);
    tensor.shape.sizes[1] = channels;
    tensor.shape.strides.assign(p.w.shape.sizes.size(), channels);
    tensor.shape.strides[1] = 1;
    bias = add(tensor);
  }
  const Graph::Tensor result = p.backward ? x : y;
  const auto sums = [&] { return graph->AddBetween(cudnn::kFloat, p.result().shape); };
  Graph::Tensor last = p.has_bias || p.limits ? sums() : result;
  if (p.backward) {
    graph->AddConvolutionGradient(p.windows, last, w, y);
  } else {
    graph->AddConvolution(p.windows, x, w, last);
  }
  if (p.has_bias) {
    const Graph::Tensor to = p.limits ? sums() : result;
    graph->AddPointwise(cudnn::kAdd, last, bias, to);
    last = to;
  }
  if (p.limits) graph->AddLimits(p.limits->least, p.limits->most, last, result);
}

}  // namespace

std::string CudnnProblem::Key() const {
  std::string key = StrCat("convolution ", backward ? "backward" : "forward", has_bias ? " bias" : "");
  if (limits) {
    key += StrCat(" limits ", std::bit_cast<uint32_t>(limits->least), " ",
                  std::bit_cast<uint32_t>(limits->most));
  }
  for (const CudnnTensor* tensor : {&x, &w, &y}) {
    key += StrCat("; ", static_cast<int>(TypeNumber(tensor->type)), " ", tensor->shape.Key());
  }
  const auto add = [&](const char* name, const std::vector<int64_t>& numbers) {
    key += name;
    for (const int64_t number : numbers) key += StrCat(" ", number);
  };
  add("; steps", windows.steps);
  add(" dilations", windows.dilations);
  add(" before", windows.pre_paddings);
  add(" after", windows.post_paddings);
  return key;
}

std::shared_ptr<const Graph> CreateCudnnConvolution(const CudnnProblem& problem, int device,
                                                    std::string* why_not) {
  return cudnn::FindOrCreate(
      problem.Key(), device, [&](Graph* graph) { DescribeConvolution(problem, graph); },
      problem.w.type == DataType::kFloat16 ? IsAllowedOfHalves : IsAllowedOfFloats, why_not);
}

}  // namespace anydml
