// Executes a GPU's blocks on the host: plans, indices and conversions against the reference, without a GPU.
// (The operators' tests run the kernels.)
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "base/half.h"
#include "ops/element/cuda/narrow_machine.cuh"
#include "ops/element/cuda/wide_machine.cuh"

namespace anydml::element_cuda {
namespace {

using F = ElementFunction;
using Random = std::mt19937;

uint32_t Below(Random& random, uint32_t end) { return static_cast<uint32_t>(random() % end); }

struct Memory {
  std::vector<uint64_t> words;
  std::byte* data() { return reinterpret_cast<std::byte*>(words.data()); }
  bool operator==(const Memory&) const = default;
};

// Elements at the edges of conversions.
void Fill(Memory* memory, DataType type, Random& random) {
  const size_t bytes = memory->words.size() * 8;
  for (size_t i = 0; i < bytes / 4; ++i) {
    auto* const words = reinterpret_cast<uint32_t*>(memory->words.data());
    if (type == DataType::kFloat32) {
      const float value =
          std::ldexp(static_cast<float>(random()) - 0x1p31f, static_cast<int>(Below(random, 60)) - 60);
      words[i] = Below(random, 40) == 0 ? 0x7F800000u + Below(random, 2) : std::bit_cast<uint32_t>(value);
    } else {
      words[i] = static_cast<uint32_t>(random());
      if (Below(random, 8) == 0) words[i] = 0;
    }
  }
}

template <typename Word, typename Run>
void RunBlocks(const MachinePlan& plan, const Machine& machine, Run run) {
  std::vector<uint4> shared(plan.shared_bytes / sizeof(uint4));
  auto* const memory = reinterpret_cast<std::byte*>(shared.data());
  for (uint32_t block = 0; block < plan.blocks; ++block) {
    for (uint32_t t = 0; t < kThreads; ++t) {
      const Thread<Word> thread(machine, memory, block, t);
      for (uint32_t i = 0; i < machine.inputs; ++i) thread.Load(i);
    }
    for (uint32_t t = 0; t < kThreads; ++t) run(Thread<Word>(machine, memory, block, t));
  }
}

void RunMachine(const MachinePlan& plan, const Machine& machine) {
  if (plan.wide) {
    RunBlocks<uint64_t>(plan, machine, [](const WideThread& thread) { RunSteps(thread); });
  } else {
    const bool is_long = std::any_of(machine.steps, machine.steps + machine.steps_end, [](const Step& s) {
      return IsLong(s.instruction.function, s.instruction.type);
    });
    RunBlocks<uint32_t>(plan, machine, [is_long](const NarrowThread& thread) {
      is_long ? RunSteps<false>(thread) : RunSteps<true>(thread);
    });
  }
}

uint64_t SpanOf(const ElementProblem& problem, const ElementOperand& operand) {
  uint64_t last = 0;
  for (uint32_t d = 0; d < problem.rank; ++d) last += (problem.sizes[d] - 1) * operand.strides[d];
  return last + 1;
}

// Strides of a tensor whose loops are in `order` in memory (last: contiguous), with `gap` elements between
// the innermost ones and some loops broadcast.
void SetStrides(const ElementProblem& problem, std::span<const uint32_t> order, uint64_t gap,
                uint32_t repeated, ElementOperand* operand) {
  uint64_t stride = gap;
  for (size_t i = order.size(); i-- > 0;) {
    const uint32_t d = order[i];
    if ((repeated >> d & 1) != 0) continue;
    operand->strides[d] = stride;
    stride *= problem.sizes[d];
  }
}

enum class Layout { kPacked, kBroadcast, kTransposed, kAny };

void Shape(ElementProblem* problem, Layout layout, Random& random) {
  static constexpr uint64_t kSizes[] = {1, 2, 3, 4, 7, 8, 16, 24, 33, 40, 64, 100};
  problem->rank = 1 + Below(random, 4);
  for (uint32_t d = 0; d < problem->rank; ++d) problem->sizes[d] = kSizes[Below(random, std::size(kSizes))];
  while (problem->Elements() > 40000) problem->sizes[Below(random, problem->rank)] = 1 + Below(random, 3);
  std::vector<uint32_t> order(problem->rank);
  std::iota(order.begin(), order.end(), 0u);
  if (layout == Layout::kAny) std::shuffle(order.begin(), order.end(), random);
  for (ElementOperand& output : problem->outputs) {
    SetStrides(*problem, order, layout == Layout::kAny ? 1 + Below(random, 3) : 1, 0, &output);
  }
  for (ElementOperand& input : problem->inputs) {
    auto own = order;
    if (layout >= Layout::kTransposed && Below(random, 4) != 0) std::shuffle(own.begin(), own.end(), random);
    const uint32_t repeated = layout == Layout::kBroadcast || layout == Layout::kAny ? Below(random, 16) : 0;
    SetStrides(*problem, own, layout == Layout::kAny ? 1 + Below(random, 3) : 1, repeated, &input);
  }
}

// The relative error allowed for results that are not exact.
constexpr float kTolerance = 1e-5f;
constexpr float kTiny = 1e-36f;

bool IsNear(const Memory& expected, const Memory& actual) {
  const auto* const e = reinterpret_cast<const float*>(expected.words.data());
  const auto* const a = reinterpret_cast<const float*>(actual.words.data());
  for (size_t i = 0; i < expected.words.size() * 2; ++i) {
    if (e[i] != a[i] && !(std::isnan(e[i]) && std::isnan(a[i])) &&
        !(std::abs(e[i] - a[i]) <= kTolerance * std::abs(e[i]) + kTiny)) {
      return false;
    }
  }
  return true;
}

// Runs the machine and the reference, and compares every byte of the outputs. In place, output 0 replaces
// input 0, which has the same layout.
void Check(const ElementProblem& problem, Random& random, bool in_place = false) {
  const auto reference = CreateElementReference(problem, LowerContext{}, nullptr);
  std::vector<Memory> inputs(problem.inputs.size()), expected(problem.outputs.size());
  std::vector<Buffer> input_buffers, output_buffers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs[i].words.resize(SpanOf(problem, problem.inputs[i]) * BitSize(problem.inputs[i].type) / 64 + 2);
    Fill(&inputs[i], problem.inputs[i].type, random);
    input_buffers.push_back({inputs[i].data(), 0});
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i].words.assign(SpanOf(problem, problem.outputs[i]) * BitSize(problem.outputs[i].type) / 64 + 2,
                             0xA5A5A5A5A5A5A5A5u);
    output_buffers.push_back({expected[i].data(), 0});
  }
  if (in_place) expected[0].words = inputs[0].words;
  if (in_place) output_buffers[0].data = expected[0].data();
  const auto results = expected;
  ASSERT_TRUE(reference->Run({input_buffers, output_buffers}).ok());
  for (const bool with_groups : {true, false}) {
    MachinePlan plan;
    std::string why_not;
    ASSERT_TRUE(MakePlan(problem, with_groups, &plan, &why_not)) << why_not;
    auto actual = results;
    Machine machine = plan.machine;
    for (uint32_t o = 0; o < plan.operands; ++o) {
      machine.operands[o].data = (o < machine.inputs ? inputs : actual)[plan.bindings[o]].data();
    }
    if (in_place) machine.operands[0].data = actual[0].data();
    RunMachine(plan, machine);
    if (problem.program.ulps() > 0) {
      EXPECT_TRUE(IsNear(expected[0], actual[0])) << problem.program.ToString();
      continue;
    }
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto* e = reinterpret_cast<const uint8_t*>(expected[i].words.data());
      const auto* a = reinterpret_cast<const uint8_t*>(actual[i].words.data());
      const size_t bytes = expected[i].words.size() * 8;
      const size_t at = std::mismatch(e, e + bytes, a).first - e;
      ASSERT_EQ(at, bytes) << "output " << i << " differs at byte " << at << ", groups " << with_groups
                           << ", tiled " << machine.tiled << ": " << problem.program.ToString();
    }
  }
}

