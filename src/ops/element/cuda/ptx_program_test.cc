// Texts of compiled programs: which features they use, and that NVIDIA's assembler accepts them where it is
// installed. (The operators' tests run them.)
#include "ops/element/cuda/ptx_program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ops/element/problem.h"

namespace anydml::element_cuda {
namespace {

using F = ElementFunction;
using T = DataType;
constexpr Class kF32 = Class::kF32, kI32 = Class::kI32, kU32 = Class::kU32;

const PtxFunctions& Functions() {
  static const PtxFunctions functions(CompiledFunctionsPtx());
  return functions;
}

ElementOperand Packed(T type, std::initializer_list<uint64_t> sizes) {
  ElementOperand operand = {type};
  uint64_t stride = 1;
  for (size_t d = sizes.size(); d-- > 0; stride *= sizes.begin()[d]) operand.strides[d] = stride;
  return operand;
}

ElementProblem ProblemOf(std::initializer_list<uint64_t> sizes, std::vector<T> inputs, T output) {
  ElementProblem problem;
  problem.rank = static_cast<uint32_t>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), problem.sizes.begin());
  for (const T type : inputs) problem.inputs.push_back(Packed(type, sizes));
  problem.outputs.push_back(Packed(output, sizes));
  return problem;
}

// The text, or the reason why there is none.
std::string TextOf(const ElementProblem& problem) {
  MachinePlan plan;
  std::string why_not, text;
  if (!MakePlan(problem, true, &plan, &why_not)) return why_not;
  return WritePtxProgram(plan, Functions(), &text, &why_not) ? text : why_not;
}

