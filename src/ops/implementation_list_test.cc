// The choice of an implementation, the fallback to the host, and the registry of operators.
#include "ops/implementation_list.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "ops/softmax/problem.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

struct FakeProblem {
  bool first_fits;
};
class FakeKernel final : public Kernel {
  Status Run(const KernelArguments&) const override { return {}; }
};
std::unique_ptr<const Kernel> CreateFirst(const FakeProblem& problem, const LowerContext&,
                                          std::string* why_not) {
  if (!problem.first_fits) {
    *why_not = "odd";
    return nullptr;
  }
  return std::make_unique<FakeKernel>();
}
std::unique_ptr<const Kernel> CreateAlways(const FakeProblem&, const LowerContext&, std::string*) {
  return std::make_unique<FakeKernel>();
}
constexpr Implementation<FakeProblem> kFakes[] = {
    {"cpu.first", CreateFirst},
    {"cpu.shy", CreateAlways, [](const FakeProblem&, const LowerContext&) { return std::string("slower"); }},
    {.name = "cpu.reference", .create = CreateAlways, .abilities = kIsReference},
};

Status Choose(const FakeProblem& problem, const LowerContext& context, LoweredOperator* out) {
  return ChooseKernel(std::span<const Implementation<FakeProblem>>(kFakes), problem, context, out);
}

TEST(ImplementationList, FirstThatFits) {
  LoweredOperator out;
  ASSERT_TRUE(Choose({true}, {}, &out).ok());
  EXPECT_EQ(out.implementation, "cpu.first");
  ASSERT_TRUE(Choose({false}, {}, &out).ok());
  EXPECT_EQ(out.implementation, "cpu.reference");
  EXPECT_EQ(out.abilities, kIsReference);
  EXPECT_NE(out.kernel, nullptr);
  EXPECT_EQ(out.explanation, "cpu.first: odd\ncpu.shy: slower\ncpu.reference: chosen");
}

TEST(ImplementationList, ForcedOneOrTheReason) {
  LoweredOperator out;
  ASSERT_TRUE(Choose({true}, {.implementation = "cpu.shy"}, &out).ok());
  EXPECT_EQ(out.implementation, "cpu.shy");
  EXPECT_NE(out.explanation.find("cpu.first: cpu.shy was asked for\n"), std::string::npos);
  Status status = Choose({false}, {.implementation = "cpu.first"}, &out);
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_EQ(status.message(), "implementation cpu.first was asked for but does not fit: odd");
  status = Choose({false}, {.implementation = "gpu.first"}, &out);
  EXPECT_EQ(status.message(),
            "implementation gpu.first was asked for but there are only cpu.first, cpu.shy, cpu.reference");
}

class MadeOfOthers final : public Kernel {
 public:
  Status Run(const KernelArguments&) const override { return {}; }
  std::string made_of() const override { return "cpu.first, cpu.second"; }
};

TEST(ImplementationList, CarriesExactnessAndParts) {
  constexpr Implementation<FakeProblem> kList[] = {
      {.name = "cpu.near",
       .create = CreateFirst,
       .exactness = {.float32_ulps = 2},
       .bound = [](const FakeProblem&) { return Exactness{.relative = 0.5}; }},
      {.name = "cpu.nearer",
       .create = [](const FakeProblem&, const LowerContext&, std::string*) -> std::unique_ptr<const Kernel> {
         return std::make_unique<MadeOfOthers>();
       },
       .exactness = {.float16_ulps = 1}},
  };
  const std::span<const Implementation<FakeProblem>> list = kList;
  LoweredOperator out;
  ASSERT_TRUE(ChooseKernel(list, {true}, {}, &out).ok());
  EXPECT_EQ(out.exactness.relative, 0.5);
  EXPECT_EQ(out.exactness.float32_ulps, 0u);
  ASSERT_TRUE(ChooseKernel(list, {false}, {}, &out).ok());
  EXPECT_EQ(out.exactness.float16_ulps, 1u);
  EXPECT_EQ(out.explanation, "cpu.near: odd\ncpu.nearer: chosen, with cpu.first, cpu.second");
}

TEST(ImplementationList, TheDeviceIsCurrentWhileAnImplementationIsCreated) {
  static int current;
  current = 7;
  const DeviceTraits device = {.ordinal = 3,
                               .make_current = [](int ordinal) { return std::exchange(current, ordinal); }};
  const Implementation<FakeProblem> asking[] = {
      {"gpu.here", [](const FakeProblem&, const LowerContext&, std::string* why_not) {
         *why_not = StrCat("device ", current);
         return std::unique_ptr<const Kernel>();
       }}};
  LoweredOperator out;
  EXPECT_EQ(
      ChooseKernel(std::span<const Implementation<FakeProblem>>(asking), {true}, {.device = &device}, &out)
          .message(),
      "no implementation fits (gpu.here: device 3)");
  EXPECT_EQ(current, 7);  // the application's choice is restored
}

