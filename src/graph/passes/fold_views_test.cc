// Graphs give the same bytes with and without folded views and constants, with fewer nodes.
#include <cstring>
#include <deque>
#include <random>
#include <variant>

#include <gtest/gtest.h>

#include "graph/passes/graph_under_test.h"

namespace anydml {
namespace {

constexpr DataType kFloat = DataType::kFloat32;

TensorDesc Packed(const std::vector<uint32_t>& sizes, DataType type = kFloat) {
  return PackedTensor(type, sizes.data(), static_cast<uint32_t>(sizes.size()));
}
TensorDesc Strided(const std::vector<uint32_t>& sizes, const std::vector<uint32_t>& strides,
                   DataType type = kFloat) {
  TensorDesc tensor = Packed(sizes, type);
  std::copy(strides.begin(), strides.end(), tensor.strides.begin());
  tensor.total_bytes = MinimumTotalBytes(tensor);
  return tensor;
}
TensorDesc Total(TensorDesc tensor, uint64_t bytes) {
  tensor.total_bytes = bytes;
  return tensor;
}

using Numbers = std::vector<uint32_t>;

struct Result {
  std::vector<std::vector<std::byte>> outputs;
  std::string explanation;

  bool Says(const std::string& text) const { return explanation.find(text) != std::string::npos; }
  // Whether a kernel runs for the node.
  bool Runs(const std::string& node) const { return Says(node + ": cpu."); }
};

class Graphs : public ::testing::Test {
 protected:
  uint32_t Node(const char* name, std::vector<FieldValue> fields) {
    GraphNodeDescription node;
    node.desc = {FindOperator(name), std::move(fields)};
    node.op = FindImplementation(node.desc.schema->type);
    const Status status = node.op->check(node.desc, kLatestFeatureLevel);
    EXPECT_TRUE(status.ok()) << status.message();
    description_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(description_.nodes.size() - 1);
  }
  uint32_t Identity(const TensorDesc& input, const TensorDesc& output) {
    return Node("ELEMENT_WISE_IDENTITY", {input, output, std::monostate{}});
  }
  uint32_t Negate(const TensorDesc& input, const TensorDesc& output) {
    return Node("ELEMENT_WISE_NEGATE", {input, output});
  }
  uint32_t Add(const TensorDesc& a, const TensorDesc& b, const TensorDesc& output) {
    return Node("ELEMENT_WISE_ADD", {a, b, output});
  }
  uint32_t Gemm(const TensorDesc& a, const TensorDesc& b, const TensorDesc& output) {
    return Node("GEMM",
                {a, b, std::monostate{}, output, 0u, 0u, 1.0f, 0.0f, std::shared_ptr<const OperatorDesc>()});
  }
  uint32_t Constant(size_t bytes) {
    auto& constant = constants_.emplace_back(bytes);
    for (size_t i = 0; i < bytes; ++i) constant[i] = static_cast<std::byte>(i % 60 + 1);
    GraphNodeDescription node;
    node.constant = constant;
    description_.nodes.push_back(std::move(node));
    return static_cast<uint32_t>(description_.nodes.size() - 1);
  }
  void Input(uint32_t node, uint32_t port = 0) {
    description_.input_edges.push_back({"", {description_.input_count++, 0}, {node, port}});
  }
  void Edge(uint32_t from, uint32_t output, uint32_t to, uint32_t input) {
    description_.intermediate_edges.push_back({"", {from, output}, {to, input}});
  }
  void Output(uint32_t node, uint32_t port = 0) {
    description_.output_edges.push_back({"", {node, port}, {description_.output_count++, 0}});
  }

