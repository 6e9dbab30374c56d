// GEMM against products computed by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

using Fields = std::initializer_list<std::pair<const char*, FieldValue>>;

OperatorDesc Gemm(const TensorDesc& a, const TensorDesc& b, const TensorDesc& output, float alpha = 1,
                  bool trans_a = false, bool trans_b = false) {
  return MakeDesc("GEMM", {{"ATensor", a},
                           {"BTensor", b},
                           {"OutputTensor", output},
                           {"TransA", uint32_t{trans_a}},
                           {"TransB", uint32_t{trans_b}},
                           {"Alpha", alpha},
                           {"Beta", 0.0f}});
}

OperatorDesc With(OperatorDesc desc, Fields fields) {
  for (const auto& [name, value] : fields) {
    desc.fields[static_cast<size_t>(FindField(*desc.schema, name))] = value;
  }
  return desc;
}

FieldValue Activation(const char* name, Fields fields = {}) {
  return std::make_shared<const OperatorDesc>(MakeDesc(name, fields));
}

TensorDesc Floats(const std::vector<uint32_t>& sizes) { return Packed(DataType::kFloat32, sizes); }

std::vector<float> Product(const OperatorDesc& desc, const std::vector<Bytes>& inputs) {
  const RunResult result = ExpectAllAgree(desc, inputs);
  return Gathered<float>(*desc.tensor("OutputTensor"), result.outputs[0]);
}

const std::vector<float> kA = {1, 2, 3, 4, 5, 6}, kB = {7, 8, 9, 10, 11, 12};

TEST(Gemm, Product) {
  const TensorDesc a = Floats({2, 3}), b = Floats({3, 2});
  EXPECT_EQ(Product(Gemm(a, b, Floats({2, 2})), {Scattered(a, kA), Scattered(b, kB), {}}),
            (std::vector<float>{58, 64, 139, 154}));
}

TEST(Gemm, Transposed) {
  // The same memory, read transposed.
  const TensorDesc a = Floats({3, 2}), b = Floats({2, 3});
  EXPECT_EQ(Product(Gemm(a, b, Floats({2, 2}), 1, true, true), {Scattered(a, kA), Scattered(b, kB), {}}),
            (std::vector<float>{1 * 7 + 3 * 8 + 5 * 9, 1 * 10 + 3 * 11 + 5 * 12, 2 * 7 + 4 * 8 + 6 * 9,
                                2 * 10 + 4 * 11 + 6 * 12}));
}

TEST(Gemm, AlphaBetaAndBroadcastC) {
  const TensorDesc a = Floats({2, 3}), b = Floats({3, 2}), c = Strided(DataType::kFloat32, {2, 2}, {0, 1});
  const OperatorDesc desc = With(Gemm(a, b, Floats({2, 2}), 2), {{"CTensor", c}, {"Beta", -1.0f}});
  EXPECT_EQ(Product(desc, {Scattered(a, kA), Scattered(b, kB),
                           Scattered(Floats({1, 2}), std::vector<float>{100, 1})}),
            (std::vector<float>{16, 127, 178, 307}));
}

TEST(Gemm, NothingOfCIsSeenWithoutBeta) {
  const TensorDesc a = Floats({2, 3}), b = Floats({3, 2}), c = Floats({2, 2});
  const OperatorDesc desc = With(Gemm(a, b, Floats({2, 2})), {{"CTensor", c}});
  EXPECT_EQ(Product(desc, {Scattered(a, kA), Scattered(b, kB), Scattered(c, std::vector<float>(4, NAN))}),
            (std::vector<float>{58, 64, 139, 154}));
}

TEST(Gemm, BatchWithOneMatrixForAll) {
  const TensorDesc a = Floats({2, 1, 1, 3}), b = Strided(DataType::kFloat32, {2, 1, 3, 2}, {0, 0, 2, 1});
  EXPECT_EQ(Product(Gemm(a, b, Floats({2, 1, 1, 2})), {Scattered(a, kA), Scattered(Floats({3, 2}), kB), {}}),
            (std::vector<float>{58, 64, 139, 154}));
}

