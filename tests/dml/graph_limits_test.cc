// Graphs that are large, need too much memory, or use features of a later level.
#include <chrono>

#include "dml/graph_test.h"

namespace anydml::test {
namespace {

class GraphLimitsTest : public GraphTest {};

TEST_F(GraphLimitsTest, FeatureLevel) {
  ScopedEnv level("ANYDML_FEATURE_LEVEL", "2.0");
  GraphBuilder graph;
  const UINT scale = graph.Operator(Scale({1, 1, 1, 4}, 2, 0));
  graph.Input(0, scale, 0).Output(scale, 0, 0);
  ComPtr<IDMLCompiledOperator> compiled;
  ExpectFailure(graph.TryCompile(h().dml(), &compiled), E_INVALIDARG,
                "CompileGraph: graphs need feature level 2.1; the device has 2.0");
}

// Two tensors of 2^63 bytes that are alive at the same time.
TEST_F(GraphLimitsTest, MoreMemoryThanCanBeCounted) {
  const UINT sizes[] = {1, 1, 2, 2};
  const DML_BUFFER_TENSOR_DESC huge = {kFloat, DML_TENSOR_FLAG_NONE, 4, sizes, nullptr, uint64_t{1} << 63, 0};
  const DML_TENSOR_DESC huge_tensor = {DML_TENSOR_TYPE_BUFFER, &huge};
  const Tensor small(kFloat, {1, 1, 2, 2});
  const DML_SCALE_BIAS twice = {2, 0};
  const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC scale = {small.desc(), &huge_tensor, &twice};
  const DML_GEMM_OPERATOR_DESC gemm = {&huge_tensor,
                                       &huge_tensor,
                                       nullptr,
                                       small.desc(),
                                       DML_MATRIX_TRANSFORM_NONE,
                                       DML_MATRIX_TRANSFORM_NONE,
                                       1,
                                       0,
                                       nullptr};
  GraphBuilder graph;
  const auto op = h().CreateOperator(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &scale);
  const UINT a = graph.Operator(op), b = graph.Operator(op);
  const UINT product = graph.Operator(h().CreateOperator(DML_OPERATOR_GEMM, &gemm));
  graph.Input(0, a, 0).Input(1, b, 0).Edge(a, 0, product, 0).Edge(b, 0, product, 1).Output(product, 0, 0);
  ComPtr<IDMLCompiledOperator> compiled;
  ExpectFailure(graph.TryCompile(h().dml(), &compiled), E_OUTOFMEMORY,
                "CompileGraph: the intermediate tensors need more than 2^64 bytes at once");
}

// 3,000 times (x + transposed x) / 2, and 999 parallel uses of the result.
TEST_F(GraphLimitsTest, TenThousandNodes) {
  constexpr UINT kParts = 999;
  const Tensor square(kFloat, {2, 2}), row(kFloat, {4}), rows(kFloat, {kParts, 4});
  const UINT sizes[] = {2, 2}, across[] = {1, 2};
  const DML_BUFFER_TENSOR_DESC transposed = {kFloat, DML_TENSOR_FLAG_NONE, 2, sizes, across, 16, 0};
  const DML_TENSOR_DESC transposed_tensor = {DML_TENSOR_TYPE_BUFFER, &transposed};
  const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC transpose = {&transposed_tensor, square.desc(), nullptr};
  GraphBuilder graph;
  const auto halve = Scale({2, 2}, 0.5f, 0), add = Add({2, 2});
  const auto turn = h().CreateOperator(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &transpose);
  UINT last = 0;
  for (UINT i = 0; i < 3000; ++i) {
    const UINT half = graph.Operator(halve), turned = graph.Operator(turn), sum = graph.Operator(add);
    i == 0 ? graph.Input(0, half, 0) : graph.Edge(last, 0, half, 0);
    graph.Edge(half, 0, turned, 0).Edge(half, 0, sum, 0).Edge(turned, 0, sum, 1);
    last = sum;
  }
  const Tensor part(kFloat, {1, 4});
  const std::vector<DML_TENSOR_DESC> parts(kParts, *part.desc());
  const DML_JOIN_OPERATOR_DESC join = {kParts, parts.data(), rows.desc(), 0};
  const UINT joined = graph.Operator(h().CreateOperator(DML_OPERATOR_JOIN, &join));
  for (UINT i = 0; i < kParts; ++i) {
    const UINT shifted = graph.Operator(Scale({1, 4}, 1, static_cast<float>(i)));
    graph.Edge(last, 0, shifted, 0).Edge(shifted, 0, joined, i);
  }
  graph.Output(joined, 0, 0);
  ASSERT_EQ(graph.nodes.size(), 10000u);

  const auto start = std::chrono::steady_clock::now();
  const auto compiled = graph.Compile(h().dml());
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 30);  // half a second, except with sanitizers or on busy machines
  const auto got = Run(compiled.Get(), {{1, 2, 3, 4}}, {kParts * 4})[0];
  for (UINT i = 0; i < kParts; i += 333) {
    const std::vector<float> found(got.begin() + i * 4, got.begin() + i * 4 + 4);
    const auto shift = static_cast<float>(i);
    EXPECT_EQ(found, (std::vector<float>{1 + shift, 2.5f + shift, 2.5f + shift, 4 + shift}));
  }
}

// Each may be bound in place, which takes a copy; but only one copy at a time is needed.
TEST_F(GraphLimitsTest, CopiesOfCaches) {
  constexpr UINT kLayers = 8, kRows = 256, kColumns = 16;
  constexpr uint64_t kCount = kRows * kColumns;
  const Tensor rows(kFloat, {kRows, kColumns}), kept(kFloat, {kRows - 1, kColumns}),
      row(kFloat, {1, kColumns});
  const UINT first[] = {0, 0}, second[] = {1, 0}, one[] = {1, kColumns}, others[] = {kRows - 1, kColumns};
  const INT strides[] = {1, 1};
  const DML_SLICE1_OPERATOR_DESC cut = {rows.desc(), kept.desc(), 2, second, others, strides};
  const DML_SLICE1_OPERATOR_DESC oldest = {rows.desc(), row.desc(), 2, first, one, strides};
  const DML_TENSOR_DESC parts[] = {*kept.desc(), *row.desc()};
  const DML_JOIN_OPERATOR_DESC join = {2, parts, rows.desc(), 0};
  GraphBuilder graph;
  UINT last = 0;
  for (UINT i = 0; i < kLayers; ++i) {
    const UINT rest = graph.Operator(h().CreateOperator(DML_OPERATOR_SLICE1, &cut));
    const UINT joined = graph.Operator(h().CreateOperator(DML_OPERATOR_JOIN, &join));
    graph.Input(i, rest, 0).Edge(rest, 0, joined, 0).Output(joined, 0, i);
    i == 0 ? graph.Input(kLayers, joined, 1) : graph.Edge(last, 0, joined, 1);
    last = graph.Operator(h().CreateOperator(DML_OPERATOR_SLICE1, &oldest));
    graph.Edge(joined, 0, last, 0);
  }
  graph.Output(last, 0, kLayers);
  const auto compiled = graph.Compile(h().dml());
  EXPECT_LE(compiled->GetBindingProperties().TemporaryResourceSize, 2 * kCount * sizeof(float));

  std::vector<std::vector<float>> inputs(kLayers + 1);
  std::vector<size_t> counts;
  std::vector<ComPtr<ID3D12Resource>> buffers;
  std::vector<Bound> bound;
  for (UINT i = 0; i <= kLayers; ++i) {
    inputs[i].resize(i < kLayers ? kCount : kColumns);
    for (size_t j = 0; j < inputs[i].size(); ++j) inputs[i][j] = static_cast<float>(i * kCount + j);
    counts.push_back(inputs[i].size());
    bound.push_back({buffers.emplace_back(h().Upload(inputs[i])).Get()});
    EXPECT_EQ(AnyDmlMayRunInPlace(compiled.Get(), i, i), 1) << i;
  }
  const auto apart = Run(compiled.Get(), inputs, counts);  // initializes it, too
  h().Dispatch(compiled.Get(), bound, bound);
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
  for (UINT i = 0; i <= kLayers; ++i)
    EXPECT_EQ(h().Download<float>(bound[i].buffer, counts[i]), apart[i]) << i;
}

}  // namespace
}  // namespace anydml::test
