// Products of the same matrix are joined into one product, which gives the results of the separate products.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <random>

#include "base/half.h"
#include "graph/passes/graph_under_test.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

enum class Weights { kConstant, kOwned, kBound };
enum class Added { kNothing, kRow, kMatrix };  // by an operator after the product, or by the product

struct LayerShape {
  DataType type = DataType::kFloat32;
  uint32_t rows = 6, steps = 16;
  std::vector<uint32_t> columns = {16, 16, 16};
  Weights weights = Weights::kOwned;
  Added added = Added::kRow;
  bool transposes = false;  // weights
  bool across = false;      // weights are stored in column-major order
  uint32_t heads = 0;       // the first three are queries, keys and values
};

// A product of x for each entry of columns, and their consumer: attention, or halves.
class LayerGraph {
 public:
  using Change = std::function<void(size_t part, OperatorDesc*)>;

  explicit LayerGraph(LayerShape shape, const Change& change = {}) : shape_(std::move(shape)) {
    const TensorDesc x = Packed(shape_.type, {shape_.rows, shape_.steps});
    const uint32_t input = test.Input(Content(ElementCount(x), 1));
    for (size_t i = 0; i < shape_.columns.size(); ++i) results.push_back(Part(x, input, i, change));
    if (shape_.heads != 0) {
      Attend();
    } else {
      for (size_t i = 0; i < results.size(); ++i) Halve(i);
    }
    for (GraphOutput& output : test.graph.outputs) output.element_bytes = BitSize(shape_.type) / 8;
  }

  // The consumer of result i.
  void Halve(size_t i) {
    const TensorDesc y = Packed(shape_.type, {1, shape_.rows, shape_.columns[i]});
    test.Output(
        test.Node(MakeDesc("ELEMENT_WISE_MULTIPLY", {{"ATensor", y}, {"BTensor", y}, {"OutputTensor", y}}),
                  {results[i], results[i]})[0]);
  }

  GraphUnderTest test;
  std::vector<uint32_t> results;  // values
  std::vector<uint32_t> weights;

 private:
  Bytes Content(uint64_t count, float most) {
    const uint64_t width = BitSize(shape_.type) / 8;
    Bytes bytes((count * width + 3) / 4 * 4);
    std::uniform_real_distribution<float> any(-most, most);
    for (size_t i = 0; i < count; ++i) {
      const float number = any(random_);
      const Half half = ToHalf(number);
      std::memcpy(&bytes[i * width], width == 2 ? static_cast<const void*>(&half.bits) : &number, width);
    }
    return bytes;
  }
  uint32_t Known(TensorDesc* tensor, float most) {
    const Bytes content = Content(ElementSpan(*tensor), most);
    if (shape_.weights == Weights::kConstant) return test.Constant(content);
    if (shape_.weights == Weights::kBound) return test.Input(content);
    tensor->owned_by_dml = true;
    return test.Owned(content);
  }

  uint32_t Part(const TensorDesc& x, uint32_t input, size_t i, const Change& change) {
    const uint32_t columns = shape_.columns[i], rows = shape_.rows, steps = shape_.steps;
    std::vector<uint32_t> sizes = {steps, columns};
    if (shape_.transposes) std::swap(sizes[0], sizes[1]);
    TensorDesc b = shape_.across ? Strided(shape_.type, sizes, {1, sizes[0]}) : Packed(shape_.type, sizes);
    const TensorDesc y = Packed(shape_.type, {rows, columns});
    weights.push_back(Known(&b, 1 / static_cast<float>(steps)));
    OperatorDesc product = Product(x, b, y, shape_.transposes);
    uint32_t matrix = kNoValue;
    if (shape_.added == Added::kMatrix) {
      TensorDesc row = Strided(shape_.type, {rows, columns}, {0, 1});
      matrix = Known(&row, 1);
      product.fields[static_cast<size_t>(FindField(*product.schema, "CTensor"))] = row;
      product.fields[static_cast<size_t>(FindField(*product.schema, "Beta"))] = 0.5f;
    }
    if (change) change(i, &product);
    const uint32_t result = test.Node(product, {input, weights.back(), matrix})[0];
    if (shape_.added != Added::kRow) return result;
    const TensorDesc seen = Packed(shape_.type, {1, rows, columns});
    TensorDesc row = Strided(shape_.type, {1, rows, columns}, {0, 0, 1});
    const uint32_t added = Known(&row, 1);
    row.owned_by_dml = false;
    // The order of the two does not matter.
    return i % 2 == 0 ? test.Node(MakeDesc("ELEMENT_WISE_ADD",
                                           {{"ATensor", seen}, {"BTensor", row}, {"OutputTensor", seen}}),
                                  {result, added})[0]
                      : test.Node(MakeDesc("ELEMENT_WISE_ADD",
                                           {{"ATensor", row}, {"BTensor", seen}, {"OutputTensor", seen}}),
                                  {added, result})[0];
  }

