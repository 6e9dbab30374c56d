// The functions of math-inl.h on every SIMD target of this machine and on one lane, against the C library in
// double precision: at all exponents, at all FLOAT16 numbers, and densely where formulas and results change.
// Longer than most files: Highway compiles it once per target, with the table of all functions.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "base/half.h"
#include "ops/numbers/math/lane_math.h"
#include "support/operator_runner.h"

// Functions of one and of two operands. (clang-format never comes to rest on them.)
// clang-format off
#define ANYDML_UNARY(F)                                                                                  \
  F(Exp) F(Expm1) F(Log) F(Log1p) F(Sin) F(Cos) F(Tan) F(Asin) F(Acos) F(Atan) F(Sinh) F(Cosh) F(Tanh)   \
  F(Asinh) F(Acosh) F(Atanh) F(Erf) F(ErfOfHalf) F(Sigmoid) F(Gelu) F(GeluOfHalf) F(Softplus)      \
  F(NormalExp)
#define ANYDML_BINARY(F) F(Pow) F(Atan2) F(Fmod)
// clang-format on

namespace anydml::testing {
enum class Function {
#define ANYDML_NAME(name) k##name,
  ANYDML_UNARY(ANYDML_NAME) ANYDML_BINARY(ANYDML_NAME)
#undef ANYDML_NAME
};
}  // namespace anydml::testing

#if ANYDML_HAVE_HIGHWAY
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/numbers/math/math_test_targets-inl.h"
#include <hwy/foreach_target.h>

#include "ops/numbers/math/math_test_targets-inl.h"
#include "support/simd_targets.h"
#endif

namespace anydml::testing {
namespace {

#if ANYDML_HAVE_HIGHWAY
HWY_EXPORT(EvaluateVectors);
HWY_EXPORT(IsFused);
#endif

using Floats = std::vector<float>;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kMax = std::numeric_limits<float>::max();

float EvaluateLane(Function function, float x, float y) {
  const lane::Tag<float> d;
  switch (function) {
#define ANYDML_CASE(name) \
  case Function::k##name: \
    return lane::Canonical(d, lane::name(d, x));
    ANYDML_UNARY(ANYDML_CASE)
#undef ANYDML_CASE
#define ANYDML_CASE(name) \
  case Function::k##name: \
    return lane::Canonical(d, lane::name(d, x, y));
    ANYDML_BINARY(ANYDML_CASE)
#undef ANYDML_CASE
  }
  return 0;
}

// Calls body(name, fused, results) for one lane and for every SIMD target.
template <typename Body>
void OnEveryForm(Function function, const Floats& x, const Floats& y, Body&& body) {
  Floats results(x.size());
  for (size_t i = 0; i < x.size(); ++i) results[i] = EvaluateLane(function, x[i], y[i]);
  body("one lane", true, results);
#if ANYDML_HAVE_HIGHWAY
  constexpr size_t kMostLanes = 64;
  Floats padded_x = x, padded_y = y;
  const size_t size = (x.size() + kMostLanes - 1) / kMostLanes * kMostLanes;
  padded_x.resize(size);
  padded_y.resize(size);
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    WithTarget(target, [&] {
      Floats padded(size);
      HWY_DYNAMIC_DISPATCH(EvaluateVectors)(function, padded_x.data(), padded_y.data(), padded.data(), size);
      padded.resize(x.size());
      body(hwy::TargetName(target), HWY_DYNAMIC_DISPATCH(IsFused)(), padded);
    });
  }
#endif
}

double TrueSigmoid(double x, double) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

double TrueSoftplus(double x, double) {
  return std::isnan(x) ? x : std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x)));
}

double TrueGelu(double x, double) {
  if (x == -std::numeric_limits<double>::infinity()) return -0.0;  // the limit
  return 0.5 * x * std::erfc(-x * 0.70710678118654752440);
}

struct Subject {
  Function function;
  const char* name;
  double (*truth)(double x, double y);
  double ulps;  // promised
  Floats edges;
  bool binary = false;
};

