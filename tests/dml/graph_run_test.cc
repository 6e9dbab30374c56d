// Graphs compile, are initialized and give the results of their operators. Longer than most files: one
// fixture.
#include <pthread.h>

#include <functional>

#include "dml/graph_test.h"

namespace anydml::test {
namespace {

using Floats = std::vector<float>;

class GraphRunTest : public GraphTest {};

TEST_F(GraphRunTest, OneOperator) {
  GraphBuilder graph;
  const UINT add = graph.Operator(Add({1, 1, 1, 4}));
  graph.Input(0, add, 0).Input(1, add, 1).Output(add, 0, 0);
  const auto compiled = graph.Compile(h().dml());
  EXPECT_GE(compiled->GetBindingProperties().RequiredDescriptorCount, 1u);
  EXPECT_EQ(Run(compiled.Get(), {{1, 2, 3, 4}, {10, 20, 30, 40}}, {4})[0], Floats({11, 22, 33, 44}));
}

TEST_F(GraphRunTest, OneInputTwiceAndOneValueToMany) {
  GraphBuilder graph;
  const UINT twice = graph.Operator(Add({4}));           // x + x
  const UINT plus = graph.Operator(Scale({4}, 1, 1));    // 2 x + 1
  const UINT times = graph.Operator(Scale({4}, 10, 0));  // 20 x
  const UINT sum = graph.Operator(Add({4}));
  graph.Input(0, twice, 0).Input(0, twice, 1);
  graph.Edge(twice, 0, plus, 0).Edge(twice, 0, times, 0).Edge(plus, 0, sum, 0).Edge(times, 0, sum, 1);
  // An intermediate value is also an output, twice.
  graph.Output(sum, 0, 0).Output(twice, 0, 1).Output(twice, 0, 2);
  const auto got = Run(graph.Compile(h().dml()).Get(), {{1, 2, 3, 4}}, {4, 4, 4});
  EXPECT_EQ(got[0], Floats({23, 45, 67, 89}));
  EXPECT_EQ(got[1], Floats({2, 4, 6, 8}));
  EXPECT_EQ(got[2], Floats({2, 4, 6, 8}));
}

// Work that runs immediately on the submitting thread must fit into that thread's stack.
TEST_F(GraphRunTest, OnAThreadWithASmallStack) {
  GraphBuilder graph;
  const UINT sum = graph.Operator(Add({8}));
  const UINT last = graph.Operator(Scale({8}, 3, 1));
  graph.Input(0, sum, 0).Input(1, sum, 1).Edge(sum, 0, last, 0).Output(last, 0, 0);
  const auto compiled = graph.Compile(h().dml());
  std::vector<Floats> got;
  std::function<void()> run = [&] {
    got = Run(compiled.Get(), {{1, 2, 3, 4, 5, 6, 7, 8}, {1, 1, 1, 1, 1, 1, 1, 1}}, {8});
  };
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 128 << 10), 0);
  pthread_t thread;
  constexpr auto kMain = [](void* what) -> void* {
    (*static_cast<std::function<void()>*>(what))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, kMain, &run), 0);
  pthread_attr_destroy(&attributes);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_EQ(got, std::vector<Floats>({{7, 10, 13, 16, 19, 22, 25, 28}}));
}

// Nodes may be described in any order.
TEST_F(GraphRunTest, OrderOfNodes) {
  GraphBuilder graph;
  const UINT last = graph.Operator(Scale({2}, 3, 0));
  const UINT first = graph.Operator(Scale({2}, 1, 1));
  graph.Input(0, first, 0).Edge(first, 0, last, 0).Output(last, 0, 0);
  EXPECT_EQ(Run(graph.Compile(h().dml()).Get(), {{1, 2}}, {2})[0], Floats({6, 9}));
}