  void Attend() {
    const uint32_t rows = shape_.rows, width = shape_.columns[0], size = width / shape_.heads;
    const TensorDesc words =
        Strided(shape_.type, {1, shape_.heads, rows, size}, {rows * width, size, width, 1});
    const TensorDesc logits = Packed(shape_.type, {1, shape_.heads, rows, rows});
    const TensorDesc mixed = Packed(shape_.type, {1, shape_.heads, rows, size});
    const uint32_t product =
        test.Node(Product(words, words, logits, true), {results[0], results[1], kNoValue})[0];
    const uint32_t chances = test.Node(
        MakeDesc("ACTIVATION_SOFTMAX1",
                 {{"InputTensor", logits}, {"OutputTensor", logits}, {"Axes", std::vector<uint32_t>{3}}}),
        {product})[0];
    test.Output(test.Node(Product(logits, words, mixed), {chances, results[2], kNoValue})[0]);
  }

  LayerShape shape_;
  std::mt19937 random_{1};
};

bool IsJoined(const Result& result) {
  return result.explanation.find("are one product") != std::string::npos;
}

size_t KernelsOf(const Result& result) {
  return 1 + static_cast<size_t>(std::count(result.made_of.begin(), result.made_of.end(), ','));
}

void ExpectClose(const Result& got, const Result& want, DataType type) {
  ASSERT_EQ(got.outputs.size(), want.outputs.size());
  const size_t width = BitSize(type) / 8;
  const auto read = [&](const Bytes& bytes, size_t at) {
    Half half;
    float number = 0;
    std::memcpy(width == 2 ? static_cast<void*>(&half.bits) : &number, &bytes[at], width);
    return width == 2 ? ToFloat(half) : number;
  };
  for (size_t o = 0; o < want.outputs.size(); ++o) {
    ASSERT_EQ(got.outputs[o].size(), want.outputs[o].size());
    for (size_t i = 0; i + width <= want.outputs[o].size(); i += width) {
      // For values up to 4: FLOAT16 logits and weights are rounded one by one.
      ASSERT_NEAR(read(got.outputs[o], i), read(want.outputs[o], i),
                  type == DataType::kFloat16 ? 0x1p-7 : 0x1p-18)
          << "output " << o << ", element " << i / width << "\n"
          << got.explanation;
    }
  }
}

void ExpectJoined(const LayerShape& shape, size_t kernels = 0) {
  const LayerGraph graph(shape);
  const Result want = RunGraph(graph.test, "all");
  const Result got = RunGraph(graph.test, "");
  EXPECT_TRUE(IsJoined(got)) << got.explanation;
  if (kernels != 0) {
    EXPECT_EQ(KernelsOf(got), kernels) << got.explanation;
  }
  ExpectClose(got, want, shape.type);
  const Result without = RunGraph(graph.test, "products");
  EXPECT_FALSE(IsJoined(without)) << without.explanation;
  ExpectClose(without, want, shape.type);
  for (const char* other : {"views", "attention", "activation", "fuse"}) {
    ExpectClose(RunGraph(graph.test, other), want, shape.type);
  }
}

void ExpectApart(const LayerGraph& graph, DataType type = DataType::kFloat32) {
  const Result got = RunGraph(graph.test, "");
  EXPECT_FALSE(IsJoined(got)) << got.explanation;
  ExpectClose(got, RunGraph(graph.test, "all"), type);
}

TEST(JoinProducts, QueriesKeysAndValues) {
  for (const Weights weights : {Weights::kOwned, Weights::kConstant}) {
    for (const Added added : {Added::kNothing, Added::kRow, Added::kMatrix}) {
      // Becomes one product and attention.
      ExpectJoined({.weights = weights, .added = added, .heads = 2}, 2);
      // A sum is rounded before a row is added, so that the addition needs a kernel of its own.
      ExpectJoined({.type = DataType::kFloat16, .weights = weights, .added = added, .heads = 2},
                   added == Added::kRow ? 3 : 2);
    }
  }
}

TEST(JoinProducts, WeightsLieAsTheyAre) {
  for (const bool transposes : {false, true}) {
    for (const bool across : {false, true}) {
      for (const uint32_t steps : {1u, 3u, 40u}) {
        ExpectJoined({.steps = steps, .columns = {5, 1, 12}, .transposes = transposes, .across = across});
      }
    }
  }
}

