// NaNs of all kinds in rows long enough for the processor mode that canonicalizes NaNs: the bits equal the
// reference's, and the thread's mode is restored afterwards.
#include <bit>
#include <cstring>
#include <iterator>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "base/half.h"
#include "ops/element/expect_values.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

constexpr uint32_t kRowOfNans = 3001;

// FLOAT32 or FLOAT16 numbers of all magnitudes, with infinities and many NaNs.
Values NumbersAndNans(DataType type, uint32_t seed) {
  std::mt19937 random(seed);
  Values values{Packed(type, {kRowOfNans}), {}};
  const auto append = [&](const auto bits) {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(&bits);
    values.bytes.insert(values.bytes.end(), bytes, bytes + sizeof(bits));
  };
  for (uint32_t i = 0; i < kRowOfNans; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    const bool is_special = random() % 4 == 0;
    const uint32_t payload = random() % 4 == 0 ? 0 : ~0u;  // without one it is an infinity
    if (type == DataType::kFloat32) {
      append(is_special ? (bits | 0x7F800000u) & (0xFF800000u | payload) : bits);
    } else {
      append(static_cast<uint16_t>(is_special ? (bits | 0x7C00u) & (0xFC00u | payload) : bits));
    }
  }
  return values;
}

void ExpectOneNan(const char* operator_name, int inputs, Attributes attributes, DataType from, DataType to) {
  std::vector<Values> values;
  std::vector<Bytes> bytes;
  for (int i = 0; i < inputs; ++i) {
    values.push_back(NumbersAndNans(from, 7 + static_cast<uint32_t>(i)));
    bytes.push_back(values.back().bytes);
  }
  SCOPED_TRACE(operator_name);
  ExpectAllAgree(Describe(operator_name, values, attributes, {{Packed(to, {kRowOfNans}), {}}}), bytes);
}

// If the function is not exact, NaN results need not equal the reference's, but each must be canonical.
template <typename Bits>
void ExpectUsualBits(const char* operator_name, DataType type, Bits infinity, Bits nan) {
  const Values values = NumbersAndNans(type, 7);
  const OperatorDesc desc = Describe(operator_name, {values}, {}, {{Packed(type, {kRowOfNans}), {}}});
  for (const char* name : RunnableImplementations(desc)) {
    const RunResult result = RunOperator(desc, {values.bytes}, {.implementation = name});
    if (result.implementation.empty()) continue;  // the implementation does not take the problem
    for (uint32_t i = 0; i < kRowOfNans; ++i) {
      Bits from, bits;
      std::memcpy(&from, values.bytes.data() + i * sizeof(Bits), sizeof(Bits));
      std::memcpy(&bits, result.outputs[0].data() + i * sizeof(Bits), sizeof(Bits));
      const auto magnitude = [](Bits x) { return static_cast<Bits>(static_cast<Bits>(x << 1) >> 1); };
      ASSERT_EQ(magnitude(bits) > infinity, magnitude(from) > infinity) << operator_name << " " << name;
      if (magnitude(bits) > infinity) {
        ASSERT_EQ(bits, nan) << operator_name << " " << name;
      }
    }
  }
}

TEST(NansInRows, OfFunctionsAreTheUsualOne) {
  for (const char* name : {"ELEMENT_WISE_TANH", "ACTIVATION_TANH", "ACTIVATION_SIGMOID", "ELEMENT_WISE_ERF",
                           "ACTIVATION_GELU", "ELEMENT_WISE_EXP"}) {
    ExpectUsualBits<uint32_t>(name, DataType::kFloat32, 0x7F800000u, 0x7FC00000u);
    ExpectUsualBits<uint16_t>(name, DataType::kFloat16, 0x7C00u, 0x7E00u);
  }
}

// How an element is computed may depend on its neighbours; its result must not. Rare numbers among usual ones
// do not change other results, and NaN results are canonical.
void ExpectTheSameBesideRareOnes(const char* operator_name, DataType type, int inputs, bool positive) {
  const uint32_t width = BitSize(type) / 8;
  std::mt19937 random(11);
  std::vector<Values> usual(inputs, Values{Packed(type, {kRowOfNans}), {}}), rare = usual;
  const auto append = [&](Values& values, float x) {
    const uint32_t bits = width == 4 ? std::bit_cast<uint32_t>(x) : ToHalf(x).bits;
    const auto* const bytes = reinterpret_cast<const uint8_t*>(&bits);
    values.bytes.insert(values.bytes.end(), bytes, bytes + width);
  };
  std::vector<bool> is_rare(kRowOfNans), is_nan(kRowOfNans);
  for (int input = 0; input < inputs; ++input) {
    for (uint32_t i = 0; i < kRowOfNans; ++i) {
      const float x = static_cast<float>(random() % 65536) / 16384 + 0.01f;
      const float sign = positive && input == 0 ? 1.0f : random() % 2 == 0 ? -0.6f : 1.0f;
      append(usual[input], sign * x);
      constexpr float kRare[] = {kNan, -kNan, kInf, -kInf, 0.0f, -0.0f, -5.0f, 1e6f, 6e-8f, 1e-40f};
      const uint32_t which = random() % 400;
      append(rare[input], which < std::size(kRare) ? kRare[which] : sign * x);
      is_rare[i] = is_rare[i] || which < std::size(kRare);
      is_nan[i] = is_nan[i] || which < 2;
    }
  }
  const OperatorDesc desc = Describe(operator_name, usual, {}, {{Packed(type, {kRowOfNans}), {}}});
  const auto run = [&](const std::vector<Values>& values, const char* name) {
    std::vector<Bytes> bytes;
    for (const Values& v : values) bytes.push_back(v.bytes);
    return RunOperator(desc, bytes, {.implementation = name});
  };
  for (const char* name : RunnableImplementations(desc)) {
    const RunResult expected = run(usual, name), result = run(rare, name);
    if (result.implementation.empty()) continue;
    for (uint32_t i = 0; i < kRowOfNans; ++i) {
      uint32_t before = 0, bits = 0;
      std::memcpy(&before, expected.outputs[0].data() + i * width, width);
      std::memcpy(&bits, result.outputs[0].data() + i * width, width);
      if (!is_rare[i]) {
        ASSERT_EQ(bits, before) << operator_name << " " << name << " at " << i;
      } else if (is_nan[i] && inputs == 1) {
        ASSERT_EQ(bits, width == 4 ? 0x7FC00000u : 0x7E00u) << operator_name << " " << name << " at " << i;
      }
    }
  }
}

