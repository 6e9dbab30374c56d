// Graphs with passes give the bytes of graphs without.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <numeric>
#include <random>
#include <tuple>

#include "base/half.h"
#include "graph/passes/fused_graph.h"

namespace anydml::testing {
namespace {

template <typename T>
std::vector<T> ElementsOf(const Bytes& bytes, size_t count) {
  std::vector<T> elements(count);
  std::memcpy(elements.data(), bytes.data(), count * sizeof(T));
  return elements;
}

// The rounding functions against base/half.h: all FLOAT16 numbers, and numbers around and between them.
TEST(FuseElements, FunctionsOfHalves) {
  std::vector<uint32_t> numbers, halves;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    halves.push_back(bits);
    const auto number = std::bit_cast<uint32_t>(ToFloat(Half{static_cast<uint16_t>(bits)}));
    for (const uint32_t step : {0u, 1u, ~0u, 0xFFFu, 0x1000u, 0x1001u}) numbers.push_back(number + step);
  }
  const auto apply = [](ElementFunction function, Class from, Class to, const std::vector<uint32_t>& words) {
    ElementProblem problem;
    problem.rank = 1;
    problem.sizes[0] = words.size();
    problem.inputs = problem.outputs = {{.type = DataType::kUInt32, .strides = {1}}};
    const uint8_t at = problem.program.Load(0, Class::kU32);
    problem.program.Apply(function, from, {at});
    EXPECT_EQ(problem.program.instructions.back().to, to);
    problem.program.Store(0, at, Class::kU32);
    std::vector<std::vector<uint32_t>> results;
    for (const char* const name : {"cpu.tiles", "cpu.reference"}) {
      LoweredOperator lowered;
      EXPECT_TRUE(ChooseKernel(problem, {.implementation = name}, &lowered).ok());
      std::vector<uint32_t> in = words, out(words.size());
      const Buffer input = {reinterpret_cast<std::byte*>(in.data()), in.size() * 4};
      const Buffer output = {reinterpret_cast<std::byte*>(out.data()), out.size() * 4};
      EXPECT_TRUE(lowered.kernel->Run({.inputs = {&input, 1}, .outputs = {&output, 1}}).ok());
      results.push_back(std::move(out));
    }
    EXPECT_EQ(results[0], results[1]) << InfoOf(function).name;
    return results[0];
  };
  const auto is_nan = [](uint32_t bits) { return (bits & 0x7FFFFFFFu) > 0x7F800000u; };
  const auto from_bits = apply(ElementFunction::kHalfFromBits, Class::kU32, Class::kF32, halves);
  const auto to_bits = apply(ElementFunction::kHalfBits, Class::kF32, Class::kU32, numbers);
  const auto rounded = apply(ElementFunction::kRoundToHalf, Class::kF32, Class::kF32, numbers);
  const auto bits = apply(ElementFunction::kFloatBits, Class::kF32, Class::kU32, numbers);
  for (uint32_t i = 0; i < halves.size(); ++i) {
    ASSERT_EQ(from_bits[i], std::bit_cast<uint32_t>(ToFloat(Half{static_cast<uint16_t>(i)})));
  }
  for (size_t i = 0; i < numbers.size(); ++i) {
    const Half half = is_nan(numbers[i]) ? Half{0x7E00} : ToHalf(std::bit_cast<float>(numbers[i]));
    ASSERT_EQ(to_bits[i], half.bits) << numbers[i];
    ASSERT_EQ(rounded[i], std::bit_cast<uint32_t>(ToFloat(half))) << numbers[i];
    ASSERT_EQ(bits[i], is_nan(numbers[i]) ? 0x7FC00000u : numbers[i]);
  }
}

TEST(FuseElements, HalvesAreRoundedOnEveryEdge) {
  const TensorDesc tensor = Packed(DataType::kFloat16, {4});
  const auto halves = [](const std::vector<float>& numbers) {
    std::vector<uint16_t> bits;
    for (const float number : numbers) bits.push_back(ToHalf(number).bits);
    return BytesOf(bits);
  };
  GraphUnderTest test;
  const uint32_t a = test.Input(halves({2048, 65504, 1, 0x1p-24f}));
  const uint32_t b = test.Input(halves({1, 65504, 0x1p-11f, 0.5f}));
  const uint32_t sum = test.Node(Binary("ELEMENT_WISE_ADD", tensor, tensor, tensor), {a, b})[0];
  const uint32_t rest = test.Node(Binary("ELEMENT_WISE_SUBTRACT", tensor, tensor, tensor), {sum, a})[0];
  test.Output(rest);
  EXPECT_EQ(ExpectSame(test, 1).outputs[0], halves({0, INFINITY, 0, 0.5f}));
}

TEST(FuseElements, IntegersWrapOnEveryEdge) {
  const TensorDesc tensor = Packed(DataType::kInt8, {4});
  GraphUnderTest test;
  const uint32_t a = test.Input(BytesOf<int8_t>({100, -128, 7, -7}));
  const uint32_t doubled = test.Node(Binary("ELEMENT_WISE_ADD", tensor, tensor, tensor), {a, a})[0];
  const uint32_t quotient = test.Node(Binary("ELEMENT_WISE_DIVIDE", tensor, tensor, tensor), {doubled, a})[0];
  test.Output(quotient);
  EXPECT_EQ(ExpectSame(test, 1).outputs[0], BytesOf<int8_t>({0, 0, 2, 2}));
}

// To another type and back, losing what the intermediate type cannot represent.
TEST(FuseElements, CastsThereAndBack) {
  constexpr DataType kAll[] = {DataType::kFloat64, DataType::kFloat32, DataType::kFloat16, DataType::kInt64,
                               DataType::kUInt64,  DataType::kInt32,   DataType::kUInt32,  DataType::kInt16,
                               DataType::kUInt16,  DataType::kInt8,    DataType::kUInt8};
  std::mt19937_64 random(1);
  for (const DataType outer : kAll) {
    for (const DataType inner : kAll) {
      const TensorDesc a = Packed(outer, {40}), b = Packed(inner, {40});
      std::vector<uint64_t> words(40 * BitSize(outer) / 64);
      for (uint64_t& word : words) word = random() >> random() % 64;
      GraphUnderTest test;
      const uint32_t x = test.Input(BytesOf(words));
      const uint32_t there = test.Node(Unary("CAST", a, b), {x})[0];
      test.Output(test.Node(Unary("CAST", b, a), {there})[0]);
      const Result want = RunGraph(test, "all"), got = RunGraph(test, "");
      EXPECT_EQ(got.outputs, want.outputs) << static_cast<int>(outer) << " " << static_cast<int>(inner);
    }
  }
}

// The last function produces bits, which the store interprets as another number type.
TEST(FuseElements, BitsAreStoredAsTheNumbersThatTheyAre) {
  const TensorDesc floats = Packed(DataType::kFloat32, {4});
  const TensorDesc bytes = Packed(DataType::kUInt8, {4});
  GraphUnderTest test;
  const uint32_t x = test.Input(BytesOf<float>({-1, 2.5f, -300, NAN}));
  const uint32_t magnitude = test.Node(Unary("ELEMENT_WISE_ABS", floats, floats), {x})[0];
  test.Output(test.Node(Unary("CAST", floats, bytes), {magnitude})[0]);
  EXPECT_EQ(ExpectSame(test, 1).outputs[0], BytesOf<uint8_t>({1, 2, 255, 0}));
}

TEST(FuseElements, NeitherMovesNorLayoutsStayBetween) {
  const TensorDesc rows = Packed(DataType::kFloat32, {2, 3});
  const TensorDesc columns = Strided(DataType::kFloat32, {3, 2}, {1, 3});
  const TensorDesc turned = Packed(DataType::kFloat32, {3, 2});
  const TensorDesc flat = Packed(DataType::kFloat32, {6});
  GraphUnderTest test;
  const uint32_t a = test.Input(BytesOf<float>({1, 2, 3, 4, 5, 6}));
  const uint32_t negative = test.Node(Unary("ELEMENT_WISE_NEGATE", rows, rows), {a})[0];
  const uint32_t moved = test.Node(Unary("ELEMENT_WISE_IDENTITY", columns, turned), {negative})[0];
  const uint32_t exp = test.Node(Unary("ELEMENT_WISE_EXP", flat, flat), {moved})[0];
  test.Output(exp);
  test.Output(moved);
  const Result result = ExpectSame(test, 1);
  EXPECT_EQ(ElementsOf<float>(result.outputs[1], 6), (std::vector<float>{-1, -4, -2, -5, -3, -6}));
}

TEST(FuseElements, WhatOthersReadIsStored) {
  const TensorDesc tensor = Packed(DataType::kFloat32, {5});
  GraphUnderTest test;
  const uint32_t a = test.Input(BytesOf<float>({1, -2, 3, -4, 5}));
  const uint32_t relu = test.Node(Unary("ACTIVATION_RELU", tensor, tensor), {a})[0];
  const uint32_t sum = test.Node(Binary("ELEMENT_WISE_ADD", tensor, tensor, tensor), {relu, a})[0];
  const uint32_t product = test.Node(Binary("ELEMENT_WISE_MULTIPLY", tensor, tensor, tensor), {sum, relu})[0];
  test.Output(sum);
  test.Output(product);
  const Result result = ExpectSame(test, 1);
  EXPECT_EQ(ElementsOf<float>(result.outputs[0], 5), (std::vector<float>{2, -2, 6, -4, 10}));
  EXPECT_EQ(ElementsOf<float>(result.outputs[1], 5), (std::vector<float>{2, 0, 18, 0, 50}));
}

// a -> something else -> b, and a -> b: fused, the node would depend on its own result.
TEST(FuseElements, NothingStandsBetween) {
  const TensorDesc tensor = Packed(DataType::kFloat32, {1, 1, 1, 4});
  GraphUnderTest test;
  const uint32_t x = test.Input(BytesOf<float>({1, 2, 3, 4}));
  const uint32_t a = test.Node(Unary("ELEMENT_WISE_NEGATE", tensor, tensor), {x})[0];
  const OperatorDesc reverse = MakeDesc("CUMULATIVE_SUMMATION", {{"InputTensor", tensor},
                                                                 {"OutputTensor", tensor},
                                                                 {"Axis", uint32_t{3}},
                                                                 {"AxisDirection", uint32_t{0}},
                                                                 {"HasExclusiveSum", uint32_t{0}}});
  const uint32_t other = test.Node(reverse, {a})[0];
  const uint32_t b = test.Node(Binary("ELEMENT_WISE_ADD", tensor, tensor, tensor), {a, other})[0];
  test.Output(b);
  const Result result = ExpectSame(test, 3);
  EXPECT_EQ(ElementsOf<float>(result.outputs[0], 4), (std::vector<float>{-2, -5, -9, -14}));
}

// The previous contents of a graph output are read before the graph writes there.
TEST(FuseElements, ReadersStayBeforeLaterWriters) {
  const TensorDesc tensor = Packed(DataType::kInt32, {4});
  GraphUnderTest test;
  const uint32_t x = test.Input(BytesOf<int32_t>({1, 2, 3, 4}));
  const uint32_t sum = test.Node(Binary("ELEMENT_WISE_ADD", tensor, tensor, tensor), {x, x})[0];
  const uint32_t product = test.Node(Binary("ELEMENT_WISE_MULTIPLY", tensor, tensor, tensor), {sum, x})[0];
  test.Output(product);
  test.graph.nodes[0].inputs[0].value = product;
  const auto before = static_cast<int32_t>(0x01010101u * kGap);
  EXPECT_EQ(ElementsOf<int32_t>(ExpectSame(test, 2).outputs[0], 1)[0], before + 1);
}

TEST(FuseElements, LongChainsAreOneProgram) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    const TensorDesc tensor = Packed(type, {1000});
    GraphUnderTest test;
    Bytes bytes(tensor.total_bytes);
    std::mt19937 random(7);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    const uint32_t x = test.Input(bytes);
    uint32_t at = x;
    for (int i = 0; i < 20; ++i) {
      at = i % 2 == 0 ? test.Node(Binary("ELEMENT_WISE_ADD", tensor, tensor, tensor), {at, x})[0]
                      : test.Node(Unary("ACTIVATION_TANH", tensor, tensor), {at})[0];
    }
    test.Output(at);
    ExpectSame(test, 1);
  }
}