uint32_t CountOf(std::string_view what, std::string_view text) {
  uint32_t count = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

// Kernels in one module.
class Module {
 public:
  void Add(const std::string& text) {
    const size_t kernel = text.find(".visible .entry");
    ASSERT_NE(kernel, text.npos) << text;
    if (text_.empty()) text_ = text.substr(0, kernel);
    std::string renamed = text.substr(kernel);
    renamed.insert(renamed.find(kPtxProgramName), "k" + std::to_string(count_++) + "_");
    text_ += renamed;
  }

  void ExpectToAssemble() const {
#ifdef ANYDML_PTXAS
    if (!std::filesystem::exists(ANYDML_PTXAS)) GTEST_SKIP() << "no ptxas";
    const std::string folder = testing::TempDir() + "anydml_ptx_" + std::to_string(getpid());
    std::filesystem::create_directories(folder);
    std::ofstream(folder + "/text.ptx") << text_;
    const size_t target = text_.find("sm_");
    const std::string architecture = text_.substr(target, text_.find_first_of("\n,", target) - target);
    const std::string command = std::string(ANYDML_PTXAS) + " -O0 -arch=" + architecture + " " + folder +
                                "/text.ptx -o " + folder + "/out 2> " + folder + "/errors";
    std::ostringstream errors;
    if (std::system(command.c_str()) != 0) errors << std::ifstream(folder + "/errors").rdbuf();
    EXPECT_EQ(errors.str(), "");
    std::filesystem::remove_all(folder);
#else
    GTEST_SKIP() << "no ptxas";
#endif
  }

 private:
  std::string text_;
  uint32_t count_ = 0;
};

// (x w + x) relu, as graph passes fuse it: rounded between operators.
ElementProgram Chain(bool rounded) {
  ElementProgram p;
  const uint8_t x = p.Load(0, kF32), w = p.Load(1, kF32), y = p.Load(0, kF32);
  p.Apply(F::kMultiply, kF32, {y, w});
  if (rounded) p.Apply(F::kRoundToHalf, kF32, {y});
  p.Apply(F::kAdd, kF32, {y, x});
  if (rounded) p.Apply(F::kRoundToHalf, kF32, {y});
  p.Apply(F::kRelu, kF32, {y});
  p.Store(0, y, kF32);
  return p;
}

TEST(PtxProgram, HalvesAreComputedTwoAtATime) {
  ElementProblem problem = ProblemOf({1 << 20}, {T::kFloat16, T::kFloat16}, T::kFloat16);
  problem.program = Chain(true);
  const std::string halves = TextOf(problem);
  EXPECT_EQ(CountOf("mul.rn.f16x2", halves), 4u) << halves;
  EXPECT_EQ(CountOf("add.rn.f16x2", halves), 4u);
  EXPECT_EQ(CountOf("cvt.f32.f16", halves), 0u);
  EXPECT_EQ(CountOf("ld.global.cs.v4.b32", halves), 2u);
  // A product that is not rounded has more digits than FLOAT16.
  problem.program = Chain(false);
  const std::string floats = TextOf(problem);
  EXPECT_EQ(CountOf("mul.rn.f16x2", floats), 0u);
  EXPECT_EQ(CountOf("mul.rn.f32", floats), 8u);
}

TEST(PtxProgram, SaysWhatItDoesNotCompile) {
  ElementProblem problem = ProblemOf({1 << 20}, {T::kInt64}, T::kInt64);
  const uint8_t x = problem.program.Load(0, Class::kI64);
  problem.program.Store(0, x, Class::kI64);
  EXPECT_EQ(TextOf(problem), "programs with 64-bit numbers are not compiled");
  problem = ProblemOf({256, 256}, {T::kFloat32, T::kFloat32}, T::kFloat32);
  problem.inputs[1].strides = {1, 256};
  problem.program = Chain(false);
  EXPECT_EQ(TextOf(problem), "an input lies across the output");
  problem = ProblemOf({100}, {T::kFloat32}, T::kFloat32);
  const uint8_t step = problem.program.Load(0, kF32);
  problem.program.Apply(F::kAdamRate, kF32, {step});
  problem.program.Store(0, step, kF32);
  EXPECT_EQ(TextOf(problem), "AdamRate has no text to compile");
}

TEST(PtxProgram, LayoutsAndTypesAssemble) {
  Module module;
  for (const T type : {T::kFloat32, T::kFloat16}) {
    for (const bool rounded : {true, false}) {
      ElementProblem problem = ProblemOf({4, 3, 64}, {type, T::kFloat16}, type);
      problem.program = Chain(rounded);
      module.Add(TextOf(problem));
      problem.inputs[1].strides = {0, 0, 1};  // a row
      module.Add(TextOf(problem));
      problem.inputs[1].strides = {3, 1, 0};  // a column
      module.Add(TextOf(problem));
      problem.inputs[1].strides = {};
      module.Add(TextOf(problem));
      problem.inputs[1].strides = {uint64_t{1} << 33, 1, 3};
      module.Add(TextOf(problem));
      problem.sizes = {4, 3, 7};
      problem.outputs[0].strides = {42, 14, 2};
      module.Add(TextOf(problem));
      problem.rank = 0;
      module.Add(TextOf(problem));
    }
  }
  for (const T from : {T::kInt8, T::kUInt8, T::kInt16, T::kUInt16, T::kInt32, T::kUInt32, T::kFloat16}) {
    for (const Class type : {kF32, ClassOf(from)}) {
      ElementProblem problem = ProblemOf({1000}, {from}, from);
      const uint8_t x = problem.program.Load(0, type);
      problem.program.Store(0, x, type);
      problem.program.Convert(x, type, type == kF32 ? kI32 : kF32, T::kInt16);
      problem.program.Store(1, x, type == kF32 ? kI32 : kF32);
      problem.outputs.push_back(Packed(T::kInt16, {1000}));
      module.Add(TextOf(problem));
    }
  }
  module.ExpectToAssemble();
}

TEST(PtxProgram, FunctionsAssemble) {
  Module module;
  uint32_t count = 0;
  for (auto f = F::kAdd; f < F::kAdamRate; f = static_cast<F>(static_cast<uint32_t>(f) + 1)) {
    const ElementFunctionInfo& info = InfoOf(f);
    for (const Class type : {kF32, kI32, kU32}) {
      if (((info.vector_classes | info.scalar_classes) & Bit(type)) == 0) continue;
      constexpr T kTypes[] = {T::kFloat32, T::kInt32, T::kUInt32};
      const T of_class = kTypes[static_cast<uint32_t>(type)];
      ElementProblem problem = ProblemOf({1000}, {of_class, of_class, of_class}, T::kInt32);
      ElementProgram& p = problem.program;
      uint8_t r[3] = {};
      for (uint32_t i = 0; i < info.sources; ++i) {
        problem.inputs[i].strides = {};  // one element: the text contains the function once
        r[i] = p.Load(i, type);
      }
      const uint8_t to = info.sources == 1   ? p.Apply(f, type, {r[0]}, 1, 2)
                         : info.sources == 2 ? p.Apply(f, type, {r[0], r[1]}, 1, 2)
                                             : p.Apply(f, type, {r[0], r[1], r[2]}, 1, 2);
      p.Store(0, to, p.instructions.back().to);
      module.Add(TextOf(problem));
      ++count;
    }
  }
  EXPECT_GT(count, 100u);
  module.ExpectToAssemble();
}

}  // namespace
}  // namespace anydml::element_cuda