// Where results begin to overflow or underflow, and where formulas change.
std::vector<Subject> Subjects() {
  using D = double;
  using F = Function;
  const float pi = 0x1.921fb6p1f;
  const Floats angles = {pi / 4, pi / 2, pi, 3 * pi / 2, 2 * pi, 0x1p17f, 0x1.8p16f, 16367173.0f * 0x1p72f};
  return {
      {F::kExp, "Exp", [](D x, D) { return std::exp(x); }, 2, {88.72284f, -87.33655f, -103.97208f}},
      {F::kExpm1, "Expm1", [](D x, D) { return std::expm1(x); }, 2, {88.72284f, -17.33f, 0x1p-25f}},
      {F::kLog, "Log", [](D x, D) { return std::log(x); }, 2, {1.0f, 2.0f / 3, 4.0f / 3}},
      {F::kLog1p, "Log1p", [](D x, D) { return std::log1p(x); }, 2, {-1.0f, -1.0f / 3, 1.0f / 3, 0x1p24f}},
      {F::kSin, "Sin", [](D x, D) { return std::sin(x); }, 2, angles},
      {F::kCos, "Cos", [](D x, D) { return std::cos(x); }, 2, angles},
      {F::kTan, "Tan", [](D x, D) { return std::tan(x); }, 2, angles},
      {F::kAsin, "Asin", [](D x, D) { return std::asin(x); }, 2, {0.55f, 1.0f}},
      {F::kAcos, "Acos", [](D x, D) { return std::acos(x); }, 2, {0.55f, -0.55f, -1.0f}},
      {F::kAtan, "Atan", [](D x, D) { return std::atan(x); }, 2, {1.0f, 0x1p25f}},
      {F::kSinh, "Sinh", [](D x, D) { return std::sinh(x); }, 2, {0x1p-12f, 0.3466f, 88.72f, 89.416f, 89.5f}},
      {F::kCosh, "Cosh", [](D x, D) { return std::cosh(x); }, 2, {0.3466f, 88.72f, 89.416f, 89.5f}},
      {F::kTanh, "Tanh", [](D x, D) { return std::tanh(x); }, 2, {0.1733f, 0x1.09e4c2p-1f, 9.01f, 9.1f}},
      {F::kAsinh, "Asinh", [](D x, D) { return std::asinh(x); }, 2, {0x1p-12f, 0x1p20f}},
      {F::kAcosh, "Acosh", [](D x, D) { return std::acosh(x); }, 2, {1.0f, 0x1p20f}},
      {F::kAtanh, "Atanh", [](D x, D) { return std::atanh(x); }, 2, {0x1p-12f, 1.0f}},
      {F::kErf, "Erf", [](D x, D) { return std::erf(x); }, 2, {0.2929f, 3.92f, 3.93f}},
      {F::kSigmoid, "Sigmoid", TrueSigmoid, 2, {-0x1.69c008p-12f, -88.0f, -103.97f, 17.0f, 30.0f, -105.0f}},
      {F::kGelu, "Gelu", TrueGelu, 4, {-3.0f, -12.98f, -14.1f, -14.4f, 5.5f}},
      {F::kSoftplus, "Softplus", TrueSoftplus, 4, {1.0986123f, -88.0f, -103.97f, 17.0f}},
      {F::kPow, "Pow", [](D x, D y) { return std::pow(x, y); }, 4, {}, true},
      {F::kAtan2, "Atan2", [](D y, D x) { return std::atan2(y, x); }, 2, {}, true},
      {F::kFmod, "Fmod", [](D x, D y) { return std::fmod(x, y); }, 0, {}, true},
  };
}

void AppendAround(float x, int count, Floats& to) {
  const auto bits = std::bit_cast<uint32_t>(std::fabs(x));
  for (int64_t i = -count; i <= count; ++i) {
    if (int64_t{bits} + i < 0) continue;
    const float near = std::bit_cast<float>(static_cast<uint32_t>(bits + i));
    to.push_back(near);
    to.push_back(-near);
  }
}

// One operand: evenly spaced bit patterns, every FLOAT16 number, and the neighbourhood of edges.
Floats Operands(const Subject& subject) {
  std::mt19937_64 random(TestSeed());
  Floats x;
  const uint64_t count = TestIterations(1 << 17);
  const uint64_t step = (uint64_t{1} << 32) / count;
  for (uint64_t i = 0; i < count; ++i) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(i * step + random() % step)));
  }
  for (uint32_t i = 0; i < 65536; ++i) x.push_back(ToFloat(Half{static_cast<uint16_t>(i)}));
  for (float edge : subject.edges) AppendAround(edge, 500, x);
  for (float edge : {0.0f, 0x1p-126f, 0x1p-23f, 0.5f, 1.0f, 2.0f, kMax, kInf}) AppendAround(edge, 500, x);
  return x;
}

const Floats kGrid = {
    0,         1,       2,           3,           0.5f,           1.5f,          2.5f,   10,
    1e30f,     kMax,    kInf,        kNan,        0.25f,          1e-3f,         1e-40f, 0x1p-149f,
    0x1p-126f, 0x1p24f, 0x1p24f - 1, 0x1p23f + 1, 0x1.fffffep-1f, 0x1.000002p0f, 127,    128,
    149,       150,     0x1p31f,     0x1.9p105f,  0x1.6bae3ap106f};