// ---- Random trees

struct Kind {
  const char* name;
  int inputs;
  enum { kSame, kTruth, kCast, kChoice } result = kSame;
};
constexpr Kind kFloatKinds[] = {{"ELEMENT_WISE_ADD", 2},
                                {"ELEMENT_WISE_SUBTRACT", 2},
                                {"ELEMENT_WISE_MULTIPLY", 2},
                                {"ELEMENT_WISE_DIVIDE", 2},
                                {"ELEMENT_WISE_MAX", 2},
                                {"ELEMENT_WISE_IDENTITY", 1},
                                {"ELEMENT_WISE_ABS", 1},
                                {"ELEMENT_WISE_NEGATE", 1},
                                {"ELEMENT_WISE_EXP", 1},
                                {"ELEMENT_WISE_SQRT", 1},
                                {"ACTIVATION_RELU", 1},
                                {"ACTIVATION_TANH", 1},
                                {"ACTIVATION_SIGMOID", 1},
                                {"ELEMENT_WISE_FLOOR", 1},
                                {"ELEMENT_WISE_LOGICAL_GREATER_THAN", 2, Kind::kTruth},
                                {"ELEMENT_WISE_IS_NAN", 1, Kind::kTruth},
                                {"CAST", 1, Kind::kCast},
                                {"ELEMENT_WISE_IF", 3, Kind::kChoice}};
