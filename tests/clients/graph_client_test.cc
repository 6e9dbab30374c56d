// Graphs built and run in the way of programs with an expression library, against results computed here.
#include "graph_builder.h"
#include "graph_machine.h"

#include <anydml.h>
#include <gtest/gtest.h>

#include <cmath>

namespace {

using namespace client;

constexpr auto kFloat = DML_TENSOR_DATA_TYPE_FLOAT32;

class GraphClientTest : public ::testing::Test {
 protected:
  // Initializes a graph and runs it once; one result per size.
  std::vector<Bytes> Run(const ComPtr<IDMLCompiledOperator>& compiled, const std::vector<Given>& inputs,
                         const std::vector<UINT64>& output_sizes) {
    return Program(&machine_, compiled.Get(), inputs).Run(inputs, output_sizes);
  }

  Machine machine_;
  Graph graph_{machine_.dml()};
};

// Small numbers of both signs, whose sums of products are exact.
std::vector<float> Numbers(size_t count, int seed) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>((static_cast<int>(i) * 7 + seed) % 11 - 5);
  return values;
}

void ExpectNear(const std::vector<float>& got, const std::vector<float>& wanted, float tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance) << i;
}

TEST_F(GraphClientTest, Arithmetic) {
  const Tensor tensor(kFloat, {2, 3});
  const auto a = graph_.Input(0, tensor), b = graph_.Input(1, tensor);
  const auto result = 2.0f * (a * a - b) + 0.5f;
  const std::vector<float> x = {1, 2, 3, 4, 5, 6}, y = {1, 1, 2, 2, 3, 3};
  const auto got = Run(graph_.Compile({&result}), {{BytesOf(x)}, {BytesOf(y)}}, {24});
  EXPECT_EQ(As<float>(got[0]), (std::vector<float>{0.5f, 6.5f, 14.5f, 28.5f, 44.5f, 66.5f}));
}

// Reshapes, transposes and broadcasts only by the tensor descriptions at the two ends of an edge.
TEST_F(GraphClientTest, Reinterpretation) {
  const auto a = graph_.Input(0, Tensor(kFloat, {2, 3}));
  const auto doubled = 2.0f * a;
  const auto transposed = Identity(Reinterpret(doubled, Tensor(kFloat, {3, 2}, {1, 3})));
  const auto sums = Sum(doubled, 1);  // {2, 1}
  const auto spread = Reinterpret(sums, Tensor(kFloat, {3, 2}, {0, 1}));
  const auto result = transposed + spread;
  const auto flat = Identity(Reinterpret(result, Tensor(kFloat, {1, 1, 1, 6})));
  const auto bits = Identity(Reinterpret(doubled, Tensor(DML_TENSOR_DATA_TYPE_UINT32, {6})));
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const auto got = Run(graph_.Compile({&flat, &bits}), {{BytesOf(x)}}, {24, 24});
  EXPECT_EQ(As<float>(got[0]), (std::vector<float>{14, 38, 16, 40, 18, 42}));
  EXPECT_EQ(As<float>(got[1]), (std::vector<float>{2, 4, 6, 8, 10, 12}));
}

TEST_F(GraphClientTest, SeveralOutputs) {
  const auto a = graph_.Input(0, Tensor(kFloat, {1, 1, 2, 6}));
  const auto parts = Split(a, 3, {2, 1, 3});  // the middle one has no reader
  const auto joined = Join({&parts[2], &parts[0]}, 3);
  const auto best = TopK(joined, 3, 2);
  const auto relu = Relu(parts[0]);
  const std::vector<float> x = {1, -2, 9, 4, 5, 6, -7, 8, 9, 12, 11, 10};
  // The joined tensor is used twice, and once more as an intermediate value.
  const auto got = Run(graph_.Compile({&joined, &best[0], &best[1], &relu, &joined}), {{BytesOf(x)}},
                       {40, 16, 16, 16, 40});
  EXPECT_EQ(As<float>(got[0]), (std::vector<float>{4, 5, 6, 1, -2, 12, 11, 10, -7, 8}));
  EXPECT_EQ(As<float>(got[1]), (std::vector<float>{6, 5, 12, 11}));
  EXPECT_EQ(As<UINT>(got[2]), (std::vector<UINT>{2, 1, 0, 1}));
  EXPECT_EQ(As<float>(got[3]), (std::vector<float>{1, 0, 0, 8}));
  EXPECT_EQ(got[4], got[0]);
}