TEST(Gemm, OwnedOperandsArePacked) {
  // Five rows, more than the few-row kernels take: i * {1, 1, 1} for i of 1 to 5, times columns that sum to
  // 3, 6, 9, 12, 15.
  std::vector<float> a_numbers, b_numbers, expected;
  for (const float i : {1.0f, 2.0f, 3.0f, 4.0f, 5.0f}) {
    a_numbers.insert(a_numbers.end(), 3, i);
    for (const float j : {1.0f, 2.0f, 3.0f, 4.0f, 5.0f}) expected.push_back(3 * i * j);
  }
  for (const float row : {-1.0f, 1.0f, 3.0f}) {
    for (const float j : {1.0f, 2.0f, 3.0f, 4.0f, 5.0f}) b_numbers.push_back(row * j);
  }
  for (const bool columns_first : {false, true}) {
    for (const auto& [a_is_owned, b_is_owned] : {std::pair{true, false}, {false, true}, {true, true}}) {
      TensorDesc a = Floats({5, 3}), b = Floats({3, 5});
      const TensorDesc output =
          Strided(DataType::kFloat32, {5, 5}, {columns_first ? 1u : 5u, columns_first ? 5u : 1u});
      a.owned_by_dml = a_is_owned;
      b.owned_by_dml = b_is_owned;
      const OperatorDesc desc = Gemm(a, b, output);
      LoweredOperator lowered;
      ASSERT_TRUE(LowerOperator(ImplementationOf(desc), desc, {}, &lowered).ok());
      EXPECT_EQ(lowered.kernel->packs_input(0), a_is_owned);
      EXPECT_EQ(lowered.kernel->packs_input(1), b_is_owned);
      EXPECT_EQ(Product(desc, {Scattered(a, a_numbers), Scattered(b, b_numbers), {}}), expected);
    }
  }
}

// Wide enough for threads to divide the columns of one row, which are read in place or from panels.
TEST(Gemm, OneLongRow) {
  const uint32_t k = 100, n = 3001;
  const TensorDesc a = Floats({1, k});
  TensorDesc b = Floats({k, n});
  std::vector<float> b_numbers(size_t{k} * n), expected(n);
  for (size_t i = 0; i < b_numbers.size(); ++i) b_numbers[i] = static_cast<float>(i % n % 7) * 0.25f;
  for (uint32_t j = 0; j < n; ++j) expected[j] = static_cast<float>(j % 7) * 25;
  for (const bool owned : {false, true}) {
    b.owned_by_dml = owned;
    const OperatorDesc desc = Gemm(a, b, Floats({1, n}));
    LoweredOperator lowered;
    ASSERT_TRUE(LowerOperator(ImplementationOf(desc), desc, {}, &lowered).ok());
    EXPECT_EQ(lowered.kernel->packs_input(1), owned);
    EXPECT_EQ(Product(desc, {Scattered(a, std::vector<float>(k, 1)), Scattered(b, b_numbers), {}}), expected);
  }
}

// One row or column times a matrix whose rows or columns are 16-byte units: several GPU blocks divide the
// long dimension, and not all of them have full columns.
TEST(Gemm, OneRowInUnits) {
  struct Sizes {
    uint32_t k, n;
  };
  for (const auto& [k, n] :
       {Sizes{8, 8}, Sizes{16, 1000}, Sizes{1000, 264}, Sizes{4104, 72}, Sizes{9000, 40}, Sizes{40, 40000}}) {
    for (const DataType type : {DataType::kFloat16, DataType::kFloat32}) {
      for (const bool transposes : {false, true}) {
        const TensorDesc row = Packed(type, {1, k}), column = Packed(type, {k, 1});
        const TensorDesc b = Packed(type, transposes ? std::vector{n, k} : std::vector{k, n});
        const TensorDesc c = Strided(type, {1, n}, {0, 1});
        const auto numbers = [&](const TensorDesc& tensor, uint32_t step) {
          Bytes bytes(tensor.total_bytes);
          for (uint64_t i = 0; i < ElementCount(tensor); ++i) {
            const float number = static_cast<float>(i * step % 17) / 64 - 0.125f;
            const Half half = ToHalf(number);
            const bool is_half = type == DataType::kFloat16;
            std::memcpy(&bytes[i * (is_half ? 2 : 4)], is_half ? static_cast<const void*>(&half) : &number,
                        is_half ? 2 : 4);
          }
          return bytes;
        };
        SCOPED_TRACE(StrCat(k, " x ", n, transposes ? " transposed" : ""));
        ExpectAllAgree(
            With(Gemm(row, b, Packed(type, {1, n}), 0.5f, false, transposes),
                 {{"CTensor", c}, {"Beta", 2.0f}, {"FusedActivation", Activation("ACTIVATION_RELU")}}),
            {numbers(row, 5), numbers(b, 7), numbers(c, 3)});
        // The matrix comes first.
        ExpectAllAgree(Gemm(b, column, Packed(type, {n, 1}), 1, !transposes, false),
                       {numbers(b, 7), numbers(column, 5), {}});
      }
    }
  }
}