  Result Run(const char* without) {
    Graph graph;
    Status status = BuildGraph(description_, &graph);
    EXPECT_TRUE(status.ok()) << status.message();
    const auto inputs = graph.inputs;
    const auto outputs = graph.outputs;
    LoweredOperator lowered;
    status = LowerGraph(std::move(graph), LowerContext{}, without, &lowered);
    EXPECT_TRUE(status.ok()) << status.message();
    if (!status.ok()) return {};

    Result result;
    result.explanation = lowered.explanation;
    std::mt19937 random(1);
    std::vector<std::vector<float>> content;
    std::vector<Buffer> in, out;
    for (const GraphInput& input : inputs) {
      auto& floats = content.emplace_back(input.bytes / sizeof(float));
      for (float& x : floats) x = static_cast<float>(random() % 256) / 16 - 8;
      in.push_back({reinterpret_cast<std::byte*>(floats.data()), input.bytes});
    }
    result.outputs.reserve(outputs.size());
    for (const GraphOutput& output : outputs) {
      auto& bytes = result.outputs.emplace_back(output.bytes, std::byte{0xA5});
      out.push_back({bytes.data(), bytes.size()});
    }
    const Kernel& kernel = *lowered.kernel;
    std::vector<std::max_align_t> persistent(kernel.persistent_bytes() / sizeof(std::max_align_t) + 1);
    std::vector<std::max_align_t> temporary(kernel.temporary_bytes() / sizeof(std::max_align_t) + 1);
    KernelArguments arguments;
    arguments.inputs = in;
    arguments.outputs = out;
    arguments.persistent = {reinterpret_cast<std::byte*>(persistent.data()), kernel.persistent_bytes()};
    arguments.temporary = {reinterpret_cast<std::byte*>(temporary.data()), kernel.temporary_bytes()};
    testing::Initialize(kernel, arguments);
    status = kernel.Run(arguments);
    EXPECT_TRUE(status.ok()) << status.message();
    return result;
  }
  Result RunBoth() {
    const Result without = Run("all"), with = Run("fuse,activation"), everything = Run("");
    EXPECT_EQ(with.outputs, without.outputs) << with.explanation;
    EXPECT_EQ(everything.outputs, without.outputs) << everything.explanation;
    return with;
  }