// A scalar broadcast over a tensor, a single byte in a tensor of four, and a table; the data may be freed
// after Compile.
TEST_F(GraphClientTest, Constants) {
  const Tensor tensor(kFloat, {2, 2});
  const auto a = graph_.Input(0, tensor);
  ComPtr<IDMLCompiledOperator> compiled;
  {
    const auto scale = graph_.Constant<float>({3}, Tensor(kFloat, {2, 2}, {0, 0}));
    const auto byte_of_10 = graph_.Constant<BYTE>({10}, Tensor(DML_TENSOR_DATA_TYPE_UINT8, {1}));
    const auto ten = Reinterpret(Cast(byte_of_10, kFloat), Tensor(kFloat, {2, 2}, {0, 0}));
    const auto table = graph_.Constant<float>({1, 2, 3, 4}, tensor);
    const auto filled = Filled(&graph_, Tensor(kFloat, {1}), 100);
    const auto hundred = Reinterpret(filled, Tensor(kFloat, {2, 2}, {0, 0}));
    const auto result = a * scale + table * ten - hundred;
    compiled = graph_.Compile({&result});
    graph_ = Graph(machine_.dml());
  }
  const std::vector<float> x = {1, 2, 3, 4};
  const auto got = Run(compiled, {{BytesOf(x)}}, {16});
  EXPECT_EQ(As<float>(got[0]), (std::vector<float>{-87, -74, -61, -48}));
}

// Weights that the library owns; more inputs and outputs than the graph uses.
TEST_F(GraphClientTest, OwnedWeightsAndHoles) {
  const auto owned = [](Dimensions sizes) {
    return Tensor(kFloat, std::move(sizes), {}, DML_TENSOR_FLAG_OWNED_BY_DML);
  };
  const auto a = graph_.Input(1, Tensor(kFloat, {1, 1, 2, 3}));
  const auto weights = graph_.Input(3, owned({1, 1, 4, 3}));
  const auto bias = graph_.Input(4, Tensor(kFloat, {1, 1, 2, 4}, {0, 0, 0, 1}, DML_TENSOR_FLAG_OWNED_BY_DML));
  graph_.SetInputCount(6);
  GemmOptions options;
  options.c = &bias;
  options.transpose_b = true;
  options.relu = true;
  const auto result = Gemm(a, weights, options);
  const auto compiled = graph_.Compile({nullptr, &result, nullptr});
  const std::vector<float> x = {1, 2, 3, -1, 0, 1}, w = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 1, 1},
                           c = {0, 1, -5, 2};
  std::vector<Given> inputs(6);
  inputs[1] = {BytesOf(x)};
  inputs[3] = {BytesOf(w), true};
  inputs[4] = {BytesOf(c), true};
  Program program(&machine_, compiled.Get(), inputs);
  for (int i = 0; i < 2; ++i) {
    const auto got = program.Run(inputs, {0, 32, 0});
    EXPECT_EQ(As<float>(got[1]), (std::vector<float>{1, 3, 0, 8, 0, 1, 0, 2}));
  }
}