// Two operands: a grid with both signs, and pairs whose powers (or quotients) are mostly finite.
void AppendPairs(Floats& x, Floats& y) {
  for (float a : kGrid) {
    for (float b : kGrid) {
      for (int signs = 0; signs < 4; ++signs) {
        x.push_back(signs & 1 ? -a : a);
        y.push_back(signs & 2 ? -b : b);
      }
    }
  }
  std::mt19937_64 random(TestSeed());
  const int count = TestIterations(1 << 17);
  for (int i = 0; i < count; ++i) {
    float a = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (i % 4 == 1) a = 1 + static_cast<float>(random() % 65536) * 0x1p-16f;
    if (i % 4 == 2) a = std::bit_cast<float>(0x3F800000u + static_cast<uint32_t>(random() % 4096) - 2048u);
    const double scale = std::fabs(std::log2(std::fabs(double{a}))) + 1e-30;
    float b = static_cast<float>((static_cast<double>(random() % 65536) / 65536 * 280 - 150) / scale);
    if (i % 8 == 0) b = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (i % 8 == 5) b = a / static_cast<float>(1 + random() % 1000);
    if (i % 8 == 3) b = static_cast<float>(static_cast<int>(random() % 41) - 20);
    x.push_back(a);
    y.push_back(b);
  }
}

// The distance in units of the spacing of floats at `truth`; infinite if only one is a NaN, or if zeros
// differ in sign.
double UlpsApart(float got, double truth) {
  if (std::isnan(truth) || std::isnan(got)) return std::isnan(truth) && std::isnan(got) ? 0 : kInf;
  const float rounded = static_cast<float>(truth);
  if (got == rounded) return got != 0 || std::signbit(got) == std::signbit(rounded) ? 0 : kInf;
  if (got == 0 && std::signbit(got) != std::signbit(truth)) return kInf;
  // Infinity counts as the next float.
  const double value = std::isinf(got) ? std::copysign(0x1p128, got) : double{got};
  if (std::isinf(truth)) return kInf;
  const int exponent = std::max(std::ilogb(truth == 0 ? 0x1p-149 : truth), -126);
  return std::fabs(value - truth) / std::ldexp(1.0, exponent - 23);
}

TEST(ElementMath, IsWithinThePromisedUlpsAndFusedFormsAgree) {
  SCOPED_TRACE(StrCat("ANYDML_TEST_SEED=", TestSeed()));
  std::printf("%-10s %-10s %8s  %s\n", "function", "form", "ulps", "worst at");
  for (const Subject& subject : Subjects()) {
    SCOPED_TRACE(subject.name);
    Floats x, y;
    if (subject.binary) {
      AppendPairs(x, y);
    } else {
      x = Operands(subject);
      y.resize(x.size());
    }
    std::vector<double> truth(x.size());
    for (size_t i = 0; i < x.size(); ++i) truth[i] = subject.truth(x[i], y[i]);
    Floats first;
    OnEveryForm(subject.function, x, y, [&](const char* form, bool fused, const Floats& results) {
      double worst = -1;
      size_t at = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double ulps = UlpsApart(results[i], truth[i]);
        if (ulps > worst) worst = ulps, at = i;
      }
      std::printf("%-10s %-10s %8.3f  %a %a\n", subject.name, form, worst, x[at], y[at]);
      EXPECT_LE(worst, subject.ulps) << form << ": at " << x[at] << ", " << y[at] << " is " << results[at]
                                     << ", should be " << truth[at];
      if (first.empty()) first = results;
      if (!fused) return;
      size_t different = 0;
      while (different < x.size() &&
             std::bit_cast<uint32_t>(results[different]) == std::bit_cast<uint32_t>(first[different])) {
        ++different;
      }
      EXPECT_EQ(different, x.size()) << form << " differs from one lane at " << x[different] << ", "
                                     << y[different];
    });
  }
}