struct Operands {
  std::vector<DataType> inputs;
  std::vector<DataType> outputs;
};

template <typename Build>
void CheckLayouts(const Operands& operands, uint32_t count, Build&& build) {
  ElementProblem problem;
  build(problem.program);
  Random random(1);
  uint32_t tiled = 0;
  for (uint32_t i = 0; i < count; ++i) {
    problem.inputs.clear();
    problem.outputs.clear();
    for (const DataType type : operands.inputs) problem.inputs.push_back({type});
    for (const DataType type : operands.outputs) problem.outputs.push_back({type});
    problem.sizes = {};
    Shape(&problem, static_cast<Layout>(i % 4), random);
    Check(problem, random);
    if (testing::Test::HasFatalFailure()) return;
    MachinePlan plan;
    std::string why_not;
    MakePlan(problem, true, &plan, &why_not);
    tiled += plan.machine.tiled;
  }
  if (count >= 40) {
    EXPECT_GT(tiled, 0u);
  }
}

using T = DataType;
constexpr Class kF32 = Class::kF32, kI32 = Class::kI32, kU32 = Class::kU32;
constexpr Class kF64 = Class::kF64, kI64 = Class::kI64;

void Binary(ElementProgram& p, F function, Class type) {
  const uint8_t a = p.Load(0, type);
  p.Apply(function, type, {a, p.Load(1, type)});
  p.Store(0, a, p.instructions.back().to);
}