TEST_F(GraphClientTest, ResidualBlock) {
  constexpr UINT kChannels = 3, kSize = 5;
  const Tensor tensor(kFloat, {1, kChannels, kSize, kSize});
  const auto x = graph_.Input(0, tensor);
  const auto filter =
      graph_.Input(1, Tensor(kFloat, {kChannels, kChannels, 3, 3}, {}, DML_TENSOR_FLAG_OWNED_BY_DML));
  const auto bias = graph_.Constant<float>({1, -2, 3}, Tensor(kFloat, {1, kChannels, 1, 1}));
  const auto result = Relu(Convolution3x3(x, filter, &bias) + x);
  const auto input = Numbers(kChannels * kSize * kSize, 1), weights = Numbers(kChannels * kChannels * 9, 4);
  const float* const pixels = input.data();
  const float* const taps = weights.data();
  const float biases[] = {1, -2, 3};
  std::vector<float> wanted;
  for (int64_t i = 0; i < kChannels * kSize * kSize; ++i) {
    const int64_t channel = i / (kSize * kSize), row = i / kSize % kSize, column = i % kSize;
    float sum = biases[channel] + pixels[i];
    for (int64_t tap = 0; tap < kChannels * 9; ++tap) {
      const int64_t y = row + tap % 9 / 3 - 1, x_of_tap = column + tap % 3 - 1;
      if (y < 0 || x_of_tap < 0 || y >= kSize || x_of_tap >= kSize) continue;
      sum += taps[channel * kChannels * 9 + tap] * pixels[(tap / 9 * kSize + y) * kSize + x_of_tap];
    }
    wanted.push_back(std::max(sum, 0.0f));
  }
  const auto got =
      Run(graph_.Compile({&result}), {{BytesOf(input)}, {BytesOf(weights), true}}, {wanted.size() * 4});
  ExpectNear(As<float>(got[0]), wanted, 1e-3f);
}

// softmax(q k^T / 2 + mask) v, with heads selected from one tensor by strides.
TEST_F(GraphClientTest, Attention) {
  constexpr UINT kHeads = 2, kTokens = 3, kWidth = 4;
  const Tensor heads(kFloat, {1, kHeads, kTokens, kWidth}, {0, kWidth, kHeads * kWidth, 1});
  const auto q = graph_.Input(0, heads), k = graph_.Input(1, heads), v = graph_.Input(2, heads);
  const auto mask =
      graph_.Constant<float>({0, -1000, 0}, Tensor(kFloat, {1, kHeads, kTokens, kTokens}, {0, 0, 0, 1}));
  GemmOptions scores_options;
  scores_options.transpose_b = true;
  scores_options.alpha = 0.5f;
  const auto weights = Softmax(Gemm(q, k, scores_options) + mask, 3);
  const auto result = Gemm(weights, v);
  const size_t count = kHeads * kTokens * kWidth;
  const auto query = Numbers(count, 1), key = Numbers(count, 5), value = Numbers(count, 8);
  const auto at = [](UINT head, UINT token, UINT i) { return (token * kHeads + head) * kWidth + i; };
  std::vector<float> wanted;
  for (UINT head = 0; head < kHeads; ++head) {
    for (UINT token = 0; token < kTokens; ++token) {
      double powers[kTokens], sum = 0;
      for (UINT other = 0; other < kTokens; ++other) {
        double dot = other == 1 ? -1000 : 0;
        for (UINT i = 0; i < kWidth; ++i) dot += 0.5 * query[at(head, token, i)] * key[at(head, other, i)];
        sum += powers[other] = std::exp(dot);
      }
      for (UINT i = 0; i < kWidth; ++i) {
        double weighted = 0;
        for (UINT other = 0; other < kTokens; ++other)
          weighted += powers[other] / sum * value[at(head, other, i)];
        wanted.push_back(static_cast<float>(weighted));
      }
    }
  }
  const auto got =
      Run(graph_.Compile({&result}), {{BytesOf(query)}, {BytesOf(key)}, {BytesOf(value)}}, {count * 4});
  ExpectNear(As<float>(got[0]), wanted, 1e-4f);
}