// An element's neighbours determine which of the two is used.
TEST(ElementMath, NormalExpIsExp) {
  SCOPED_TRACE(StrCat("ANYDML_TEST_SEED=", TestSeed()));
  std::mt19937_64 random(TestSeed());
  Floats x;
  for (float edge : {0.0f, 0x1p-126f, 0.34657359f, 86.6f}) AppendAround(edge, 500, x);
  for (int i = -124; i <= 124; ++i) AppendAround(static_cast<float>(i) * 0.34657359f, 50, x);
  const int count = TestIterations(1 << 17);
  for (int i = 0; i < count; ++i) {
    const float y = std::bit_cast<float>(static_cast<uint32_t>(random()));
    x.push_back(std::fabs(y) < 86.6f ? y : static_cast<float>(random() % (1 << 24)) * 0x1p-17f - 43);
  }
  const lane::Tag<float> d;
  OnEveryForm(Function::kNormalExp, x, x, [&](const char* form, bool fused, const Floats& y) {
    if (!fused) return;
    for (size_t i = 0; i < x.size(); ++i) {
      if (!lane::HaveNormalExp(d, x[i], 0.0f, 0.0f, 0.0f)) continue;
      ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(lane::Exp(d, x[i])))
          << form << " at " << x[i];
    }
  });
}

// Before they are rounded to FLOAT16, and as the bits of every number format.
void ExpectOfEveryHalf(Function function, const char* name, double (*truth_of)(double x, double y),
                       double limit) {
  Floats x;
  for (uint32_t i = 0; i < 65536; ++i) x.push_back(ToFloat(Half{static_cast<uint16_t>(i)}));
  Floats first;
  OnEveryForm(function, x, Floats(x.size()), [&](const char* form, bool fused, const Floats& y) {
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double truth = truth_of(x[i], 0);
      if (std::isnan(truth) || std::isinf(truth)) {
        EXPECT_EQ(std::isnan(y[i]), std::isnan(truth)) << x[i];
        EXPECT_EQ(std::isinf(y[i]), std::isinf(truth)) << x[i];
        continue;
      }
      EXPECT_EQ(std::signbit(y[i]), std::signbit(truth)) << x[i];
      const int exponent = std::max(std::ilogb(truth == 0 ? 0x1p-24 : truth), -14);
      worst = std::max(worst, std::fabs(y[i] - truth) / std::ldexp(1.0, exponent - 10));
    }
    std::printf("%s %-10s off by %.4f of the spacing of halves\n", name, form, worst);
    EXPECT_LE(worst, limit);
    if (first.empty()) first = y;
    if (!fused) return;
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), std::bit_cast<uint32_t>(first[i])) << form << " at " << x[i];
    }
  });
}

TEST(ElementMath, FunctionsOfEveryHalf) {
  ExpectOfEveryHalf(Function::kGeluOfHalf, "GeluOfHalf", TrueGelu, 0.05);
  ExpectOfEveryHalf(
      Function::kErfOfHalf, "ErfOfHalf", [](double x, double) { return std::erf(x); }, 0.01);
}

struct SpecialValue {
  Function function;
  float x, y, result;
};