// Both operands are contiguous along k, in 16-byte units: partial GPU tiles, and blocks that divide the
// steps.
TEST(Gemm, ContiguousAlongK) {
  struct Sizes {
    uint32_t m, n, k;
  };
  for (const auto& [m, n, k] :
       {Sizes{2, 3, 4}, Sizes{70, 201, 36}, Sizes{130, 264, 768}, Sizes{300, 65, 100}}) {
    SCOPED_TRACE(StrCat(m, " x ", n, " x ", k));
    const TensorDesc a = Floats({m, k}), b = Floats({n, k}), c = Strided(DataType::kFloat32, {m, n}, {0, 1});
    const auto numbers = [](const TensorDesc& tensor, uint32_t step) {
      std::vector<float> floats(ElementCount(tensor));
      for (size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(i * step % 17) / 8 - 1;
      return floats;
    };
    const Bytes a_bytes = Scattered(a, numbers(a, 5)), b_bytes = Scattered(b, numbers(b, 7));
    const OperatorDesc product = Gemm(a, b, Floats({m, n}), 1, false, true);
    ExpectAllAgree(product, {a_bytes, b_bytes, {}});
    std::vector<float> row(n);
    for (uint32_t i = 0; i < n; ++i) row[i] = static_cast<float>(i % 5) - 2;
    Bytes c_bytes(c.total_bytes);
    std::memcpy(c_bytes.data(), row.data(), n * sizeof(float));
    ExpectAllAgree(
        With(product, {{"CTensor", c}, {"Beta", 1.0f}, {"FusedActivation", Activation("ACTIVATION_RELU")}}),
        {a_bytes, b_bytes, c_bytes});
    ExpectAllAgree(With(product, {{"FusedActivation", Activation("ACTIVATION_TANH")}}),
                   {a_bytes, b_bytes, {}});
  }
}

// So many rows that B is packed first, for all threads; rows of A with page-sized strides, and others; more
// steps than a block has. Sums are exact.
TEST(Gemm, ManyRows) {
  struct Sizes {
    uint32_t m, n, k;
  };
  for (const auto& [m, n, k] : {Sizes{140, 300, 1024}, Sizes{290, 70, 1500}, Sizes{1100, 50, 128}}) {
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      SCOPED_TRACE(StrCat(m, " x ", n, " x ", k));
      const auto scattered = [&](const TensorDesc& tensor, uint32_t step) {
        std::vector<Half> halves(ElementCount(tensor));
        std::vector<float> floats(halves.size());
        for (size_t i = 0; i < floats.size(); ++i) {
          floats[i] = static_cast<float>(i * step % 17) / 8 - 1;
          halves[i] = ToHalf(floats[i]);
        }
        return type == DataType::kFloat16 ? Scattered(tensor, halves) : Scattered(tensor, floats);
      };
      const TensorDesc a = Packed(type, {m, k}), b = Packed(type, {k, n}), output = Packed(type, {m, n});
      const std::vector<Bytes> inputs = {scattered(a, 5), scattered(b, 7), {}};
      ExpectAllAgree(Gemm(a, b, output), inputs);
      ExpectAllAgree(Gemm(a, b, output, 0.5f), inputs);
    }
  }
}

