#include "ops/attention/cuda/cudnn_attention.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace anydml {
namespace {

using cudnn::Graph;

// Sums are FLOAT32, in a fixed order.
bool IsAllowedInAttention(int note) {
  return note != cudnn::kReducedPrecisionReduction && note != cudnn::kNondeterministic;
}

// {batch, heads, rows, columns}. A dimension of one element needs a stride other than 0.
Graph::Shape ShapeOf(const AttentionView& view, uint64_t batch, uint64_t heads, uint64_t rows,
                     uint64_t columns) {
  const uint64_t sizes[] = {batch, heads, rows, columns};
  uint64_t strides[] = {view.batch, view.head, view.row, 1};
  uint64_t behind = 1;
  for (size_t i = 0; i < 4; ++i) behind = std::max(behind, strides[i] * sizes[i]);
  Graph::Shape shape;
  for (size_t i = 0; i < 4; ++i) {
    shape.sizes.push_back(static_cast<int64_t>(sizes[i]));
    shape.strides.push_back(static_cast<int64_t>(strides[i] == 0 ? behind : strides[i]));
  }
  return shape;
}

struct AttentionShapes {
  Graph::Shape query, transposed_key, value, output;

  AttentionShapes(const AttentionProblem& p, const AttentionView& key_view, const AttentionView& value_view)
      : query(ShapeOf(p.query, p.batch, p.heads, p.queries, p.key.columns)),
        transposed_key(ShapeOf(key_view, p.batch, p.KeyHeads(), p.keys, p.key.columns)),
        value(ShapeOf(value_view, p.batch, p.KeyHeads(), p.keys, p.value.columns)),
        output(ShapeOf(p.output, p.batch, p.heads, p.queries, p.value.columns)) {
    std::swap(transposed_key.sizes[2], transposed_key.sizes[3]);
    std::swap(transposed_key.strides[2], transposed_key.strides[3]);
  }

  std::string Key() const {
    return StrCat("attention ", query.Key(), "; ", transposed_key.Key(), "; ", value.Key(), "; ",
                  output.Key());
  }
};

// The operations that its engines recognise as attention.
void DescribeAttention(const AttentionShapes& shapes, Graph* graph) {
  std::vector<int64_t> matrix = shapes.query.sizes;
  matrix.back() = shapes.transposed_key.sizes.back();
  std::vector<int64_t> row = matrix;
  row.back() = 1;
  const Graph::Tensor q = graph->AddTensor(cudnn::kHalf, shapes.query);
  const Graph::Tensor k = graph->AddTensor(cudnn::kHalf, shapes.transposed_key);
  const Graph::Tensor v = graph->AddTensor(cudnn::kHalf, shapes.value);
  const Graph::Tensor scale = graph->AddValue(cudnn::kFloat, 4);
  const Graph::Tensor output = graph->AddTensor(cudnn::kHalf, shapes.output);

  const auto between = [&](const std::vector<int64_t>& sizes) {
    return graph->AddBetween(cudnn::kFloat, Graph::Shape::Packed(sizes));
  };
  const Graph::Tensor products = between(matrix), logits = between(matrix), max = between(row),
                      differences = between(matrix), powers = between(matrix), sum = between(row),
                      logarithm = between(row), statistics = between(row),
                      weights = graph->AddBetween(cudnn::kHalf, Graph::Shape::Packed(matrix));
  graph->AddMatmul(q, k, products);
  graph->AddPointwise(cudnn::kMultiply, products, scale, logits);
  graph->AddReduction(cudnn::kMaximum, logits, max);
  graph->AddPointwise(cudnn::kSubtract, logits, max, differences);
  graph->AddPointwise(cudnn::kExp, differences, nullptr, powers);
  graph->AddReduction(cudnn::kSum, powers, sum);
  // These results are not used, but engines recognise attention by them.
  graph->AddPointwise(cudnn::kLog, sum, nullptr, logarithm);
  graph->AddPointwise(cudnn::kAdd, max, logarithm, statistics);
  graph->AddPointwise(cudnn::kDivide, powers, sum, weights);
  graph->AddMatmul(weights, v, output);
}

}  // namespace

std::shared_ptr<const Graph> CreateCudnnAttention(const AttentionProblem& problem, const AttentionView& key,
                                                  const AttentionView& value, int device,
                                                  std::string* why_not) {
  const cudnn::Library& library = cudnn::TheLibrary();
  *why_not = library.why_not;
  if (!why_not->empty()) return nullptr;
  if (const size_t version = library.cudnnGetVersion(); version == 91000 || version == 91001) {
    *why_not = StrCat("cuDNN ", library.version, " is known to be wrong");
    return nullptr;
  }
  const AttentionShapes shapes(problem, key, value);
  return cudnn::FindOrCreate(
      shapes.Key(), device, [&](Graph* graph) { DescribeAttention(shapes, graph); }, IsAllowedInAttention,
      why_not);
}

}  // namespace anydml