constexpr Kind kIntegerKinds[] = {{"ELEMENT_WISE_ADD", 2},
                                  {"ELEMENT_WISE_SUBTRACT", 2},
                                  {"ELEMENT_WISE_MULTIPLY", 2},
                                  {"ELEMENT_WISE_DIVIDE", 2},
                                  {"ELEMENT_WISE_MAX", 2},
                                  {"ELEMENT_WISE_IDENTITY", 1},
                                  {"ELEMENT_WISE_BIT_XOR", 2},
                                  {"ELEMENT_WISE_BIT_NOT", 1},
                                  {"ELEMENT_WISE_LOGICAL_EQUALS", 2, Kind::kTruth},
                                  {"CAST", 1, Kind::kCast},
                                  {"ELEMENT_WISE_IF", 3, Kind::kChoice}};
constexpr DataType kTypes[] = {DataType::kFloat32, DataType::kFloat16, DataType::kFloat32, DataType::kFloat16,
                               DataType::kInt32,   DataType::kUInt32,  DataType::kInt16,   DataType::kUInt16,
                               DataType::kInt8,    DataType::kUInt8,   DataType::kInt64,   DataType::kUInt64};

class RandomTree {
 public:
  explicit RandomTree(uint32_t seed) : random_(seed) {
    const uint32_t rank = 1 + Below(4);
    for (uint32_t d = 0; d < rank; ++d) sizes_.push_back(Below(8) == 0 ? 1 + Below(300) : 1 + Below(9));
    while (ElementCount(Packed(DataType::kInt8, sizes_)) > 3000) sizes_[Below(rank)] = 1 + Below(4);
    const uint32_t nodes = 2 + Below(14);
    while (test_.graph.nodes.size() < nodes) AddNode();
    for (uint32_t i = 0; i < tensors_.size(); ++i) {
      const auto [value, tensor, read] = tensors_[i];
      if (!read || Below(6) == 0) test_.Output(value);
    }
  }
  const GraphUnderTest& test() const { return test_; }