// The consumer reads the producer's bytes with another shape, transposed.
TEST_F(GraphRunTest, Reinterpretation) {
  const Tensor row(kFloat, {1, 6});
  const Tensor transposed(kFloat, {3, 2}, DML_TENSOR_FLAG_NONE, {{1, 3}});
  const Tensor packed(kFloat, {3, 2});
  GraphBuilder graph;
  const UINT first = graph.Operator(Scale(row, row, 1, 10));
  const UINT second = graph.Operator(Scale(transposed, packed, 2, 0));
  graph.Input(0, first, 0).Edge(first, 0, second, 0).Output(second, 0, 0);
  EXPECT_EQ(Run(graph.Compile(h().dml()).Get(), {{1, 2, 3, 4, 5, 6}}, {6})[0],
            Floats({22, 28, 24, 30, 26, 32}));
}

TEST_F(GraphRunTest, HolesInInputsAndOutputs) {
  GraphBuilder graph;
  const UINT scale = graph.Operator(Scale({2}, 2, 0));
  graph.Input(1, scale, 0).Output(scale, 0, 2);
  graph.inputs = 3;
  graph.outputs = 4;
  const auto compiled = graph.Compile(h().dml());
  const auto got = Run(compiled.Get(), {{}, {1, 2}, {}}, {0, 0, 2, 0});
  EXPECT_EQ(got[2], Floats({2, 4}));
  // Bindings without an edge are ignored.
  const auto small = h().Upload(Floats{1}), input = h().Upload(Floats{3, 4}), output = h().CreateBuffer(8);
  h().Dispatch(compiled.Get(), {{small.Get()}, {input.Get()}, {small.Get()}},
               {{}, {small.Get()}, {output.Get()}, {}});
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
  EXPECT_EQ(h().Download<float>(output.Get(), 2), Floats({6, 8}));
}

TEST_F(GraphRunTest, OwnedInputsAndConstants) {
  const float constant[] = {100, 200};
  GraphBuilder graph;
  const UINT bytes = graph.Constant(constant, sizeof(constant));
  const UINT owned = graph.Operator(Add({2}, DML_TENSOR_FLAG_OWNED_BY_DML));
  const UINT sum = graph.Operator(Add({2}));
  graph.Input(0, owned, 0).Input(1, owned, 1).Edge(owned, 0, sum, 0).Edge(bytes, 0, sum, 1).Output(sum, 0, 0);
  const auto compiled = graph.Compile(h().dml());
  EXPECT_GE(compiled->GetBindingProperties().PersistentResourceSize, 16u);
  EXPECT_EQ(Run(compiled.Get(), {{1, 2}, {10, 20}}, {2}, {false, true})[0], Floats({111, 222}));
}

// One byte for a tensor whose size is rounded up to 4, with several readers.
TEST_F(GraphRunTest, SmallConstant) {
  const uint8_t seven = 7;
  const Tensor spread(DML_TENSOR_DATA_TYPE_UINT8, {1, 4}, DML_TENSOR_FLAG_NONE, {{0, 0}});
  const Tensor packed(DML_TENSOR_DATA_TYPE_UINT8, {1, 4});
  const DML_ELEMENT_WISE_ADD_OPERATOR_DESC desc = {packed.desc(), spread.desc(), packed.desc()};
  GraphBuilder graph;
  const UINT constant = graph.Constant(&seven, 1, "seven");
  const UINT add = graph.Operator(h().CreateOperator(DML_OPERATOR_ELEMENT_WISE_ADD, &desc));
  graph.Input(0, add, 0).Edge(constant, 0, add, 1).Output(add, 0, 0);
  const auto compiled = graph.Compile(h().dml());
  const auto input = h().Upload(std::vector<uint8_t>{1, 2, 3, 250}), output = h().CreateBuffer(4);
  const auto persistent = h().CreatePersistent(compiled.Get());
  h().Initialize(compiled.Get(), persistent.Get(), {{}});
  h().Dispatch(compiled.Get(), {{input.Get()}}, {{output.Get()}}, persistent.Get());
  EXPECT_EQ(h().Download<uint8_t>(output.Get(), 4), std::vector<uint8_t>({8, 9, 10, 1}));
}