TEST(ElementMath, SpecialValues) {
  using F = Function;
  const float pi = 0x1.921fb6p1f;
  const SpecialValue values[] = {
      {F::kExp, -kInf, 0, 0},
      {F::kExp, kInf, 0, kInf},
      {F::kExp, 0, 0, 1},
      {F::kExp, -0x1.9d1dap6f, 0, 0x1p-149f},
      {F::kExpm1, -kInf, 0, -1},
      {F::kExpm1, -0.0f, 0, -0.0f},
      {F::kExpm1, 0x1p-149f, 0, 0x1p-149f},
      {F::kLog, 0, 0, -kInf},
      {F::kLog, -0.0f, 0, -kInf},
      {F::kLog, -1, 0, kNan},
      {F::kLog, kInf, 0, kInf},
      {F::kLog, -kInf, 0, kNan},
      {F::kLog, 1, 0, 0},
      {F::kLog1p, -1, 0, -kInf},
      {F::kLog1p, -2, 0, kNan},
      {F::kLog1p, -0.0f, 0, -0.0f},
      {F::kLog1p, kInf, 0, kInf},
      {F::kSin, kInf, 0, kNan},
      {F::kSin, -0.0f, 0, -0.0f},
      {F::kCos, -kInf, 0, kNan},
      {F::kCos, 0, 0, 1},
      {F::kTan, kInf, 0, kNan},
      {F::kTan, -0.0f, 0, -0.0f},
      {F::kAsin, 1.5f, 0, kNan},
      {F::kAsin, -0.0f, 0, -0.0f},
      {F::kAsin, -1, 0, -pi / 2},
      {F::kAcos, 1, 0, 0},
      {F::kAcos, -1, 0, pi},
      {F::kAcos, -1.5f, 0, kNan},
      {F::kAtan, -kInf, 0, -pi / 2},
      {F::kSinh, -kInf, 0, -kInf},
      {F::kCosh, -kInf, 0, kInf},
      {F::kCosh, 0, 0, 1},
      {F::kTanh, -kInf, 0, -1},
      {F::kTanh, -0.0f, 0, -0.0f},
      {F::kAsinh, -kInf, 0, -kInf},
      {F::kAcosh, 0.5f, 0, kNan},
      {F::kAcosh, 1, 0, 0},
      {F::kAcosh, kInf, 0, kInf},
      {F::kAtanh, -1, 0, -kInf},
      {F::kAtanh, 2, 0, kNan},
      {F::kErf, -kInf, 0, -1},
      {F::kErf, -0.0f, 0, -0.0f},
      {F::kSigmoid, -kInf, 0, 0},
      {F::kSigmoid, kInf, 0, 1},
      {F::kSigmoid, 0, 0, 0.5f},
      {F::kGelu, -kInf, 0, -0.0f},
      {F::kGelu, kInf, 0, kInf},
      {F::kGelu, -0.0f, 0, -0.0f},
      {F::kSoftplus, -kInf, 0, 0},
      {F::kSoftplus, kInf, 0, kInf},
      {F::kPow, 0, 0, 1},
      {F::kPow, kNan, 0, 1},
      {F::kPow, 1, kNan, 1},
      {F::kPow, -2, 3, -8},
      {F::kPow, -2, 2, 4},
      {F::kPow, -8, 1.0f / 3, kNan},
      {F::kPow, -0.0f, -1, -kInf},
      {F::kPow, -0.0f, -2, kInf},
      {F::kPow, -0.0f, 0.5f, 0},
      {F::kPow, -1, kInf, 1},
      {F::kPow, -kInf, 3, -kInf},
      {F::kPow, -kInf, -3, -0.0f},
      {F::kPow, 0.5f, -kInf, kInf},
      {F::kPow, 2, -149, 0x1p-149f},
      {F::kPow, 2, kNan, kNan},
      {F::kAtan2, 0, -0.0f, pi},
      {F::kAtan2, -0.0f, 0, -0.0f},
      {F::kAtan2, kInf, -kInf, 3 * pi / 4},
      {F::kAtan2, -1, 0, -pi / 2},
      {F::kFmod, -6, 3, -0.0f},
      {F::kFmod, 5, kInf, 5},
      {F::kFmod, 5, 0, kNan},
      {F::kFmod, kInf, 5, kNan},
      {F::kFmod, kMax, 0x1p-149f, 0},
      {F::kFmod, 0x1p100f, 3, 1},
  };
  for (const auto& value : values) {
    const Floats x(1, value.x), y(1, value.y);
    const float expected = value.result;
    OnEveryForm(value.function, x, y, [&](const char* form, bool, const Floats& results) {
      EXPECT_EQ(std::bit_cast<uint32_t>(results[0]), std::bit_cast<uint32_t>(expected))
          << form << ", function " << static_cast<int>(value.function) << " of " << value.x << ", " << value.y
          << " is " << results[0] << ", should be " << expected;
    });
  }
}

// The conversions and roundings for which C++ and instructions differ at the edges.
TEST(ElementMath, OneLaneMeansWhatHighwayMeans) {
  const lane::Tag<int32_t> i;
  EXPECT_EQ(lane::ConvertTo(i, 0x1p31f), std::numeric_limits<int32_t>::max());
  EXPECT_EQ(lane::ConvertTo(i, -kInf), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(lane::ConvertTo(i, -1.9f), -1);
  EXPECT_EQ(lane::NearestInt(2.5f), 2);
  EXPECT_EQ(lane::Round(-3.5f), -4);
  EXPECT_EQ(lane::ShiftRight<4>(-17), -2);
  EXPECT_EQ(lane::ShiftLeft<31>(3), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(lane::Add(std::numeric_limits<int32_t>::max(), 1), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(lane::AndNot(0b1100, 0b1010), 0b0010);
  EXPECT_EQ(std::bit_cast<uint32_t>(lane::CopySign(kNan, -1.0f)), 0xFFC00000u);
  EXPECT_EQ(std::bit_cast<uint32_t>(lane::Abs(std::bit_cast<float>(0xFFC00001u))), 0x7FC00001u);
  EXPECT_EQ(lane::MulAdd(0x1.000002p0f, 0x1.000002p0f, -0x1.000004p0f), 0x1p-46f);
  EXPECT_EQ(lane::Sub(lane::Mul(0x1.000002p0f, 0x1.000002p0f), 0x1.000004p0f), 0.0f);
  EXPECT_EQ(std::bit_cast<uint32_t>(lane::Canonical(lane::Tag<float>(), std::bit_cast<float>(0xFF800001u))),
            0x7FC00000u);
}

}  // namespace
}  // namespace anydml::testing