TEST(JoinProducts, RowsAndColumnsOfAnyNumber) {
  for (const uint32_t rows : {1u, 2u, 5u, 70u}) {
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      ExpectJoined({.type = type, .rows = rows, .columns = {24, 8}});
      ExpectJoined({.type = type, .rows = rows, .columns = {1, 1, 1, 1}});
      ExpectJoined({.type = type, .rows = rows, .columns = {3, 200}, .added = Added::kNothing});
    }
  }
}

TEST(JoinProducts, WeightsThatAreBoundForEveryRunStay) {
  ExpectApart(LayerGraph({.weights = Weights::kBound}));
}

TEST(JoinProducts, OthersStay) {
  const auto set = [](size_t part, const char* field, FieldValue value) {
    return [part, field, value](size_t i, OperatorDesc* desc) {
      if (i == part) desc->fields[static_cast<size_t>(FindField(*desc->schema, field))] = value;
    };
  };
  ExpectApart(LayerGraph({.columns = {16, 16}}, set(0, "Alpha", 0.5f)));
  ExpectApart(LayerGraph({.columns = {16, 16}, .added = Added::kMatrix}, set(1, "Beta", 0.25f)));
  const auto relu = std::make_shared<const OperatorDesc>(MakeDesc("ACTIVATION_RELU", {}));
  ExpectApart(LayerGraph({.columns = {16, 16}}, set(1, "FusedActivation", relu)));
  // Two of three.
  const LayerGraph some({}, set(1, "Alpha", 0.5f));
  const Result got = RunGraph(some.test, "");
  EXPECT_NE(got.explanation.find("products: node 0 (GEMM) + node 4 (GEMM) are one product"),
            std::string::npos)
      << got.explanation;
  ExpectClose(got, RunGraph(some.test, "all"), DataType::kFloat32);
}

// Matrices that are added with a factor of 0 are ignored.
TEST(JoinProducts, MatricesThatAreNotAdded) {
  const LayerGraph graph({.added = Added::kMatrix}, [](size_t, OperatorDesc* desc) {
    desc->fields[static_cast<size_t>(FindField(*desc->schema, "Beta"))] = 0.0f;
  });
  const Result got = RunGraph(graph.test, "");
  EXPECT_TRUE(IsJoined(got)) << got.explanation;
  ExpectClose(got, RunGraph(graph.test, "all"), DataType::kFloat32);
}

TEST(JoinProducts, GraphOutputsStay) {
  LayerGraph graph({.columns = {16, 16}});
  graph.test.Output(graph.results[1]);
  graph.test.graph.outputs.back().element_bytes = 4;
  ExpectApart(graph);
}

TEST(JoinProducts, WeightsThatOthersReadStay) {
  LayerGraph graph({.columns = {16, 16}});
  const TensorDesc tensor = Packed(DataType::kFloat32, {16, 16});
  graph.test.Output(
      graph.test.Node(MakeDesc("ELEMENT_WISE_NEGATE", {{"InputTensor", tensor}, {"OutputTensor", tensor}}),
                      {graph.weights[0]})[0]);
  graph.test.graph.outputs.back().element_bytes = 4;
  ExpectApart(graph);
}

// Fusing an activation into a product saves more than joining products.
TEST(JoinProducts, ActivationsStayWithTheirProducts) {
  LayerGraph graph({.columns = {16, 16}});
  const TensorDesc y = Packed(DataType::kFloat32, {6, 16});
  auto& nodes = graph.test.graph.nodes;
  for (size_t i = 0; i < 2; ++i) {  // instead of the multiplications
    GraphNode& node = nodes[nodes.size() - 1 - i];
    const OperatorDesc relu = MakeDesc("ACTIVATION_RELU", {{"InputTensor", y}, {"OutputTensor", y}});
    node.work = GraphOperator{FindImplementation(relu.schema->type), relu};
    node.inputs.resize(1);
  }
  ExpectApart(graph);
}

TEST(JoinProducts, PackedWeightsAreNotInMemoryTwice) {
  const LayerGraph graph({.rows = 70, .steps = 64, .columns = {64, 64, 64}});
  LoweredOperator joined, apart;
  ASSERT_TRUE(LowerGraph(graph.test.graph, {}, "", &joined).ok());
  ASSERT_TRUE(LowerGraph(graph.test.graph, {}, "products", &apart).ok());
  EXPECT_NE(joined.explanation.find("are one product"), std::string::npos);
  constexpr uint64_t kWeights = 3 * 64 * 64 * 4;
  EXPECT_GE(joined.kernel->persistent_bytes(), kWeights);
  // Panels are padded, and added rows begin at aligned addresses.
  EXPECT_LE(joined.kernel->persistent_bytes(), kWeights + kWeights / 4 + 4096);
  for (uint32_t i = 1; i < graph.test.graph.inputs.size(); ++i)
    EXPECT_TRUE(joined.kernel->packs_input(i)) << i;
}

}  // namespace
}  // namespace anydml::testing
