// Programs whose instructions need whole registers, have constants and scalars, or overwrite their operands,
// on tiles of several rows, divided among threads, and in place: cpu.tiles against the reference.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ops/element/cpu/tile_plan.h"
#include "ops/element/problem.h"

namespace anydml {
namespace {

using TileBytes = std::vector<std::byte>;

struct TileSample {
  ElementProblem problem;
  std::vector<TileBytes> inputs;
  int in_place = -1;  // an input that shares the first output's memory
};

TileBytes BytesOfWords(const std::vector<uint32_t>& words) {
  TileBytes bytes(words.size() * sizeof(uint32_t));
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return bytes;
}

std::vector<TileBytes> RunTileSample(const TileSample& sample, const Kernel& kernel, bool in_place) {
  std::vector<TileBytes> outputs;
  for (const ElementOperand& output : sample.problem.outputs) {
    outputs.emplace_back(sample.problem.Elements() * BitSize(output.type) / 8);
  }
  std::vector<Buffer> in, out;
  for (const TileBytes& input : sample.inputs) {
    in.push_back({const_cast<std::byte*>(input.data()), input.size()});
  }
  if (in_place && sample.in_place >= 0) {
    outputs[0] = sample.inputs[static_cast<size_t>(sample.in_place)];
    in[static_cast<size_t>(sample.in_place)] = {outputs[0].data(), outputs[0].size()};
  }
  for (TileBytes& output : outputs) out.push_back({output.data(), output.size()});
  std::vector<std::array<std::byte, 64>> temporary((kernel.temporary_bytes() + 63) / 64 + 1);
  KernelArguments arguments = {.inputs = in, .outputs = out};
  const auto begin = (reinterpret_cast<uintptr_t>(temporary.data()) + 63) / 64 * 64;
  arguments.temporary = {reinterpret_cast<std::byte*>(begin), kernel.temporary_bytes()};
  EXPECT_TRUE(kernel.Run(arguments).ok());
  return outputs;
}

void ExpectTilesAreTheReference(const TileSample& sample, uint32_t threads) {
  LowerContext context;
  context.threads = threads;
  std::string why_not;
  const auto tiles = CreateElementTiles(sample.problem, context, &why_not);
  const auto reference = CreateElementReference(sample.problem, {}, &why_not);
  ASSERT_TRUE(tiles != nullptr && reference != nullptr) << why_not;
  EXPECT_TRUE(RunTileSample(sample, *tiles, true) == RunTileSample(sample, *reference, false))
      << threads << " threads, in place " << sample.in_place << ", " << sample.problem.sizes[0] << " x "
      << sample.problem.sizes[1] << "\n"
      << sample.problem.program.ToString();
}

// Adds instructions to a program of one class.
class ProgramOf {
 public:
  ProgramOf(ElementProgram* program, Class type) : program_(*program), type_(type) {}
  void Apply(ElementFunction function, uint8_t target, std::array<uint8_t, 2> sources,
             std::array<uint64_t, 2> parameters = {}) {
    program_.instructions.push_back(
        {function, type_, type_, target, {sources[0], sources[1], 0}, {parameters[0], parameters[1]}});
  }