TEST(ElementMachine, BinaryFunctionsOfEveryWidth) {
  CheckLayouts({{T::kFloat32, T::kFloat32}, {T::kFloat32}}, 80, [](auto& p) { Binary(p, F::kAdd, kF32); });
  CheckLayouts({{T::kFloat16, T::kFloat16}, {T::kFloat16}}, 80,
               [](auto& p) { Binary(p, F::kMultiply, kF32); });
  CheckLayouts({{T::kInt8, T::kInt8}, {T::kInt8}}, 60, [](auto& p) { Binary(p, F::kSubtract, kI32); });
  CheckLayouts({{T::kUInt16, T::kUInt16}, {T::kUInt16}}, 40, [](auto& p) { Binary(p, F::kMaximum, kU32); });
  CheckLayouts({{T::kInt32, T::kInt32}, {T::kInt32}}, 40, [](auto& p) { Binary(p, F::kDivide, kI32); });
  CheckLayouts({{T::kInt64, T::kInt64}, {T::kInt64}}, 60, [](auto& p) { Binary(p, F::kAdd, kI64); });
  CheckLayouts({{T::kFloat32, T::kFloat32}, {T::kUInt8}}, 40, [](auto& p) { Binary(p, F::kLess, kF32); });
}

TEST(ElementMachine, CastsFromEveryTypeToEveryType) {
  for (uint32_t from = 1; from <= 11; ++from) {
    for (uint32_t to = 1; to <= 11; ++to) {
      const auto from_type = static_cast<T>(from), to_type = static_cast<T>(to);
      if (from == to) continue;
      const bool is_double = from_type == T::kFloat64 || to_type == T::kFloat64;
      const bool is_float = IsFloat(ClassOf(from_type)) || IsFloat(ClassOf(to_type));
      const bool is_long = BitSize(from_type) == 64 || BitSize(to_type) == 64;
      const Class type = is_double ? kF64 : is_float ? kF32 : is_long ? kI64 : kI32;
      CheckLayouts({{from_type}, {to_type}}, 4, [&](ElementProgram& p) {
        const uint8_t a = p.Load(0, type);
        if (IsFloat(ClassOf(from_type)) && IsFloat(ClassOf(to_type))) p.Apply(F::kCanonical, type, {a});
        p.Store(0, a, type);
      });
    }
  }
}