SoftmaxProblem SmallSoftmax() {
  TensorDesc tensor;
  tensor.rank = 2;
  tensor.sizes = {2, 3};
  SetPackedStrides(&tensor);
  return {SoftmaxKind::kSoftmax, tensor, tensor, AxisSet{2}};
}

std::unique_ptr<const Kernel> CreateSmall(const SoftmaxProblem& problem, const LowerContext&,
                                          std::string* why_not) {
  if (problem.input.sizes[1] <= 3) return std::make_unique<FakeKernel>();
  *why_not = "more than 3";
  return nullptr;
}

TEST(HostFallback, RunsWhatTheDeviceLacks) {
  constexpr Implementation<SoftmaxProblem> kSmall[] = {{"abacus.small", CreateSmall}};
  Column column;
  column.Add<SoftmaxProblem>(kSmall);
  const DeviceTraits abacus = {.backend = "abacus", .column = &column, .is_host = false};
  LowerContext context = {.device = &abacus};
  LoweredOperator out;
  SoftmaxProblem problem = SmallSoftmax();
  ASSERT_TRUE(ChooseKernel(problem, context, &out).ok());
  EXPECT_EQ(out.implementation, "abacus.small");

  // A problem that no implementation of the family takes, and a family that the column lacks.
  problem.input.sizes[1] = problem.output.sizes[1] = 4;
  ASSERT_TRUE(ChooseKernel(problem, context, &out).ok());
  EXPECT_EQ(out.implementation, "host:cpu.blocks");
  EXPECT_TRUE(
      out.explanation.starts_with("abacus: no implementation fits (abacus.small: more than 3)\n"
                                  "host:cpu.blocks: chosen, on the host: "))
      << out.explanation;
  KernelArguments nothing;
  EXPECT_EQ(out.kernel->Run(nothing).code(), Code::kUnsupported);  // no stream to copy operands in

  // Forces the fastest host implementation, or a named one. Neither works for parts of a kernel or while
  // fallback is forbidden.
  problem = SmallSoftmax();
  context.implementation = "host:";
  ASSERT_TRUE(ChooseKernel(problem, context, &out).ok());
  EXPECT_EQ(out.implementation, "host:cpu.blocks");
  context.implementation = "host:cpu.reference";
  ASSERT_TRUE(ChooseKernel(problem, context, &out).ok());
  EXPECT_EQ(out.implementation, "host:cpu.reference");
  context.implementation = {};
  context.host_fallback = false;
  problem.input.sizes[1] = problem.output.sizes[1] = 4;
  EXPECT_EQ(ChooseKernel(problem, context, &out).message(),
            "no implementation fits (abacus.small: more than 3)");
  context.host_fallback = true;
  EXPECT_FALSE(ChooseKernel(problem, context.ForPart(), &out).ok());
}

// A graph would silently not use a trait that an operator fails to state.
TEST(Registry, OperatorsStateTheirTraits) {
  for (const Operator* op : ImplementedOperators()) {
    const OperatorTraits& traits = op->traits;
    const char* const name = FindOperator(static_cast<OperatorType>(op->type))->name;
    EXPECT_NE(traits.layout, nullptr) << name;
    EXPECT_NE(traits.strides, Strides::kUnstated) << name;
    EXPECT_NE(traits.rows, RowUse::kUnstated) << name;
    EXPECT_NE(traits.work_bytes, nullptr) << name;
    // FusePrologues looks for the sets there.
    if (traits.rows == RowUse::kInBlocks) {
      EXPECT_GE(FindField(*FindOperator(static_cast<OperatorType>(op->type)), "Axes"), 0) << name;
    }
  }
}

TEST(Registry, EveryOperatorOfTheSchemaIsThereAndEndsWithTheReference) {
  EXPECT_EQ(ImplementedOperators().size(), AllOperators().size());
  for (const OperatorSchema& schema : AllOperators()) {
    EXPECT_NE(FindImplementation(schema.type), nullptr) << schema.name;
  }
  for (const Operator* op : ImplementedOperators()) {
    ASSERT_NE(FindOperator(op->type), nullptr);
    EXPECT_EQ(FindImplementation(op->type), op);
    EXPECT_STREQ(ImplementationNames(*op).back(), "cpu.reference");
    // TakesEverything and the choice rely on the order.
    EXPECT_STREQ(HostColumn().NamesOf(op->family).back(), "cpu.reference") << op->family;
  }
  EXPECT_EQ(FindImplementation(0), nullptr);
}

}  // namespace
}  // namespace anydml::testing