// One constant for tensors of different sizes, one of which claims bytes beyond the data.
TEST_F(GraphRunTest, ConstantOfSeveralSizes) {
  const float data[] = {1, 2};
  const Tensor one(kFloat, {1}), two(kFloat, {2});
  DML_BUFFER_TENSOR_DESC large = *static_cast<const DML_BUFFER_TENSOR_DESC*>(one.desc()->Desc);
  large.TotalTensorSizeInBytes = UINT64_C(1) << 50;
  const DML_TENSOR_DESC large_desc = {DML_TENSOR_TYPE_BUFFER, &large};
  const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC desc = {&large_desc, one.desc(), nullptr};
  GraphBuilder graph;
  const UINT constant = graph.Constant(data, 8);
  const UINT first = graph.Operator(h().CreateOperator(DML_OPERATOR_ELEMENT_WISE_IDENTITY, &desc));
  const UINT second = graph.Operator(Scale(two, two, 1, 0));
  graph.Edge(constant, 0, first, 0).Edge(constant, 0, second, 0).Output(first, 0, 0).Output(second, 0, 1);
  const auto compiled = graph.Compile(h().dml());
  EXPECT_LT(compiled->GetBindingProperties().PersistentResourceSize, 1u << 16);
  const auto got = Run(compiled.Get(), {}, {1, 2});
  EXPECT_EQ(got[0], Floats({1}));
  EXPECT_EQ(got[1], Floats({1, 2}));
}

// A TOP_K of which only the indices are used.
TEST_F(GraphRunTest, UnusedOutput) {
  const TopK top({1, 1, 1, 5}, 3, 2);
  GraphBuilder graph;
  const UINT node = graph.Operator(h().CreateOperator(DML_OPERATOR_TOP_K1, &top.desc));
  graph.Input(0, node, 0).Output(node, 1, 0);
  const auto compiled = graph.Compile(h().dml());
  EXPECT_GE(compiled->GetBindingProperties().TemporaryResourceSize, 8u);
  const auto input = h().Upload(Floats{1, 9, 3, 7, 5}), output = h().CreateBuffer(8);
  h().Initialize(compiled.Get());
  h().Dispatch(compiled.Get(), {{input.Get()}}, {{output.Get()}});
  EXPECT_EQ(h().Download<uint32_t>(output.Get(), 2), std::vector<uint32_t>({1, 3}));
}

TEST_F(GraphRunTest, NoInputs) {
  const Tensor tensor(kFloat, {3});
  DML_FILL_VALUE_CONSTANT_OPERATOR_DESC fill = {tensor.desc(), kFloat, {}};
  fill.Value.Float32 = 5;
  GraphBuilder graph;
  const UINT node = graph.Operator(h().CreateOperator(DML_OPERATOR_FILL_VALUE_CONSTANT, &fill));
  const UINT scale = graph.Operator(Scale({3}, 2, 1));
  graph.Edge(node, 0, scale, 0).Output(scale, 0, 0);
  EXPECT_EQ(Run(graph.Compile(h().dml()).Get(), {}, {3})[0], Floats({11, 11, 11}));
}

// Bytes between the elements of an output stay unchanged, also if it is a copy of another output.
TEST_F(GraphRunTest, GapsStay) {
  const Tensor packed(kFloat, {2, 1}), gaps(kFloat, {2, 1}, DML_TENSOR_FLAG_NONE, {{2, 1}});
  GraphBuilder graph;
  const UINT node = graph.Operator(Scale(packed, gaps, 1, 0));
  graph.Input(0, node, 0).Output(node, 0, 0).Output(node, 0, 1);
  const auto compiled = graph.Compile(h().dml());
  const auto input = h().Upload(Floats{1, 2}), a = h().Upload(Floats{7, 7, 7}),
             b = h().Upload(Floats{8, 8, 8});
  h().Initialize(compiled.Get());
  h().Dispatch(compiled.Get(), {{input.Get()}}, {{a.Get()}, {b.Get()}});
  EXPECT_EQ(h().Download<float>(a.Get(), 3), Floats({1, 7, 2}));
  EXPECT_EQ(h().Download<float>(b.Get(), 3), Floats({1, 8, 2}));
}

