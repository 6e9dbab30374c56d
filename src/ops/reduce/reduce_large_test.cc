// More elements than 31 bits can count. Most of them share memory through a stride of 0.
#include <gtest/gtest.h>

#include <string_view>

#include "schema/descriptions.generated.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

constexpr uint32_t kRepeats = (1 << 16) + 3, kRow = 1 << 15;
constexpr uint64_t kElements = uint64_t{kRepeats} * kRow;

class LargeReduce : public ::testing::Test {
 protected:
  void SetUp() override {
    if (TestIterations(100) < 100) GTEST_SKIP() << "for builds that are not slow";
  }

  // Calls body(outcome, implementation) for all but the reference, which would take too long.
  template <typename T, typename Body>
  void ForEachOutcome(const OperatorDesc& desc, const Bytes& input, Body&& body) {
    for (const char* name : RunnableImplementations(desc)) {
      if (std::string_view(name) == "cpu.reference") continue;
      const RunResult result = RunOperator(desc, {input}, {.implementation = name, .threads = 2});
      body(Gathered<T>(*desc.outputs()[0], result.outputs[0])[0], name);
    }
  }
};

const TensorDesc& Input() {
  static const TensorDesc input = Strided(DataType::kFloat32, {kRepeats, kRow}, {0, 1});
  return input;
}

TEST_F(LargeReduce, Sum) {
  const OperatorDesc desc = MakeDesc("REDUCE", {{"Function", static_cast<uint32_t>(ReduceFunction::kSum)},
                                                {"InputTensor", Input()},
                                                {"OutputTensor", Packed(DataType::kFloat32, {1, 1})},
                                                {"AxisCount", 2u},
                                                {"Axes", std::vector<uint32_t>{0, 1}}});
  Bytes ones(Input().total_bytes);
  for (size_t i = 0; i < kRow; ++i) std::memcpy(ones.data() + i * sizeof(float), "\x00\x00\x80\x3F", 4);
  ForEachOutcome<float>(desc, ones, [](float sum, const char* name) {
    EXPECT_FLOAT_EQ(sum, static_cast<float>(kElements)) << name;
  });
}

TEST_F(LargeReduce, LastPosition) {
  Bytes bytes(Input().total_bytes);  // zeros, and one 1 per row
  std::memcpy(bytes.data() + 4 * sizeof(float), "\x00\x00\x80\x3F", 4);
  const OperatorDesc desc =
      MakeDesc("ARGMAX", {{"InputTensor", Input()},
                          {"OutputTensor", Packed(DataType::kInt64, {1, 1})},
                          {"AxisCount", 2u},
                          {"Axes", std::vector<uint32_t>{0, 1}},
                          {"AxisDirection", static_cast<uint32_t>(AxisDirection::kDecreasing)}});
  ForEachOutcome<int64_t>(desc, bytes, [](int64_t position, const char* name) {
    EXPECT_EQ(position, static_cast<int64_t>(kElements - kRow + 4)) << name;
  });
}

}  // namespace
}  // namespace anydml::testing