// A list that is recorded with only the persistent resource bound; some of the other bindings follow before
// each execution.
TEST_F(GraphClientTest, ListThatIsRecordedOnce) {
  const Tensor tensor(kFloat, {4});
  const auto a = graph_.Input(0, tensor), b = graph_.Input(1, tensor);
  const auto result = Relu(a + b);
  const auto compiled = graph_.Compile({&result}, DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE);
  Program program(&machine_, compiled.Get(), {{}, {}});
  const auto heap = machine_.Heap(compiled->GetBindingProperties().RequiredDescriptorCount);
  const auto table = machine_.Table(compiled.Get(), heap.Get());
  const auto bind = [](ID3D12Resource* buffer, UINT64 size, const auto& method) {
    if (size == 0) return;
    const DML_BUFFER_BINDING binding = {buffer, 0, size};
    const DML_BINDING_DESC desc = {DML_BINDING_TYPE_BUFFER, &binding};
    method(&desc);
  };
  bind(program.PersistentBinding().Buffer, program.PersistentBinding().SizeInBytes,
       [&](const DML_BINDING_DESC* desc) { table->BindPersistentResource(desc); });
  const auto allocator = machine_.AnotherAllocator();
  const auto list = machine_.AnotherList(allocator.Get());
  ID3D12DescriptorHeap* heaps[] = {heap.Get()};
  list->SetDescriptorHeaps(1, heaps);
  machine_.recorder()->RecordDispatch(list.Get(), compiled.Get(), table.Get());
  THROW_IF_FAILED(list->Close());

  bind(program.TemporaryBinding().Buffer, program.TemporaryBinding().SizeInBytes,
       [&](const DML_BINDING_DESC* desc) { table->BindTemporaryResource(desc); });
  const auto output = machine_.Buffer(16);
  bind(output.Get(), 16, [&](const DML_BINDING_DESC* desc) { table->BindOutputs(1, desc); });
  for (const float bias : {0.0f, -2.0f, 7.0f}) {
    const auto first = machine_.Upload(BytesOf<float>({1, 2, 3, 4}));
    const auto second = machine_.Upload(BytesOf<float>({bias, bias, bias, bias}));
    const DML_BUFFER_BINDING bindings[] = {{first.Get(), 0, 16}, {second.Get(), 0, 16}};
    const DML_BINDING_DESC descs[] = {{DML_BINDING_TYPE_BUFFER, &bindings[0]},
                                      {DML_BINDING_TYPE_BUFFER, &bindings[1]}};
    table->BindInputs(2, descs);
    machine_.Execute(list.Get());
    const auto got = As<float>(machine_.Download(output.Get(), 16));
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(got[i], std::max(static_cast<float>(i + 1) + bias, 0.0f));
  }
}

// Errors that such libraries detect themselves or pass on: a graph of nothing but a reinterpretation, and an
// unused expression.
TEST_F(GraphClientTest, Refusals) {
  const auto a = graph_.Input(0, Tensor(kFloat, {2, 2}));
  const auto flat = Reinterpret(a, Tensor(kFloat, {4}));
  ComPtr<IDMLCompiledOperator> compiled;
  EXPECT_THROW(graph_.TryCompile(DML_EXECUTION_FLAG_NONE, {&flat}, compiled.GetAddressOf()),
               wil::ResultException);
  const auto dead = Relu(a);
  const auto result = a + a;
  EXPECT_EQ(graph_.TryCompile(DML_EXECUTION_FLAG_NONE, {&result}, compiled.GetAddressOf()), E_INVALIDARG);
  EXPECT_NE(std::string(AnyDmlGetLastErrorMessage()).find("leads to a graph output"), std::string::npos)
      << AnyDmlGetLastErrorMessage();
  EXPECT_EQ(graph_.TryCompile(DML_EXECUTION_FLAG_NONE, {&result, &dead}, compiled.GetAddressOf()), S_OK);
}

}  // namespace