// The bytes of dead intermediates are reused: a long chain needs room for at most two.
TEST_F(GraphRunTest, TemporaryMemoryIsReused) {
  constexpr uint32_t kCount = 1 << 14;
  ScopedEnv without("ANYDML_GRAPH_WITHOUT", "all");
  GraphBuilder graph;
  const Tensor matrix(kFloat, {1, 1, 128, 128});
  UINT before = graph.Operator(Scale({1, 1, 128, 128}, 1, 0));
  graph.Input(0, before, 0);
  for (int i = 0; i < 20; ++i) {
    const UINT next = graph.Operator(Scale(matrix, matrix, 1, 1));
    graph.Edge(before, 0, next, 0);
    before = next;
  }
  graph.Output(before, 0, 0);
  const auto compiled = graph.Compile(h().dml());
  EXPECT_LE(compiled->GetBindingProperties().TemporaryResourceSize, 2 * kCount * sizeof(float) + 4096);
  EXPECT_EQ(Run(compiled.Get(), {Floats(kCount, 1)}, {kCount})[0], Floats(kCount, 21));
}

// The output may use the input's memory if every reader is done by then.
TEST_F(GraphRunTest, InPlace) {
  GraphBuilder graph;
  const UINT a = graph.Operator(Scale({4}, 2, 0));
  const UINT b = graph.Operator(Scale({4}, 1, 1));
  graph.Input(0, a, 0).Edge(a, 0, b, 0).Output(b, 0, 0);
  const auto compiled = graph.Compile(h().dml());
  const auto buffer = h().Upload(Floats{1, 2, 3, 4});
  h().Initialize(compiled.Get());
  h().Dispatch(compiled.Get(), {{buffer.Get()}}, {{buffer.Get()}});
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
  EXPECT_EQ(h().Download<float>(buffer.Get(), 4), Floats({3, 5, 7, 9}));
}

// Also if one of them is smaller: it uses the beginning of the other's memory.
TEST_F(GraphRunTest, InPlaceOfAnotherSize) {
  const Tensor few(kFloat, {1, 1, 1, 2}), many(kFloat, {1, 1, 1, 4});
  const UINT repeats[] = {1, 1, 1, 2};
  const DML_TILE_OPERATOR_DESC tile = {few.desc(), many.desc(), 4, repeats};
  GraphBuilder graph;
  const UINT a = graph.Operator(Scale({1, 1, 1, 2}, 2, 0));
  const UINT b = graph.Operator(h().CreateOperator(DML_OPERATOR_TILE, &tile));
  graph.Input(0, a, 0).Edge(a, 0, b, 0).Output(b, 0, 0);
  ScopedEnv without("ANYDML_GRAPH_WITHOUT", "all");  // two steps
  const auto compiled = graph.Compile(h().dml());
  ASSERT_EQ(AnyDmlMayRunInPlace(compiled.Get(), 0, 0), 1);
  const auto buffer = h().Upload(Floats{1, 2, 3, 4});
  h().Initialize(compiled.Get());
  h().Dispatch(compiled.Get(), {{buffer.Get()}}, {{buffer.Get()}});
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
  EXPECT_EQ(h().Download<float>(buffer.Get(), 4), Floats({2, 4, 2, 4}));
}