// A single-vector column remainder after panels of several vectors, and rows divided into tiles of different
// heights.
TEST(Gemm, AVectorBehindPanels) {
  for (const uint32_t n : {16u, 64u, 160u}) {
    for (const uint32_t m : {15u, 16u, 41u}) {
      for (const uint32_t k : {3u, 64u, 700u}) {
        SCOPED_TRACE(StrCat(m, " x ", n, " x ", k));
        const auto numbers = [](const TensorDesc& tensor, uint32_t step) {
          std::vector<float> floats(ElementCount(tensor));
          for (size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(i * step % 17) / 8 - 1;
          return Scattered(tensor, floats);
        };
        const TensorDesc a = Packed(DataType::kFloat32, {m, k}), b = Packed(DataType::kFloat32, {k, n});
        ExpectAllAgree(Gemm(a, b, Packed(DataType::kFloat32, {m, n})), {numbers(a, 5), numbers(b, 7), {}});
      }
    }
  }
}

// Rows and columns of one step are contiguous, whichever operand is transposed.
TEST(Gemm, OneStep) {
  constexpr uint32_t kN = 97;
  for (const uint32_t m : {3u, 15u, 96u}) {
    for (const DataType type : {DataType::kFloat32, DataType::kFloat16}) {
      for (const uint32_t a_stride : {0u, 1u, 1024u}) {
        for (const bool trans_b : {false, true}) {
          for (const uint32_t column_stride : {1u, 2u}) {
            SCOPED_TRACE(StrCat(m, " rows ", a_stride, " apart, columns ", column_stride, " apart"));
            const TensorDesc a = Strided(type, {m, 1}, {a_stride, 1});
            const TensorDesc b = trans_b ? Packed(type, {kN, 1}) : Strided(type, {1, kN}, {1, 1});
            const TensorDesc output = Strided(type, {m, kN}, {kN * column_stride, column_stride});
            const auto scattered = [&](const TensorDesc& tensor, bool one) {
              std::vector<Half> halves(ElementCount(tensor));
              std::vector<float> floats(halves.size());
              for (size_t i = 0; i < floats.size(); ++i) {
                floats[i] = one ? 3 : static_cast<float>(i % 61) - 30;
                halves[i] = ToHalf(floats[i]);
              }
              return type == DataType::kFloat16 ? Scattered(tensor, halves) : Scattered(tensor, floats);
            };
            ExpectAllAgree(Gemm(a, b, output, 1, false, trans_b),
                           {scattered(a, a_stride == 0), scattered(b, false), {}});
          }
        }
      }
    }
  }
}

TEST(Gemm, HalvesAddUpAsFloats) {
  // FLOAT16 cannot represent 2049: a sum kept in FLOAT16 would stay at 2048.
  const uint32_t k = 4096;
  const TensorDesc a = Packed(DataType::kFloat16, {1, k}), b = Packed(DataType::kFloat16, {k, 1});
  const TensorDesc output = Packed(DataType::kFloat16, {1, 1});
  const std::vector<Half> ones(k, ToHalf(1));
  const RunResult result = ExpectAllAgree(Gemm(a, b, output), {Scattered(a, ones), Scattered(b, ones), {}});
  EXPECT_EQ(ToFloat(Gathered<Half>(output, result.outputs[0])[0]), 4096);
}

TEST(Gemm, ActivationsSeeTheUnroundedNumber) {
  // 1024 * 64 overflows FLOAT16, but the activation is applied before rounding.
  const TensorDesc one = Packed(DataType::kFloat16, {1, 1});
  const Bytes a = Scattered(one, std::vector<Half>{ToHalf(1024)}),
              b = Scattered(one, std::vector<Half>{ToHalf(128)});
  const OperatorDesc desc =
      With(Gemm(one, one, one),
           {{"FusedActivation", Activation("ACTIVATION_LINEAR", {{"Alpha", 0.25f}, {"Beta", 1.0f}})}});
  const RunResult result = ExpectAllAgree(desc, {a, b, {}});
  EXPECT_EQ(ToFloat(Gathered<Half>(one, result.outputs[0])[0]), 32768);
}

TEST(Gemm, ClipAndRelu) {
  const TensorDesc a = Floats({1, 1}), b = Floats({1, 4});
  const std::vector<Bytes> inputs = {
      Scattered(a, std::vector<float>{1}), Scattered(b, std::vector<float>{-5, -1, 1, 5}), {}};
  const OperatorDesc plain = Gemm(a, b, Floats({1, 4}));
  EXPECT_EQ(Product(With(plain, {{"FusedActivation", Activation("ACTIVATION_RELU")}}), inputs),
            (std::vector<float>{0, 0, 1, 5}));
  EXPECT_EQ(Product(With(plain, {{"FusedActivation",
                                  Activation("ELEMENT_WISE_CLIP", {{"Min", -2.0f}, {"Max", 2.0f}})}}),
                    inputs),
            (std::vector<float>{-2, -1, 1, 2}));
}

// Large enough for a library, which may fuse the addition of a row and RELU.
template <typename T>
void ExpectReluKeepsNan(DataType type, T (*from)(float), float (*to)(T)) {
  constexpr uint32_t kSize = 128;
  const std::vector<uint32_t> sizes = {kSize, kSize};
  const TensorDesc square = Packed(type, sizes), row = Strided(type, sizes, {0, 1});
  std::vector<T> a(kSize * kSize, from(1)), added;
  const std::vector<T> b = a;
  a[3 * kSize] = from(std::nanf(""));
  for (uint32_t i = 0; i < kSize * kSize; ++i) added.push_back(from(i % 2 == 0 ? -200.0f : 2.0f));
  const OperatorDesc desc =
      With(Gemm(square, square, square),
           {{"CTensor", row}, {"Beta", 1.0f}, {"FusedActivation", Activation("ACTIVATION_RELU")}});
  const RunResult result =
      ExpectAllAgree(desc, {Scattered(square, a), Scattered(square, b), Scattered(row, added)});
  const auto numbers = Gathered<T>(square, result.outputs[0]);
  for (uint32_t i = 0; i < kSize * kSize; ++i) {
    const float got = to(numbers[i]);
    if (i / kSize == 3) {
      ASSERT_TRUE(std::isnan(got)) << i;
    } else {
      ASSERT_EQ(got, i % 2 == 0 ? 0 : 130) << i;
    }
  }
}

TEST(Gemm, ReluOfARowAddedKeepsNan) {
  ExpectReluKeepsNan<Half>(DataType::kFloat16, ToHalf, ToFloat);
  const auto same = [](float number) { return number; };
  ExpectReluKeepsNan<float>(DataType::kFloat32, same, same);
}

TEST(GemmCheck, Refusals) {
  const auto message = [](const OperatorDesc& desc) {
    return ImplementationOf(desc).check(desc, kLatestFeatureLevel).message();
  };
  EXPECT_EQ(message(Gemm(Floats({2, 3}), Floats({3, 4}), Floats({2, 4}))), "");
  EXPECT_EQ(
      message(Gemm(Floats({2, 3}), Floats({4, 4}), Floats({2, 4}))),
      "GEMM: BTensor.Sizes[0] is 4 but must be 3, that of ATensor.Sizes[1]: the product runs over both (K)");
  EXPECT_EQ(
      message(Gemm(Floats({2, 3}), Floats({4, 4}), Floats({2, 4}), 1, false, true)),
      "GEMM: BTensor.Sizes[1] is 4 but must be 3, that of ATensor.Sizes[1]: the product runs over both (K)");
  EXPECT_EQ(message(Gemm(Floats({5, 2, 3}), Floats({1, 3, 4}), Floats({5, 2, 4}))),
            "GEMM: BTensor.Sizes[0] is 1 but must be 5, that of ATensor.Sizes[0]: every matrix of A has one "
            "of B (a "
            "stride of 0 repeats one)");
  EXPECT_EQ(message(Gemm(Floats({2, 3}), Floats({3, 4}), Floats({2, 5}))),
            "GEMM: OutputTensor.Sizes is {2,5} but must be {2,4}: it is the product of ATensor and BTensor");
}

}  // namespace
}  // namespace anydml::testing