TEST(ElementMachine, FourBitElementsShareBytes) {
  for (const T type : {T::kInt4, T::kUInt4}) {
    CheckLayouts({{T::kFloat32, T::kFloat32}, {type}}, 60, [&](ElementProgram& p) {
      const uint8_t value = p.Load(0, kF32), scale = p.Load(1, kF32);
      const uint8_t zero = p.Constant(ParameterOf(1.0f), kF32);
      p.Apply(F::kQuantize, kF32, {value, scale, zero}, ParameterOf(-8.0f), ParameterOf(7.0f));
      p.Store(0, value, kF32);
    });
    for (const T to : {T::kFloat32, T::kFloat16}) {
      CheckLayouts({{type, T::kFloat16, type}, {to}}, 60, [&](ElementProgram& p) {
        const uint8_t value = p.Load(0, kI32);
        p.Apply(F::kSubtract, kI32, {value, p.Load(2, kI32)});
        p.Convert(value, kI32, kF32, T::kFloat32);
        p.Apply(F::kMultiply, kF32, {value, p.Load(1, kF32)});
        p.Store(0, value, kF32);
      });
    }
  }
}

TEST(ElementMachine, ValuesThatAreNeededLater) {
  // (x y + 1) max x, and both outputs; x y in FLOAT16.
  CheckLayouts({{T::kFloat16, T::kFloat32}, {T::kFloat32, T::kFloat16}}, 60, [](ElementProgram& p) {
    const uint8_t x = p.Load(0, kF32), y = p.Load(1, kF32);
    p.Apply(F::kMultiply, kF32, {y, x});
    p.Store(1, y, kF32);
    const uint8_t sum = p.Constant(ParameterOf(1.0f), kF32);
    p.Apply(F::kAdd, kF32, {sum, y});
    p.Apply(F::kMaximum, kF32, {x, sum});
    p.Apply(F::kSubtract, kF32, {y, x});
    p.Store(0, y, kF32);
  });
  // Fractions of integers, computed in FLOAT64.
  CheckLayouts({{T::kInt16, T::kInt16}, {T::kInt16}}, 40, [](ElementProgram& p) {
    const uint8_t a = p.Load(0, kI32);
    p.Convert(a, kI32, kF64, T::kFloat64);
    p.Apply(F::kScaleBias, kF64, {a}, ParameterOf(0.75), ParameterOf(-3.5));
    p.Convert(a, kF64, kI32, T::kInt16);
    p.Apply(F::kModulusFloor, kI32, {a, p.Load(1, kI32)});
    p.Store(0, a, kI32);
  });
}

// While another input is transposed.
TEST(ElementMachine, OutputsReplaceInputs) {
  ElementProblem problem;
  Binary(problem.program, F::kSubtract, kI32);
  problem.inputs.resize(2, {T::kInt16});
  problem.outputs.resize(1, {T::kInt16});
  Random random(2);
  for (const uint64_t rows : {3, 40, 130}) {
    for (const uint64_t columns : {5, 64, 200}) {
      problem.rank = 2;
      problem.sizes = {rows, columns};
      problem.inputs[0].strides = problem.outputs[0].strides = {columns, 1};
      problem.inputs[1].strides = {1, rows};
      Check(problem, random, true);
    }
  }
}