// It also may if passes merge readers and writer into one step, which itself cannot run in place.
TEST_F(GraphRunTest, InPlaceAsTheNodesAllow) {
  const auto run = [&](GraphBuilder& graph, const std::vector<Floats>& inputs) {
    for (const char* passes : {"", "all"}) {
      ScopedEnv without("ANYDML_GRAPH_WITHOUT", passes);
      const auto compiled = graph.Compile(h().dml());
      EXPECT_EQ(AnyDmlMayRunInPlace(compiled.Get(), 0, 0), 1);
      const Floats apart = Run(compiled.Get(), inputs, {inputs[0].size()})[0];  // initializes it, too
      const auto buffer = h().Upload(inputs[0]);
      std::vector<Bound> bound = {{buffer.Get()}};
      std::vector<ComPtr<ID3D12Resource>> others;
      for (size_t i = 1; i < inputs.size(); ++i)
        bound.push_back({others.emplace_back(h().Upload(inputs[i])).Get()});
      h().Dispatch(compiled.Get(), bound, {{buffer.Get()}});
      EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
      EXPECT_EQ(h().Download<float>(buffer.Get(), inputs[0].size()), apart) << passes;
    }
  };
  // All rows except the first, followed by a new row.
  const Tensor rows(kFloat, {1, 1, 4, 2}), kept(kFloat, {1, 1, 3, 2}), row(kFloat, {1, 1, 1, 2});
  const UINT offsets[] = {0, 0, 1, 0}, sizes[] = {1, 1, 3, 2};
  const INT strides[] = {1, 1, 1, 1};
  const DML_SLICE1_OPERATOR_DESC slice = {rows.desc(), kept.desc(), 4, offsets, sizes, strides};
  const DML_TENSOR_DESC parts[] = {*kept.desc(), *row.desc()};
  const DML_JOIN_OPERATOR_DESC join = {2, parts, rows.desc(), 2};
  GraphBuilder rolling;
  const UINT cut = rolling.Operator(h().CreateOperator(DML_OPERATOR_SLICE1, &slice));
  const UINT joined = rolling.Operator(h().CreateOperator(DML_OPERATOR_JOIN, &join));
  rolling.Input(0, cut, 0).Edge(cut, 0, joined, 0).Input(1, joined, 1).Output(joined, 0, 0);
  run(rolling, {{1, 2, 3, 4, 5, 6, 7, 8}, {9, 10}});
  // A product; a tensor computed from it is added in place.
  const Tensor square(kFloat, {1, 1, 2, 2});
  const DML_GEMM_OPERATOR_DESC gemm = {square.desc(), square.desc(), nullptr, square.desc(), {}, {}, 1, 0,
                                       nullptr};
  GraphBuilder residual;
  const UINT product = residual.Operator(h().CreateOperator(DML_OPERATOR_GEMM, &gemm));
  const UINT sum = residual.Operator(Add({1, 1, 2, 2}));
  residual.Input(0, product, 0)
      .Input(1, product, 1)
      .Edge(product, 0, sum, 0)
      .Input(0, sum, 1)
      .Output(sum, 0, 0);
  run(residual, {{1, 2, 3, 4}, {1, 0, 0, -1}});
  // An operator that may not run in place alone may not do so in a graph.
  GraphBuilder alone;
  const UINT one = alone.Operator(h().CreateOperator(DML_OPERATOR_GEMM, &gemm));
  alone.Input(0, one, 0).Input(1, one, 1).Output(one, 0, 0);
  EXPECT_EQ(AnyDmlMayRunInPlace(alone.Compile(h().dml()).Get(), 0, 0), 0);
}

// The activation of one output must not make another output's readers wait, or let them read an output that
// is not ready.
TEST_F(GraphRunTest, ActivationOfOneOutputOfSeveral) {
  const Tensor input(kFloat, {1, 1, 1, 4}), channel(kFloat, {1, 1, 1, 1});
  DML_BATCH_NORMALIZATION_TRAINING_OPERATOR_DESC desc = {};
  desc.InputTensor = desc.OutputTensor = input.desc();
  desc.ScaleTensor = desc.BiasTensor = desc.OutputMeanTensor = desc.OutputVarianceTensor = channel.desc();
  GraphBuilder graph;
  const UINT normalize = graph.Operator(h().CreateOperator(DML_OPERATOR_BATCH_NORMALIZATION_TRAINING, &desc));
  const UINT negate = graph.Operator(Scale(channel, channel, -1, 0));
  const DML_ACTIVATION_RELU_OPERATOR_DESC relu_desc = {input.desc(), input.desc()};
  const UINT relu = graph.Operator(h().CreateOperator(DML_OPERATOR_ACTIVATION_RELU, &relu_desc));
  graph.Input(0, normalize, 0).Input(1, normalize, 1).Input(2, normalize, 2);
  graph.Edge(normalize, 1, negate, 0).Edge(normalize, 0, relu, 0).Output(relu, 0, 0).Output(negate, 0, 1);
  const auto got = Run(graph.Compile(h().dml()).Get(), {{1, 3, 1, 3}, {1}, {0}}, {4, 1});
  EXPECT_EQ(got[0][0], 0);
  EXPECT_NEAR(got[0][1], 1, 1e-5);
  EXPECT_EQ(got[1], Floats({-2}));
}