  GraphDescription description_;
  std::deque<std::vector<std::byte>> constants_;
};

TEST_F(Graphs, ReadThroughATranspose) {
  const uint32_t transpose = Identity(Strided({5, 7}, {1, 5}), Packed({5, 7}));
  const uint32_t reshaped = Negate(Packed({5, 7, 1}), Packed({5, 7, 1}));
  Input(transpose);
  Edge(transpose, 0, reshaped, 0);
  Output(reshaped);
  const Result result = RunBoth();
  EXPECT_TRUE(result.Says("node 0 (ELEMENT_WISE_IDENTITY): a view, nothing is moved"));
  EXPECT_FALSE(result.Runs("node 0 (ELEMENT_WISE_IDENTITY)"));
}

TEST_F(Graphs, ReadThroughSplitSliceAndBroadcast) {
  const uint32_t split =
      Node("SPLIT",
           {Packed({4, 6}), 3u, std::vector<TensorDesc>{Packed({4, 2}), Packed({4, 3}), Packed({4, 1})}, 1u});
  const uint32_t slice =
      Node("SLICE", {Packed({4, 3}), Packed({2, 2}), 2u, Numbers{1, 0}, Numbers{2, 2}, Numbers{2, 2}});
  const uint32_t expand = Identity(Strided({2, 2, 3}, {2, 1, 0}), Packed({2, 2, 3}));
  const uint32_t negate = Negate(Packed({2, 2, 3}), Packed({2, 2, 3}));
  const uint32_t other = Negate(Packed({4, 2}), Packed({4, 2}));
  Input(split);
  Edge(split, 1, slice, 0);
  Edge(slice, 0, expand, 0);
  Edge(expand, 0, negate, 0);
  Edge(split, 0, other, 0);
  Output(negate);
  Output(other);
  const Result result = RunBoth();
  EXPECT_FALSE(result.Runs("node 0 (SPLIT)"));
  EXPECT_FALSE(result.Runs("node 1 (SLICE)"));
  EXPECT_FALSE(result.Runs("node 2 (ELEMENT_WISE_IDENTITY)"));
}

TEST_F(Graphs, PartsOfASplitThatAreGraphOutputsAreCopied) {
  const uint32_t split =
      Node("SPLIT", {Packed({4, 6}), 2u, std::vector<TensorDesc>{Packed({4, 2}), Packed({4, 4})}, 1u});
  const uint32_t negate = Negate(Packed({4, 4}), Packed({4, 4}));
  Input(split);
  Edge(split, 1, negate, 0);
  Output(split, 0);
  Output(negate);
  EXPECT_TRUE(RunBoth().Says("node 0 (SPLIT): a view but for 1 of 2 parts"));
}

TEST_F(Graphs, BackwardsIsNoView) {
  const uint32_t slice =
      Node("SLICE1", {Packed({8}), Packed({8}), 1u, Numbers{0}, Numbers{8}, std::vector<int32_t>{-1}});
  const uint32_t negate = Negate(Packed({8}), Packed({8}));
  Input(slice);
  Edge(slice, 0, negate, 0);
  Output(negate);
  EXPECT_TRUE(RunBoth().Runs("node 0 (SLICE1)"));
}

TEST_F(Graphs, TransposesIntoProducts) {
  const uint32_t heads = Identity(Strided({1, 12, 64, 32}, {0, 32, 384, 1}), Packed({1, 12, 64, 32}));
  const uint32_t keys = Identity(Strided({1, 12, 32, 64}, {0, 32, 1, 384}), Packed({1, 12, 32, 64}));
  const uint32_t product = Gemm(Packed({1, 12, 64, 32}), Packed({1, 12, 32, 64}), Packed({1, 12, 64, 64}));
  Input(heads);
  Input(keys);
  Edge(heads, 0, product, 0);
  Edge(keys, 0, product, 1);
  Output(product);
  const Result result = RunBoth();
  EXPECT_FALSE(result.Runs("node 0 (ELEMENT_WISE_IDENTITY)")) << result.explanation;
  EXPECT_FALSE(result.Runs("node 1 (ELEMENT_WISE_IDENTITY)")) << result.explanation;
}

TEST_F(Graphs, AReshapedResultIsWrittenAtOnce) {
  const uint32_t product = Gemm(Packed({1, 1, 8, 8}), Packed({1, 1, 8, 8}), Packed({1, 1, 8, 8}));
  const uint32_t reshape = Identity(Packed({4, 16}), Packed({4, 16}));
  const uint32_t negate = Negate(Packed({64}), Packed({64}));
  Input(product, 0);
  Input(product, 1);
  Edge(product, 0, reshape, 0);
  Edge(product, 0, negate, 0);
  Output(reshape);
  Output(negate);
  EXPECT_FALSE(RunBoth().Runs("node 1 (ELEMENT_WISE_IDENTITY)"));
}

TEST_F(Graphs, AProductIsNotWrittenAcross) {
  const uint32_t product = Gemm(Packed({1, 1, 8, 6}), Packed({1, 1, 6, 8}), Packed({1, 1, 8, 8}));
  const uint32_t transpose = Identity(Strided({8, 8}, {1, 8}), Packed({8, 8}));
  Input(product, 0);
  Input(product, 1);
  Edge(product, 0, transpose, 0);
  Output(transpose);
  EXPECT_TRUE(RunBoth().Runs("node 1 (ELEMENT_WISE_IDENTITY)"));
}

TEST_F(Graphs, JoinedWhereTheyAreWritten) {
  for (const uint32_t axis : {0u, 1u}) {
    description_ = {};
    const TensorDesc joined = axis == 0 ? Packed({12, 5}) : Packed({4, 15});
    const uint32_t first = Negate(Packed({4, 5}), Packed({4, 5}));
    const uint32_t second = Negate(Packed({4, 5}), Packed({4, 5}));  // reads the first
    const std::vector<TensorDesc> parts(3, Packed({4, 5}));
    const uint32_t join = Node("JOIN", {3u, parts, joined, axis});
    const uint32_t whole = Negate(joined, joined);
    Input(first);
    Edge(first, 0, second, 0);
    Edge(first, 0, join, 0);
    Edge(second, 0, join, 1);
    Input(join, 2);
    Edge(join, 0, whole, 0);
    Output(whole);
    Output(second);  // so that it has two readers, one of them the client
    const Result result = RunBoth();
    EXPECT_TRUE(result.Says("node 2 (JOIN): 1 of 3 parts are written where they are joined"))
        << result.explanation;
  }
}

// The part's reader writes another part: it must not wait for the writers of other parts.
TEST_F(Graphs, PartsMadeOfAPart) {
  const uint32_t first = Negate(Packed({4, 5}), Packed({4, 5}));
  const uint32_t join = Node("JOIN", {3u, std::vector<TensorDesc>(3, Packed({4, 5})), Packed({4, 15}), 1u});
  Input(first);
  Edge(first, 0, join, 0);
  for (const uint32_t part : {1u, 2u}) {
    const uint32_t reduce = Node("REDUCE", {7u, Packed({4, 5}), Packed({4, 1}), 1u, Numbers{1}});
    const uint32_t add = Add(Total(Strided({4, 5}, {1, 0}), 16), Packed({4, 5}), Packed({4, 5}));
    Edge(first, 0, reduce, 0);
    Edge(reduce, 0, add, 0);
    Edge(first, 0, add, 1);
    Edge(add, 0, join, part);
  }
  Output(join);
  const Result result = RunBoth();
  EXPECT_TRUE(result.Says("3 of 3 parts are written where they are joined")) << result.explanation;
}

TEST_F(Graphs, JoinsOfJoins) {
  const std::vector<TensorDesc> halves(2, Packed({2, 3}));
  const std::vector<TensorDesc> wholes(2, Packed({2, 6}));
  uint32_t joins[2];
  for (uint32_t& join : joins) {
    const uint32_t a = Negate(Packed({2, 3}), Packed({2, 3}));
    const uint32_t b = Negate(Packed({2, 3}), Packed({2, 3}));
    join = Node("JOIN", {2u, halves, Packed({2, 6}), 1u});
    Input(a);
    Edge(a, 0, b, 0);
    Edge(a, 0, join, 0);
    Edge(b, 0, join, 1);
  }
  const uint32_t last = Node("JOIN", {2u, wholes, Packed({4, 6}), 0u});
  Edge(joins[0], 0, last, 0);
  Edge(joins[1], 0, last, 1);
  Output(last);
  const Result result = RunBoth();
  EXPECT_FALSE(result.Says("(JOIN): cpu.")) << result.explanation;
}

TEST_F(Graphs, TheSameTwiceIsJoinedByCopies) {
  const uint32_t negate = Negate(Packed({2, 3}), Packed({2, 3}));
  const uint32_t join = Node("JOIN", {2u, std::vector<TensorDesc>(2, Packed({2, 3})), Packed({2, 6}), 1u});
  Input(negate);
  Edge(negate, 0, join, 0);
  Edge(negate, 0, join, 1);
  Output(join);
  EXPECT_TRUE(RunBoth().Runs("node 1 (JOIN)"));
}

TEST_F(Graphs, ConstantsAreComputedAtOnce) {
  const uint32_t constant = Constant(24);
  const uint32_t transpose = Identity(Total(Strided({3, 2}, {1, 3}), 24), Packed({3, 2}));
  const uint32_t negate = Negate(Packed({3, 2}), Packed({3, 2}));
  const uint32_t add = Add(Packed({3, 2}), Packed({3, 2}), Packed({3, 2}));
  Edge(constant, 0, transpose, 0);
  Edge(transpose, 0, negate, 0);
  Edge(negate, 0, add, 0);
  Input(add, 1);
  Output(add);
  const Result result = RunBoth();
  EXPECT_TRUE(result.Says("node 2 (ELEMENT_WISE_NEGATE): known when the graph is compiled"));
  EXPECT_FALSE(result.Runs("node 2 (ELEMENT_WISE_NEGATE)"));
}

TEST_F(Graphs, CastsThatUndoEachOther) {
  const auto kSmall = DataType::kInt8;
  const uint32_t wide = Node("CAST", {Packed({4, 6}, kSmall), Packed({4, 6})});
  const uint32_t narrow = Node("CAST", {Strided({6, 4}, {1, 6}), Packed({6, 4}, kSmall)});
  const uint32_t negate = Negate(Packed({6, 4}, kSmall), Packed({6, 4}, kSmall));
  Input(wide);
  Edge(wide, 0, narrow, 0);
  Edge(narrow, 0, negate, 0);
  Output(negate);
  const Result result = RunBoth();
  EXPECT_FALSE(result.Runs("node 0 (CAST)")) << result.explanation;
  EXPECT_FALSE(result.Runs("node 1 (CAST)")) << result.explanation;
}

TEST_F(Graphs, CastsThatLoseSomethingStay) {
  const uint32_t narrow = Node("CAST", {Packed({24}), Packed({24}, DataType::kFloat16)});
  const uint32_t wide = Node("CAST", {Packed({24}, DataType::kFloat16), Packed({24})});
  Input(narrow);
  Edge(narrow, 0, wide, 0);
  Output(wide);
  EXPECT_FALSE(RunBoth().Says("undoes"));
}

}  // namespace
}  // namespace anydml