 private:
  struct Tensor {
    uint32_t value;
    TensorDesc desc;
    bool read = false;
  };

  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }
  template <typename T, size_t kCount>
  const T& Any(const T (&list)[kCount]) {
    return list[Below(kCount)];
  }

  TensorDesc NewTensor(DataType type, bool may_repeat) {
    TensorDesc tensor = Packed(type, sizes_);
    if (Below(3) != 0) return tensor;
    std::vector<uint32_t> order(sizes_.size());
    std::iota(order.begin(), order.end(), 0u);
    if (Below(2) == 0) std::shuffle(order.begin(), order.end(), random_);
    uint32_t stride = Below(4) == 0 ? 2 : 1;
    for (const uint32_t d : order) {
      const bool repeats = may_repeat && Below(3) == 0;
      tensor.strides[d] = repeats ? 0 : stride;
      if (!repeats) stride = stride * sizes_[d] + (Below(4) == 0 ? 3 : 0);
    }
    tensor.total_bytes = MinimumTotalBytes(tensor);
    return tensor;
  }

  Bytes Content(const TensorDesc& tensor) {
    Bytes bytes(tensor.total_bytes);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_());
    // NaNs of all kinds among ordinary numbers.
    if (tensor.type == DataType::kFloat32) {
      for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
        if (Below(16) == 0) continue;
        const float number = (static_cast<float>(Below(2001)) - 1000) / static_cast<float>(1 + Below(700));
        std::memcpy(&bytes[i], &number, 4);
      }
    }
    return bytes;
  }

  // A tensor of the type, or of a type of the same width: an earlier result or a graph input.
  uint32_t Feed(DataType type, TensorDesc* desc) {
    for (int tries = 0; tries < 4 && !tensors_.empty(); ++tries) {
      const auto recent = static_cast<uint32_t>(std::min<size_t>(tensors_.size(), 4));
      Tensor& tensor = tensors_[tensors_.size() - 1 - Below(recent)];
      if (BitSize(tensor.desc.type) != BitSize(type)) continue;
      if (tensor.desc.type != type && Below(4) != 0) continue;
      *desc = tensor.desc;
      desc->type = type;
      const TensorDesc packed = Packed(type, sizes_);
      if (Below(6) == 0 && SameLayout(*desc, packed) && sizes_.size() > 1) Transpose(desc);
      tensor.read = true;
      return tensor.value;
    }
    *desc = NewTensor(type, true);
    return test_.Input(Content(*desc));
  }

  // Reads a packed tensor in the other order of two dimensions of the same size, or a reversed tensor.
  void Transpose(TensorDesc* desc) {
    const uint32_t a = Below(desc->rank), b = Below(desc->rank);
    if (desc->sizes[a] == desc->sizes[b]) std::swap(desc->strides[a], desc->strides[b]);
  }

  void AddNode() {
    DataType type = Any(kTypes);
    if (!tensors_.empty() && Below(8) != 0) type = tensors_.back().desc.type;
    const bool is_float = type == DataType::kFloat32 || type == DataType::kFloat16;
    const Kind kind = is_float ? Any(kFloatKinds) : Any(kIntegerKinds);
    OperatorDesc desc = MakeDesc(kind.name, {});
    std::vector<uint32_t> inputs;
    DataType result = type;
    if (kind.result == Kind::kTruth) result = DataType::kUInt8;
    if (kind.result == Kind::kCast) result = Any(kTypes);
    const TensorDesc output = NewTensor(result, false);
    for (size_t f = 0; f < desc.fields.size(); ++f) {
      const FieldSchema& field = desc.schema->fields[f];
      if (field.kind == FieldKind::kInput) {
        TensorDesc tensor;
        const bool is_condition = kind.result == Kind::kChoice && inputs.empty();
        inputs.push_back(Feed(is_condition ? DataType::kUInt8 : type, &tensor));
        desc.fields[f] = tensor;
      } else if (field.kind == FieldKind::kOutput) {
        desc.fields[f] = output;
      } else if (field.type == FieldType::kScaleBias && Below(3) == 0) {
        desc.fields[f] = Below(2) == 0 ? ScaleBias{3, -1} : ScaleBias{0.75f, 0.5f};
      }
    }
    tensors_.push_back({test_.Node(desc, inputs)[0], output});
  }

  std::mt19937 random_;
  std::vector<uint32_t> sizes_;
  std::vector<Tensor> tensors_;
  GraphUnderTest test_;
};

TEST(FuseElements, RandomTrees) {
  const char* const text = std::getenv("ANYDML_TEST_SEED");
  const uint32_t first = text != nullptr ? static_cast<uint32_t>(std::atoi(text)) : 1;
  size_t kernels = 0, nodes = 0;
  for (uint32_t seed = first; seed < first + 400 && !HasFailure(); ++seed) {
    const RandomTree tree(seed);
    const Result want = RunGraph(tree.test(), "all");
    const Result got = RunGraph(tree.test(), "");
    EXPECT_EQ(got.outputs, want.outputs) << "ANYDML_TEST_SEED=" << seed << "\n" << got.explanation;
    kernels += CountKernels(got);
    nodes += tree.test().graph.nodes.size();
  }
  std::cout << nodes << " operators became " << kernels << " kernels\n";
  EXPECT_LT(kernels * 2, nodes);
}

}  // namespace
}  // namespace anydml::testing