// The operators and the description are not needed after the graph is compiled.
TEST_F(GraphRunTest, OutlivesItsOperators) {
  ComPtr<IDMLCompiledOperator> compiled;
  {
    GraphBuilder graph;
    Floats constant = {5, 6};
    const UINT bytes = graph.Constant(constant.data(), 8);
    const UINT add = graph.Operator(Add({2}));
    graph.Input(0, add, 0).Edge(bytes, 0, add, 1).Output(add, 0, 0);
    compiled = graph.Compile(h().dml());
    constant = {0, 0};
  }
  EXPECT_EQ(Run(compiled.Get(), {{1, 2}}, {2})[0], Floats({6, 8}));
}

// Past keys and values share the bytes of the present outputs, as FLOAT16, after CASTs.
TEST_F(GraphRunTest, PresentOutputsThroughCasts) {
  constexpr auto kHalf = DML_TENSOR_DATA_TYPE_FLOAT16;
  const Tensor rows(kFloat, {1, 1, 1, 2}), lengths(DML_TENSOR_DATA_TYPE_INT32, {1, 1, 1, 1});
  const Tensor present(kFloat, {1, 1, 3, 2}), cache(kHalf, {1, 1, 3, 2});
  DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC desc = {};
  desc.QueryTensor = desc.KeyTensor = desc.ValueTensor = desc.OutputTensor = rows.desc();
  desc.PastSequenceLengthsTensor = lengths.desc();
  desc.OutputPresentKeyTensor = desc.OutputPresentValueTensor = present.desc();
  desc.Scale = 1;
  desc.QueryHeadCount = desc.KeyValueHeadCount = 1;
  desc.MaskType = DML_MULTIHEAD_ATTENTION_MASK_TYPE_NONE;
  const DML_CAST_OPERATOR_DESC cast = {present.desc(), cache.desc()};
  GraphBuilder graph;
  const UINT attention = graph.Operator(h().CreateOperator(DML_OPERATOR_MULTIHEAD_ATTENTION1, &desc));
  const UINT key = graph.Operator(h().CreateOperator(DML_OPERATOR_CAST, &cast));
  const UINT value = graph.Operator(h().CreateOperator(DML_OPERATOR_CAST, &cast));
  graph.Input(0, attention, 0).Input(1, attention, 1).Input(2, attention, 2).Input(3, attention, 11);
  graph.Edge(attention, 1, key, 0).Edge(attention, 2, value, 0);
  graph.Output(attention, 0, 0).Output(key, 0, 1).Output(value, 0, 2);
  const auto compiled = graph.Compile(h().dml());
  const auto query = h().Upload(Floats{7, 8}), new_key = h().Upload(Floats{0, 0});
  const auto new_value = h().Upload(Floats{3, 5}), past = h().Upload(std::vector<int32_t>{1});
  // One past row, room for two more: 0, 0 and 1, 3; 0x3C00 is 1, 0x4200 is 3.
  const auto keys = h().Upload(std::vector<uint16_t>{0, 0, 1, 2, 3, 4});
  const auto values = h().Upload(std::vector<uint16_t>{0x3C00, 0x4200, 1, 2, 3, 4});
  const auto output = h().CreateBuffer(8);
  h().Initialize(compiled.Get());
  h().Dispatch(compiled.Get(), {{query.Get()}, {new_key.Get()}, {new_value.Get()}, {past.Get()}},
               {{output.Get()}, {keys.Get()}, {values.Get()}});
  // Both keys are 0: the result is the average of the values.
  EXPECT_EQ(h().Download<float>(output.Get(), 2), Floats({2, 4}));
  EXPECT_EQ(h().Download<uint16_t>(keys.Get(), 6), std::vector<uint16_t>({0, 0, 0, 0, 3, 4}));
  EXPECT_EQ(h().Download<uint16_t>(values.Get(), 6),
            std::vector<uint16_t>({0x3C00, 0x4200, 0x4200, 0x4500, 3, 4}));

  // An intermediate output without a past.
  GraphBuilder lost;
  lost.Operator(h().CreateOperator(DML_OPERATOR_MULTIHEAD_ATTENTION1, &desc));
  lost.Input(0, 0, 0).Input(1, 0, 1).Input(2, 0, 2).Input(3, 0, 11).Output(0, 0, 0).Output(0, 1, 1);
  ComPtr<IDMLCompiledOperator> refused;
  ExpectFailure(lost.TryCompile(h().dml(), &refused), E_INVALIDARG,
                "node 0 (MULTIHEAD_ATTENTION1): OutputPresentValueTensor is read as well as written");
}