 private:
  ElementProgram& program_;
  Class type_;
};

std::vector<uint32_t> Counted(uint64_t count, uint32_t step, uint32_t end) {
  std::vector<uint32_t> words(count);
  for (uint64_t i = 0; i < count; ++i) words[i] = static_cast<uint32_t>(i * step % end);
  return words;
}

// x - trunc(x) + b, with a row b added to all of x.
TEST(ElementProgramTiles, TensorsThatAreReadWholeAndByRows) {
  TileSample sample;
  ElementProblem& problem = sample.problem;
  problem.rank = 2;
  problem.sizes = {100, 33};
  problem.inputs = {{DataType::kFloat32, {33, 1}}, {DataType::kFloat32, {0, 1}}};
  problem.outputs = {{DataType::kFloat32, {33, 1}}};
  ElementProgram& program = problem.program;
  const uint8_t x = program.Load(0, Class::kF32), b = program.Load(1, Class::kF32);
  program.registers = 3;
  program.instructions.push_back(
      {ElementFunction::kConvert, Class::kF32, Class::kI32, 2, {x}, {uint64_t(DataType::kInt32)}});
  program.instructions.push_back(
      {ElementFunction::kConvert, Class::kI32, Class::kF32, 2, {2}, {uint64_t(DataType::kFloat32)}});
  ProgramOf floats(&program, Class::kF32);
  floats.Apply(ElementFunction::kSubtract, x, {x, 2});
  floats.Apply(ElementFunction::kAdd, x, {x, b});
  program.Store(0, x, Class::kF32);
  std::vector<uint32_t> words(3300);
  for (uint32_t i = 0; i < words.size(); ++i)
    words[i] = std::bit_cast<uint32_t>(0.37f * static_cast<float>(i));
  sample.inputs = {BytesOfWords(words), BytesOfWords(words)};
  ExpectTilesAreTheReference(sample, 1);
}

// x mod 5 + 5: parts may begin with a tile that is narrower than the others.
TEST(ElementProgramTiles, ConstantsOfTilesAcrossAnInput) {
  TileSample sample;
  ElementProblem& problem = sample.problem;
  problem.rank = 2;
  problem.sizes = {512, 530};
  problem.inputs = {{DataType::kInt32, {1, 512}}};
  problem.outputs = {{DataType::kInt32, {530, 1}}};
  const uint8_t x = problem.program.Load(0, Class::kI32), five = problem.program.Constant(5, Class::kI32);
  ProgramOf integers(&problem.program, Class::kI32);
  integers.Apply(ElementFunction::kModulusFloor, x, {x, five});
  integers.Apply(ElementFunction::kAdd, x, {x, five});
  problem.program.Store(0, x, Class::kI32);
  sample.inputs = {BytesOfWords(Counted(512 * 530, 1, 1 << 30))};
  for (uint32_t threads = 1; threads < 12; ++threads) ExpectTilesAreTheReference(sample, threads);
}

// A scalar that a function without a vector form reads, too, and whose register is then overwritten.
TEST(ElementProgramTiles, ScalarsThatAreReplaced) {
  TileSample sample;
  ElementProblem& problem = sample.problem;
  problem.rank = 2;
  problem.sizes = {100, 33};
  problem.inputs = {{DataType::kInt32, {0, 0}}, {DataType::kInt32, {0, 1}}, {DataType::kInt32, {33, 1}}};
  problem.outputs = {{DataType::kInt32, {33, 1}}};
  for (uint32_t i = 0; i < 3; ++i) problem.program.Load(i, Class::kI32);
  ProgramOf integers(&problem.program, Class::kI32);
  integers.Apply(ElementFunction::kModulusFloor, 2, {2, 0});
  integers.Apply(ElementFunction::kSubtract, 0, {0, 1});
  integers.Apply(ElementFunction::kMaximum, 2, {2, 0});
  problem.program.Store(0, 0, Class::kI32);
  const TileBytes rows = BytesOfWords(Counted(3300, 7, 500));
  sample.inputs = {BytesOfWords(std::vector<uint32_t>(3300, 1000)), rows, rows};
  ExpectTilesAreTheReference(sample, 1);
}

// Transposed elements of a type as numbers of a class: alone, with an input along the rows, and with another
// transposed input.
TileSample AcrossSample(DataType type, Class as, uint64_t rows, uint64_t columns, uint32_t others) {
  TileSample sample;
  ElementProblem& problem = sample.problem;
  problem.rank = 2;
  problem.sizes = {rows, columns};
  const uint64_t apart = rows + 3;
  const ElementOperand across = {type, {1, apart}}, along = {type, {columns, 1}};
  problem.inputs = {across};
  if (others == 1) problem.inputs.push_back(along);
  if (others == 2) problem.inputs.push_back(across);
  problem.outputs = {along};
  uint8_t result = problem.program.Load(0, as);
  if (others > 0) {
    const uint8_t other = problem.program.Load(1, as);
    const auto has_body = [&](ElementFunction function) {
      const auto& info = InfoOf(function);
      return ((info.vector_classes | info.scalar_classes) & Bit(as)) != 0;
    };
    for (const ElementFunction function : {ElementFunction::kMaximum, ElementFunction::kAdd,
                                           ElementFunction::kDivide, ElementFunction::kPowerRounded}) {
      if (!has_body(function)) continue;
      result = problem.program.Apply(function, as, {result, other});
      break;
    }
  }
  problem.program.Store(0, result, as);
  const uint64_t count = apart * columns, bytes = BitSize(type) / 8;
  for (uint32_t i = 0; i < problem.inputs.size(); ++i) {
    TileBytes elements(count * bytes);
    for (uint64_t n = 0; n < count; ++n) {  // floating-point numbers are finite, too
      const uint64_t number = (n + i) * 0x9E3779B97F4A7C15u >> 9;
      std::memcpy(elements.data() + n * bytes, &number, bytes);
      if (bytes > 1) elements[(n + 1) * bytes - 1] &= std::byte{0x3B};
    }
    sample.inputs.push_back(std::move(elements));
  }
  return sample;
}

TEST(ElementProgramTiles, EveryTypeAcross) {
  constexpr std::array<std::pair<DataType, Class>, 19> kTypes = {{{DataType::kUInt8, Class::kU32},
                                                                  {DataType::kInt8, Class::kI32},
                                                                  {DataType::kUInt16, Class::kU32},
                                                                  {DataType::kInt16, Class::kI32},
                                                                  {DataType::kUInt32, Class::kU32},
                                                                  {DataType::kInt32, Class::kI32},
                                                                  {DataType::kUInt64, Class::kU64},
                                                                  {DataType::kInt64, Class::kI64},
                                                                  {DataType::kFloat16, Class::kF32},
                                                                  {DataType::kFloat32, Class::kF32},
                                                                  {DataType::kFloat64, Class::kF64},
                                                                  {DataType::kInt8, Class::kF32},
                                                                  {DataType::kUInt16, Class::kF32},
                                                                  {DataType::kInt32, Class::kF32},
                                                                  {DataType::kInt64, Class::kF32},
                                                                  {DataType::kUInt8, Class::kU64},
                                                                  {DataType::kInt16, Class::kI64},
                                                                  {DataType::kFloat16, Class::kF64},
                                                                  {DataType::kInt32, Class::kF64}}};
  constexpr std::array<std::array<uint64_t, 2>, 6> kSizes = {
      {{65, 259}, {129, 127}, {63, 257}, {260, 131}, {4, 1000}, {257, 33}}};
  for (const auto& [type, as] : kTypes) {
    for (const auto& [rows, columns] : kSizes) {
      for (uint32_t others = 0; others < 3; ++others) {
        SCOPED_TRACE(static_cast<int>(type));
        ExpectTilesAreTheReference(AcrossSample(type, as, rows, columns, others), 1 + others);
      }
    }
  }
}

TileSample RandomTileSample(uint32_t seed) {
  std::mt19937 random(seed);
  TileSample sample;
  ElementProblem& problem = sample.problem;
  const bool integers = seed % 2 == 0;
  const Class type = integers ? Class::kI32 : Class::kF32;
  const DataType data = integers ? DataType::kInt32 : DataType::kFloat32;
  constexpr uint64_t kSizes[] = {1, 3, 17, 31, 33, 64, 129, 257, 513, 530};
  problem.rank = 2;
  problem.sizes = {kSizes[random() % std::size(kSizes)], kSizes[random() % std::size(kSizes)]};
  const uint64_t rows = problem.sizes[0], columns = problem.sizes[1];
  const std::array<std::array<uint64_t, 2>, 6> ways = {
      {{columns, 1}, {columns, 1}, {1, rows}, {0, 1}, {1, 0}, {0, 0}}};
  const uint32_t inputs = 1 + random() % 3;
  for (uint32_t i = 0; i < inputs; ++i) {
    const uint32_t way = random() % ways.size();
    problem.inputs.push_back({data, {ways[way][0], ways[way][1]}});
    if (way == 0 && sample.in_place < 0) sample.in_place = static_cast<int>(i);
    std::vector<uint32_t> words(rows * columns);
    for (uint32_t& word : words) {
      const uint32_t number = random() % 2000;
      word = integers ? number - 1000 : std::bit_cast<uint32_t>(static_cast<float>(number) / 64 - 9);
    }
    sample.inputs.push_back(BytesOfWords(words));
    problem.program.Load(i, type);
  }
  // The last three have no vector form, or need none.
  constexpr ElementFunction kFunctions[] = {
      ElementFunction::kAdd,     ElementFunction::kSubtract, ElementFunction::kMultiply,
      ElementFunction::kMaximum, ElementFunction::kMinimum,  ElementFunction::kRelu,
      ElementFunction::kDivide,  ElementFunction::kConstant, ElementFunction::kModulusFloor};
  problem.program.registers = inputs + 1 + random() % 3;
  ProgramOf program(&problem.program, type);
  uint32_t filled = inputs;
  uint8_t target = 0;
  for (uint32_t i = 1 + random() % 12; i > 0; --i) {
    const ElementFunction function = kFunctions[random() % std::size(kFunctions)];
    target = static_cast<uint8_t>(random() % std::min(filled + 1, problem.program.registers));
    const auto source = [&] { return static_cast<uint8_t>(random() % filled); };
    const uint32_t number = 1 + random() % 50;
    program.Apply(function, target, {source(), source()},
                  {integers ? number : std::bit_cast<uint32_t>(static_cast<float>(number))});
    filled = std::max(filled, target + 1u);
  }
  problem.outputs = {{data, {columns, 1}}};
  problem.program.Store(0, target, type);
  return sample;
}

TEST(ElementProgramTiles, RandomPrograms) {
  for (uint32_t seed = 0; seed < 500 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    ExpectTilesAreTheReference(RandomTileSample(seed), 1 + seed % 9);
  }
}

// With 4 bits, two elements share a byte, which must not belong to tiles of different threads: consecutive
// rows of odd and even lengths, with gaps, and interleaved rows.
TEST(ElementTilePlan, BytesThatTilesShare) {
  struct Sizes {
    std::array<uint64_t, 2> sizes, strides;
    bool shares;
  };
  for (const auto& [sizes, strides, shares] :
       {Sizes{{4096, 3}, {3, 1}, true}, Sizes{{7, 4096}, {4096, 1}, false}, Sizes{{7, 4097}, {4097, 1}, true},
        Sizes{{4096, 3}, {6, 2}, false}, Sizes{{4096, 3}, {6, 5}, true}}) {
    ElementProblem problem;
    problem.rank = 2;
    problem.sizes = {sizes[0], sizes[1]};
    // The input's rows have gaps between them, so that the loops do not merge.
    problem.inputs = {{DataType::kUInt8, {sizes[1] + 1, 1}}};
    problem.outputs = {{DataType::kUInt4, {strides[0], strides[1]}}};
    const TilePlan plan(problem, 1024, 1024);
    std::vector<uint64_t> tile_of((sizes[0] * strides[0] + sizes[1] * strides[1]) / 2 + 1, plan.tiles);
    bool any = false;
    for (uint64_t t = 0; t < plan.tiles; ++t) {
      const Tile tile(plan, t);
      for (uint64_t e = 0; e < tile.elements; ++e) {
        uint64_t at = tile.Offset(1), rest = e;
        for (uint32_t d = tile.rank; d-- > 0; rest /= tile.loops[d].extent) {
          at += rest % tile.loops[d].extent * tile.loops[d].loop->strides[1];
        }
        any = any || (tile_of[at / 2] != plan.tiles && tile_of[at / 2] != t);
        tile_of[at / 2] = t;
      }
    }
    EXPECT_GT(plan.tiles, 1u);
    EXPECT_EQ(any, shares) << strides[0] << ", " << strides[1];
    EXPECT_EQ(plan.SharesBytes(problem), shares) << strides[0] << ", " << strides[1];
  }
}

}  // namespace
}  // namespace anydml