// Every function and class reaches its implementation.
TEST(ElementMachine, AllFunctionsOfTheTable) {
  Random random(3);
  constexpr T kTypes[] = {T::kFloat32, T::kInt32, T::kUInt32, T::kFloat64, T::kInt64, T::kUInt64};
  uint32_t count = 0;
  for (auto f = F::kAdd; f <= F::kAdamRate; f = static_cast<F>(static_cast<uint32_t>(f) + 1)) {
    const ElementFunctionInfo& info = InfoOf(f);
    for (uint32_t c = 0; c < kClassCount; ++c) {
      const auto type = static_cast<Class>(c);
      if (((info.vector_classes | info.scalar_classes) & Bit(type)) == 0) continue;
      if (f == F::kAdamRate || f == F::kPowerInteger || f == F::kMean || f == F::kGeluOfHalf ||
          f == F::kErfOfHalf) {
        continue;  // of other inputs, or for FLOAT16 outputs
      }
      for (const bool with_wide_input : {false, true}) {
        ElementProblem problem;
        ElementProgram& p = problem.program;
        problem.rank = 1;
        problem.sizes = {1000};
        uint8_t r[3] = {};
        for (uint32_t i = 0; i < 3; ++i) {
          // A 64-bit tensor selects the wide machine.
          problem.inputs.push_back({i == 2 && with_wide_input ? T::kInt64 : kTypes[c], {1}});
          if (i < info.sources) r[i] = p.Load(i, type);
        }
        problem.outputs.push_back({kTypes[c], {1}});
        const uint64_t mode = 1;
        const uint64_t first = f == F::kIsInfinity ? mode
                               : type == kF64      ? ParameterOf(0.5)
                               : type == kF32      ? ParameterOf(0.5f)
                                                   : 3;
        const uint64_t second = type == kF64 ? ParameterOf(2.0) : type == kF32 ? ParameterOf(2.0f) : 31;
        const uint8_t to = info.sources == 1   ? p.Apply(f, type, {r[0]}, first, second)
                           : info.sources == 2 ? p.Apply(f, type, {r[0], r[1]}, first, second)
                                               : p.Apply(f, type, {r[0], r[1], r[2]}, first, second);
        const Class result = p.instructions.back().to;
        if (result != type) problem.outputs[0].type = IsWide(type) ? T::kUInt64 : T::kUInt32;
        p.Store(0, to, result);
        Check(problem, random);
        ++count;
      }
    }
  }
  EXPECT_GT(count, 250u);
}

TEST(ElementMachine, RefusesWhatDoesNotFit) {
  ElementProblem problem;
  problem.inputs.resize(1, {T::kFloat32});
  problem.outputs.resize(1, {T::kFloat32});
  const uint8_t a = problem.program.Load(0, kF32);
  for (uint32_t i = 0; i <= kMaxSteps; ++i) problem.program.Apply(F::kRelu, kF32, {a});
  MachinePlan plan;
  std::string why_not;
  EXPECT_FALSE(MakePlan(problem, true, &plan, &why_not));
  EXPECT_EQ(why_not, "the program has more than 40 steps");

  problem.program = {};
  problem.inputs.resize(kMaxOperands + 1, {T::kFloat32});
  for (uint32_t i = 0; i <= kMaxOperands; ++i) problem.program.Load(i, kF32);
  plan = {};
  EXPECT_FALSE(MakePlan(problem, true, &plan, &why_not));
  EXPECT_EQ(why_not, "the program has 13 tensors, at most 12 fit");
}

TEST(ElementMachine, PacksOfTheWidestOperandMakeGroups) {
  const auto group_of = [](T from, T to, std::array<uint64_t, 2> sizes) {
    ElementProblem problem;
    problem.rank = 2;
    problem.sizes = {sizes[0], sizes[1]};
    problem.inputs.push_back({from, {0, 1}});  // one row, broadcast
    problem.outputs.push_back({to, {sizes[1], 1}});
    problem.program.Store(0, problem.program.Load(0, kF32), kF32);
    MachinePlan plan;
    std::string why_not;
    EXPECT_TRUE(MakePlan(problem, true, &plan, &why_not));
    return 1u << plan.machine.log2_group;
  };
  EXPECT_EQ(group_of(T::kFloat16, T::kFloat16, {8, 64}), 8u);
  EXPECT_EQ(group_of(T::kFloat16, T::kFloat16, {8, 60}), 4u);
  EXPECT_EQ(group_of(T::kFloat16, T::kFloat32, {8, 64}), 4u);
  EXPECT_EQ(group_of(T::kFloat32, T::kInt8, {8, 61}), 1u);
  EXPECT_EQ(group_of(T::kFloat32, T::kFloat64, {8, 64}), 2u);
}

}  // namespace
}  // namespace anydml::element_cuda