// Recorded once with only the persistent resource; some of the bindings follow before each run.
TEST_F(GraphRunTest, VolatileDescriptors) {
  GraphBuilder graph;
  const UINT a = graph.Operator(Add({2}));
  const UINT b = graph.Operator(Scale({2}, 2, 0));
  graph.Input(0, a, 0).Input(1, a, 1).Edge(a, 0, b, 0).Output(b, 0, 0);
  const auto compiled = graph.Compile(h().dml(), DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE);
  const auto x = h().Upload(Floats{1, 2}), y = h().Upload(Floats{10, 20});
  const auto z = h().Upload(Floats{5, 6});
  const auto first = h().CreateBuffer(8), second = h().CreateBuffer(8);
  const auto temporary = h().CreateTemporary(compiled.Get());
  h().Initialize(compiled.Get());
  const auto table = h().CreateTable(compiled.Get());
  ID3D12DescriptorHeap* heaps[] = {h().heap()};
  h().list()->SetDescriptorHeaps(1, heaps);
  h().recorder()->RecordDispatch(h().list(), compiled.Get(), table.Get());
  Check(h().list()->Close(), "Close");
  // Bindings follow after the list is closed.
  const Bindings inputs({{x.Get()}, {y.Get()}});
  table->BindInputs(2, inputs.data());
  const Bindings outputs({{first.Get()}});
  table->BindOutputs(1, outputs.data());
  if (temporary != nullptr) {
    const Bindings scratch({{temporary.Get()}});
    table->BindTemporaryResource(scratch.data());
  }
  ComPtr<ID3D12Fence> fence;
  Check(h().d3d()->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)), "CreateFence");
  const auto execute = [&](UINT64 value) {
    ID3D12CommandList* lists[] = {h().list()};
    h().queue()->ExecuteCommandLists(1, lists);
    Check(h().queue()->Signal(fence.Get(), value), "Signal");
    Check(fence->SetEventOnCompletion(value, nullptr), "SetEventOnCompletion");
  };
  execute(1);
  const Bindings other({{second.Get()}});
  table->BindOutputs(1, other.data());
  execute(2);
  // Earlier runs may be replayed; the present bindings must be used all the same.
  for (UINT64 value = 3; value < 9; ++value) {
    table->BindOutputs(1, value % 2 == 0 ? other.data() : outputs.data());
    execute(value);
  }
  const Bindings changed({{z.Get()}, {y.Get()}});
  table->BindInputs(2, changed.data());
  table->BindOutputs(1, outputs.data());
  execute(9);
  EXPECT_EQ(h().dml()->GetDeviceRemovedReason(), S_OK) << LastError();
  h().Reopen();
  EXPECT_EQ(h().Download<float>(first.Get(), 2), Floats({30, 52}));
  EXPECT_EQ(h().Download<float>(second.Get(), 2), Floats({22, 44}));
}

}  // namespace
}  // namespace anydml::test