TEST(NansInRows, ChangeNothingBesideThem) {
  for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
    for (const char* name : {"ELEMENT_WISE_EXP", "ELEMENT_WISE_SIN", "ELEMENT_WISE_COS", "ELEMENT_WISE_TANH",
                             "ELEMENT_WISE_ERF", "ACTIVATION_SIGMOID", "ACTIVATION_GELU"}) {
      ExpectTheSameBesideRareOnes(name, type, 1, false);
    }
    ExpectTheSameBesideRareOnes("ELEMENT_WISE_LOG", type, 1, true);
    ExpectTheSameBesideRareOnes("ELEMENT_WISE_POW", type, 2, true);
  }
}

TEST(NansInRows, AreTheUsualOne) {
  constexpr DataType kHalf = DataType::kFloat16, kFloat = DataType::kFloat32;
  for (const DataType type : {kFloat, kHalf}) {
    for (const char* name :
         {"ELEMENT_WISE_ADD", "ELEMENT_WISE_SUBTRACT", "ELEMENT_WISE_MULTIPLY", "ELEMENT_WISE_MEAN",
          "ELEMENT_WISE_MAX", "ELEMENT_WISE_MIN", "ELEMENT_WISE_DIFFERENCE_SQUARE"}) {
      ExpectOneNan(name, 2, {}, type, type);
    }
    for (const char* name :
         {"ELEMENT_WISE_CEIL", "ELEMENT_WISE_FLOOR", "ACTIVATION_RELU", "ELEMENT_WISE_TANH",
          "ACTIVATION_SIGMOID", "ELEMENT_WISE_ERF", "ACTIVATION_GELU"}) {
      ExpectOneNan(name, 1, {}, type, type);
    }
    for (const uint32_t mode : {0u, 1u, 2u}) {
      ExpectOneNan("ELEMENT_WISE_ROUND", 1, {{"RoundingMode", mode}}, type, type);
    }
    ExpectOneNan("ELEMENT_WISE_CLIP", 1, {{"Min", -1.5f}, {"Max", 100.0f}}, type, type);
    ExpectOneNan("ELEMENT_WISE_CLIP", 1, {{"Min", 0.0f}, {"Max", kNan}}, type, type);
    ExpectOneNan("ACTIVATION_LEAKY_RELU", 1, {{"Alpha", 0.5f}}, type, type);
    ExpectOneNan("ELEMENT_WISE_IDENTITY", 1, {{"ScaleBias", ScaleBias{3, -1}}}, type, type);
    for (const char* name : {"ELEMENT_WISE_LOGICAL_GREATER_THAN", "ELEMENT_WISE_LOGICAL_EQUALS",
                             "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL"}) {
      ExpectOneNan(name, 2, {}, type, DataType::kUInt8);
    }
    ExpectOneNan("ELEMENT_WISE_IS_NAN", 1, {}, type, DataType::kUInt8);
    for (const DataType to : {DataType::kInt8, DataType::kUInt8, DataType::kInt16, DataType::kUInt16,
                              DataType::kInt32, DataType::kUInt32}) {
      ExpectOneNan("CAST", 1, {}, type, to);
    }
  }
  ExpectOneNan("CAST", 1, {}, kFloat, kHalf);
  ExpectOneNan("CAST", 1, {}, kHalf, kFloat);
}

TEST(NansInRows, KeepTheirPayloadsElsewhere) {
  ExpectOneNan("ELEMENT_WISE_ADD", 2, {}, DataType::kFloat32, DataType::kFloat32);
  volatile float nan = std::bit_cast<float>(0x7FC12345u), zero = 0;
  EXPECT_EQ(std::bit_cast<uint32_t>(static_cast<float>(nan + zero)), 0x7FC12345u);
}

}  // namespace
}  // namespace anydml::testing
