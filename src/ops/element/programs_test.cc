// Programs of many instructions, as graphs build them from chains of operators: cpu.tiles against the
// reference.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "base/half.h"
#include "ops/element/problem.h"

namespace anydml {
namespace {

using Function = ElementFunction;
using Bytes = std::vector<std::byte>;

// Numbers that functions treat specially, among them NaNs with a sign and a payload, and ordinary numbers.
uint32_t RandomBits(std::mt19937& random) {
  constexpr std::array<uint32_t, 14> kSpecial = {0x7FC00000, 0xFFC00000, 0x7FC12345, 0xFFE54321, 0x7F800000,
                                                 0xFF800000, 0x00000000, 0x80000000, 0x00000001, 0x80000001,
                                                 0x3F800000, 0xC0C00000, 0x477FE000, 0x33000000};
  if (random() % 3 == 0) return kSpecial[random() % kSpecial.size()];
  return std::bit_cast<uint32_t>(static_cast<float>(random() % 4096) / 256 - 8);
}

struct Sample {
  ElementProblem problem;
  std::vector<Bytes> inputs;
};

Sample RandomSample(uint32_t seed) {
  std::mt19937 random(seed);
  Sample sample;
  ElementProblem& problem = sample.problem;
  const bool halves = seed % 3 == 2;
  const DataType type = halves ? DataType::kFloat16 : DataType::kFloat32;
  problem.rank = 2;
  problem.sizes = {1 + random() % 5, 1 + random() % 1500};
  const uint64_t rows = problem.sizes[0], columns = problem.sizes[1];
  ElementProgram& program = problem.program;
  constexpr Class kF = Class::kF32, kU = Class::kU32;
  const uint32_t inputs = 1 + random() % 3;
  for (uint32_t i = 0; i < inputs; ++i) {
    constexpr uint32_t kWays = 5;  // packed more often than broadcast along either dimension
    const std::array<std::array<uint64_t, 2>, kWays> strides = {
        {{columns, 1}, {columns, 1}, {0, 1}, {1, 0}, {1, rows}}};
    ElementOperand& operand = problem.inputs.emplace_back();
    operand.type = type;
    const auto& way = strides[i == 0 ? 0 : random() % kWays];
    std::copy(way.begin(), way.end(), operand.strides.begin());
    Bytes& bytes = sample.inputs.emplace_back(rows * columns * BitSize(type) / 8);
    for (uint64_t at = 0; at < rows * columns; ++at) {
      const uint32_t bits = RandomBits(random);
      if (halves) {
        const uint16_t half = ToHalf(std::bit_cast<float>(bits)).bits;
        std::memcpy(&bytes[at * 2], &half, 2);
      } else {
        std::memcpy(&bytes[at * 4], &bits, 4);
      }
    }
    program.Load(i, kF);
  }
  // All sources are FLOAT32; any register may be written.
  constexpr Function kFunctions[] = {Function::kAdd,
                                     Function::kSubtract,
                                     Function::kMultiply,
                                     Function::kDivide,
                                     Function::kMaximum,
                                     Function::kMinimum,
                                     Function::kDifferenceSquare,
                                     Function::kAbs,
                                     Function::kSign,
                                     Function::kFloor,
                                     Function::kScaleBias,
                                     Function::kCanonical,
                                     Function::kClip,
                                     Function::kClip,
                                     Function::kClip,
                                     Function::kRelu,
                                     Function::kRelu,
                                     Function::kLeakyRelu,
                                     Function::kParameterizedRelu,
                                     Function::kHardSwish,
                                     Function::kRoundToHalf,
                                     Function::kSquareRoot};
  constexpr Function kOfHalves[] = {Function::kAdd,  Function::kSubtract, Function::kMultiply,
                                    Function::kClip, Function::kMaximum,  Function::kMinimum,
                                    Function::kRelu};
  const uint32_t length = 1 + random() % 24;
  program.registers = std::min<uint32_t>(kMaxRegisters, inputs + 1 + random() % 3);
  uint32_t filled = inputs;
  for (uint32_t i = 0; i < length; ++i) {
    const bool narrow = halves && seed % 2 == 0;
    const Function f =
        narrow ? kOfHalves[random() % std::size(kOfHalves)] : kFunctions[random() % std::size(kFunctions)];
    const auto target = static_cast<uint8_t>(random() % std::min(filled + 1, program.registers));
    Instruction instruction = {f, kF, kF, target, {}, {RandomBits(random), RandomBits(random)}};
    if (f == Function::kClip && random() % 2 == 0) {
      instruction.parameters[0] = ParameterOf(0.0f);
      instruction.parameters[1] = ParameterOf(6.0f);
    }
    for (uint8_t& source : instruction.sources) source = static_cast<uint8_t>(random() % filled);
    if (random() % 2 == 0 && i > 0) instruction.sources[random() % 2] = program.instructions.back().target;
    program.instructions.push_back(instruction);
    filled = std::max(filled, target + 1u);
    if (narrow) {
      program.instructions.push_back({Function::kRoundToHalf, kF, kF, target, {target, 0, 0}, {0, 0}});
    }
  }
  const uint8_t last = program.instructions.back().target;
  ElementOperand output = {type, {columns, 1}};
  if (!halves && seed % 5 == 0) {  // a reader that sees all bits, after a comparison
    const auto other = static_cast<uint8_t>(random() % filled);
    const auto truth = static_cast<uint8_t>(program.registers < kMaxRegisters ? program.registers++ : other);
    program.instructions.push_back({Function::kLess, kF, kU, truth, {last, other, 0}, {0, 0}});
    program.instructions.push_back({Function::kSelect, kU, kU, truth, {truth, last, other}, {0, 0}});
    program.Store(0, truth, kU);
    output.type = DataType::kUInt32;
  } else {
    program.Store(0, last, kF);
  }
  problem.outputs = {output};
  if (!halves && seed % 7 == 0) {
    program.Store(1, static_cast<uint8_t>(random() % filled), kF);
    problem.outputs.push_back({type, {columns, 1}});
  }
  return sample;
}

std::vector<Bytes> RunSample(const Sample& sample, const Kernel& kernel) {
  std::vector<Bytes> outputs;
  std::vector<Buffer> in, out;
  for (const Bytes& input : sample.inputs) {
    in.push_back({const_cast<std::byte*>(input.data()), input.size()});
  }
  for (const ElementOperand& operand : sample.problem.outputs) {
    outputs.emplace_back(sample.problem.Elements() * BitSize(operand.type) / 8);
  }
  for (Bytes& output : outputs) out.push_back({output.data(), output.size()});
  Bytes temporary(kernel.temporary_bytes() + 64);
  KernelArguments arguments = {.inputs = in, .outputs = out};
  arguments.temporary = {temporary.data(), temporary.size()};
  EXPECT_TRUE(kernel.Run(arguments).ok());
  return outputs;
}

TEST(ElementPrograms, TilesAreTheReference) {
  for (uint32_t seed = 0; seed < 600; ++seed) {
    const Sample sample = RandomSample(seed);
    std::string why_not;
    const auto tiles = CreateElementTiles(sample.problem, {}, &why_not);
    const auto reference = CreateElementReference(sample.problem, {}, &why_not);
    ASSERT_TRUE(tiles != nullptr && reference != nullptr) << why_not;
    const std::vector<Bytes> got = RunSample(sample, *tiles), expected = RunSample(sample, *reference);
    for (size_t i = 0; i < got.size(); ++i) {
      ASSERT_EQ(got[i].size(), expected[i].size());
      const auto differs = std::mismatch(got[i].begin(), got[i].end(), expected[i].begin());
      ASSERT_TRUE(differs.first == got[i].end())
          << "seed " << seed << ", output " << i << ", byte " << differs.first - got[i].begin() << " of "
          << got[i].size() << ", " << sample.problem.sizes[0] << " x " << sample.problem.sizes[1] << "\n"
          << sample.problem.program.ToString();
    }
  }
}

}  // namespace
}  // namespace anydml
