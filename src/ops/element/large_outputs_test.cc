// Outputs larger than the caches, which are stored with other instructions than small ones.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <type_traits>

#include <gtest/gtest.h>

#include "base/half.h"
#include "ops/element/expect_values.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

constexpr uint32_t kPeriod = 509;  // of the elements: integers whose sums are exact in FLOAT16

template <typename T>
T ElementOf(uint32_t number) {
  if constexpr (std::is_same_v<T, Half>) {
    return ToHalf(static_cast<float>(number));
  } else {
    return static_cast<T>(number);
  }
}

// Element i in memory is f(i).
template <typename T, typename F>
Values Filled(const TensorDesc& tensor, uint64_t elements, F&& f) {
  Values values{tensor, Bytes(elements * sizeof(T))};
  for (uint64_t i = 0; i < elements; ++i) {
    const T element = ElementOf<T>(f(i));
    std::memcpy(values.bytes.data() + i * sizeof(T), &element, sizeof(T));
  }
  return values;
}

void ExpectLarge(const char* operator_name, const std::vector<Values>& inputs, Attributes attributes,
                 const Values& output) {
  const OperatorDesc desc = Describe(operator_name, inputs, attributes, {output});
  std::vector<Bytes> bytes;
  for (const Values& input : inputs) bytes.push_back(input.bytes);
  for (const uint32_t threads : {1u, 3u}) {
    RunOptions options;
    options.threads = threads;
    const RunResult result = RunOperator(desc, bytes, options);
    const Bytes& got = result.outputs.at(0);  // whole words, possibly
    ASSERT_GE(got.size(), output.bytes.size());
    EXPECT_TRUE(std::equal(output.bytes.begin(), output.bytes.end(), got.begin()))
        << operator_name << " by " << result.implementation;
  }
}

template <typename T>
void ExpectSums(DataType type, uint32_t elements) {
  const TensorDesc tensor = Packed(type, {elements});
  ExpectLarge("ELEMENT_WISE_ADD",
              {Filled<T>(tensor, elements, [](uint64_t i) { return i % kPeriod; }),
               Filled<T>(tensor, elements, [](uint64_t i) { return 2 * (i % kPeriod); })},
              {}, Filled<T>(tensor, elements, [](uint64_t i) { return 3 * (i % kPeriod); }));
}

TEST(LargeOutputs, Float32) { ExpectSums<float>(DataType::kFloat32, (4 << 20) + 5); }
TEST(LargeOutputs, Float16) { ExpectSums<Half>(DataType::kFloat16, (8 << 20) + 3); }

TEST(LargeOutputs, Cast) {
  constexpr uint32_t kElements = (8 << 20) + 7;
  const auto number = [](uint64_t i) { return i % kPeriod; };
  ExpectLarge("CAST", {Filled<float>(Packed(DataType::kFloat32, {kElements}), kElements, number)}, {},
              Filled<Half>(Packed(DataType::kFloat16, {kElements}), kElements, number));
}

TEST(LargeOutputs, TruthValues) {
  constexpr uint32_t kElements = (16 << 20) + 1;
  const TensorDesc halves = Packed(DataType::kFloat16, {kElements});
  const TensorDesc one = Strided(DataType::kFloat16, {kElements}, {0});
  ExpectLarge("ELEMENT_WISE_LOGICAL_GREATER_THAN",
              {Filled<Half>(halves, kElements, [](uint64_t i) { return i % kPeriod; }),
               Filled<Half>(one, 1, [](uint64_t) { return 100; })},
              {}, Filled<uint8_t>(Packed(DataType::kUInt8, {kElements}), kElements, [](uint64_t i) {
                return i % kPeriod > 100;
              }));
}

// Several functions, the last of which stores; one input is transposed.
TEST(LargeOutputs, Transposed) {
  constexpr uint32_t kRows = 2049, kColumns = 2112;
  const TensorDesc across = Strided(DataType::kFloat32, {kRows, kColumns}, {1, kRows});
  const TensorDesc packed = Packed(DataType::kFloat32, {kRows, kColumns});
  constexpr uint64_t kElements = uint64_t{kRows} * kColumns;
  ExpectLarge("ELEMENT_WISE_ADD1",
              {Filled<float>(across, kElements, [](uint64_t i) { return i / kRows + 5 * (i % kRows); }),
               Filled<float>(packed, kElements, [](uint64_t i) { return i % kPeriod; })},
              {{"FusedActivation", Fused("ACTIVATION_RELU")}},
              Filled<float>(packed, kElements,
                            [](uint64_t i) { return i % kColumns + 5 * (i / kColumns) + i % kPeriod; }));
}

// A group of elements may take a faster path if none of them needs the slow one; the result must not depend
// on that.
TEST(LargeOutputs, NeighboursDoNotMatter) {
  constexpr uint32_t kElements = 5000;
  const TensorDesc tensor = Packed(DataType::kFloat32, {kElements});
  const float rare[] = {kNan,    -kNan, kInf,  -kInf, 88.7f, 89,    -87.4f,
                        -103.9f, -104,  86.7f, -3.1f, 1e30f, -1e30f};
  std::vector<float> x(kElements);
  for (uint32_t i = 0; i < kElements; ++i) {
    x[i] = static_cast<float>(i % 997) / 499 - 1;
    if (i > kElements / 2 && i % 29 == 0) x[i] = rare[i / 29 % std::size(rare)];
  }
  for (const char* const name : {"ELEMENT_WISE_EXP", "ACTIVATION_GELU", "ACTIVATION_SIGMOID"}) {
    const auto run = [&](uint32_t first) {  // from that element onwards
      Values input{tensor, Bytes(kElements * sizeof(float))};
      for (uint32_t i = 0; i < kElements; ++i) {
        std::memcpy(input.bytes.data() + i * sizeof(float), &x[(i + first) % kElements], sizeof(float));
      }
      return RunOperator(Describe(name, {input}, {}, {input}), {input.bytes}, {}).outputs.at(0);
    };
    const Bytes all = run(0);
    for (const uint32_t first : {1u, 17u, 64u, 2500u}) {
      const Bytes moved = run(first);
      for (uint32_t i = 0; i < kElements; ++i) {
        const uint32_t from = (i + first) % kElements;
        ASSERT_EQ(
            std::memcmp(moved.data() + i * sizeof(float), all.data() + from * sizeof(float), sizeof(float)),
            0)
            << name << " of " << x[from];
      }
    }
  }
}

}  // namespace
}  // namespace anydml::testing
