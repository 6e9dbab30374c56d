// Activations with arbitrary parameters: intermediate results must not overflow, underflow or cancel if the
// true value is a finite number. Compares with the formulas in long double, whose range is far larger.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "ops/element/expect_values.h"
#if ANYDML_HAVE_HIGHWAY
#include "support/simd_targets.h"
#endif

namespace anydml::testing {
namespace {

using Long = long double;

constexpr double kUlps = 4;  // docs/determinism.md

// How arguments are drawn, so that many are where the function is steep.
enum class Near { kNothing, kAlpha, kInverseAlpha, kInverseBeta };

struct Subject {
  const char* name;
  std::vector<const char*> fields;  // of FLOAT
  Near near;
  Long (*truth)(Long x, Long p, Long q);
  double reference_ulps = 1;
};

Long TrueSoftplus(Long t) { return std::max(t, Long{0}) + std::log1p(std::exp(-std::fabs(t))); }

std::vector<Subject> Subjects() {
  using L = Long;
  return {
      {"ACTIVATION_ELU",
       {"Alpha"},
       Near::kNothing,
       [](L x, L p, L) { return x >= 0 ? x : p * std::expm1(x); }},
      {"ACTIVATION_SCALED_ELU",
       {"Alpha", "Gamma"},
       Near::kNothing,
       [](L x, L p, L q) { return x > 0 ? q * x : q * p * std::expm1(x); }},
      {"ACTIVATION_CELU",
       {"Alpha"},
       Near::kAlpha,
       [](L x, L p, L) { return std::max(x, L{0}) + std::min(L{0}, p * std::expm1(x / p)); }},
      {"ACTIVATION_SCALED_TANH",
       {"Alpha", "Beta"},
       Near::kInverseBeta,
       [](L x, L p, L q) { return p * std::tanh(q * x); }},
      {"ACTIVATION_PARAMETRIC_SOFTPLUS",
       {"Alpha", "Beta"},
       Near::kInverseBeta,
       [](L x, L p, L q) { return p * TrueSoftplus(q * x); }},
      {"ACTIVATION_SOFTPLUS",
       {"Steepness"},
       Near::kInverseAlpha,
       [](L x, L p, L) { return TrueSoftplus(p * x) / p; },
       /*reference_ulps=*/2},  // the inverse of the steepness is a FLOAT32
      {"ACTIVATION_SWISH",
       {"SigmoidInputScale"},
       Near::kInverseAlpha,
       [](L x, L p, L) { return x / (1 + std::exp(-p * x)); }},
  };
}

class Drawing {
 public:
  explicit Drawing(uint64_t seed) : random_(seed) {}

  Long Uniform(Long low, Long high) {
    return low + (high - low) * static_cast<Long>(random_() >> 11) * 0x1p-53L;
  }
  bool OneIn(uint32_t n) { return random_() % n == 0; }

  // Of any finite magnitude, or near 1.
  float Parameter() {
    const int range = OneIn(2) ? 8 : 40;
    const int exponent =
        static_cast<int>(OneIn(3) ? Uniform(-149, 128) : Uniform(-range, static_cast<Long>(range)));
    const Long number = std::ldexp(Uniform(1, 2), exponent);
    const auto magnitude = std::min(static_cast<float>(number), std::numeric_limits<float>::max());
    return OneIn(2) ? magnitude : -magnitude;
  }

  float Argument(Near near, float p, float q) {
    if (near == Near::kNothing) return OneIn(2) ? Parameter() : static_cast<float>(Uniform(-110, 10));
    if (OneIn(4)) return Parameter();
    const Long t =
        OneIn(4) ? std::ldexp(Uniform(-1, 1), -static_cast<int>(Uniform(0, 60))) : Uniform(-210, 210);
    const Long x = near == Near::kAlpha ? t * p : t / (near == Near::kInverseBeta ? q : p);
    const Long most = std::numeric_limits<float>::max();
    return static_cast<float>(std::clamp(x, -most, most));
  }

 private:
  std::mt19937_64 random_;
};

// In units of the spacing of floats at `truth`; infinity counts as the next float.
double UlpsFrom(float got, Long truth) {
  if (std::isnan(got)) return kInf;
  const auto value = std::isinf(got) ? std::copysign(0x1p128L, Long{got}) : Long{got};
  const Long bounded = std::clamp(truth, -0x1p128L, 0x1p128L);
  const int exponent = bounded == 0 ? -126 : std::clamp(std::ilogb(bounded), -126, 127);
  return static_cast<double>(std::fabs(value - bounded) / std::ldexp(Long{1}, exponent - 23));
}

// Runs every implementation on the argument tensor `x`.
void ExpectTruth(const Subject& subject, const std::vector<float>& x, float p, float q) {
  const TensorDesc tensor = Packed(DataType::kFloat32, {static_cast<uint32_t>(x.size())});
  OperatorDesc desc = MakeDesc(subject.name, {{"InputTensor", tensor}, {"OutputTensor", tensor}});
  for (size_t i = 0; i < subject.fields.size(); ++i) {
    desc.fields[static_cast<size_t>(FindField(*desc.schema, subject.fields[i]))] = i == 0 ? p : q;
  }
  for (const char* name : RunnableImplementations(desc)) {
    const RunResult result = RunOperator(desc, {Scattered(tensor, x)}, {.implementation = name});
    if (result.implementation.empty()) continue;  // the implementation does not take the problem
    const bool is_reference = std::string(name) == "cpu.reference";
    const std::vector<float> got = Gathered<float>(tensor, result.outputs[0]);
    for (size_t i = 0; i < x.size(); ++i) {
      const Long truth = subject.truth(x[i], p, q);
      ASSERT_LE(UlpsFrom(got[i], truth), is_reference ? subject.reference_ulps : kUlps)
          << name << ", " << subject.name << " of " << x[i] << " with the parameters " << p << ", " << q
          << " is " << got[i] << ", should be " << static_cast<double>(truth);
    }
  }
}

void ExpectTruthOfAny(const Subject& subject) {
  constexpr size_t kArguments = 67;  // vectors and a remainder
  Drawing draw(TestSeed());
  const int count = TestIterations(200);
  for (int i = 0; i < count && !::testing::Test::HasFailure(); ++i) {
    float p = draw.Parameter(), q = draw.Parameter();
    // The steepness is the inverse of a factor, which is a normal number only in this range
    // (docs/determinism.md).
    while (subject.fields[0] == std::string("Steepness") &&
           (std::fabs(p) < 0x1p-126f || std::fabs(p) > 0x1p126f)) {
      p = draw.Parameter();
    }
    std::vector<float> x(kArguments);
    for (float& argument : x) argument = draw.Argument(subject.near, p, q);
    ExpectTruth(subject, x, p, q);
  }
}

TEST(ExtremeParameters, ResultsAreAsExactAsAnyOthers) {
  SCOPED_TRACE(StrCat("ANYDML_TEST_SEED=", TestSeed()));
  std::printf("ANYDML_TEST_SEED=%llu\n", static_cast<unsigned long long>(TestSeed()));
  for (const Subject& subject : Subjects()) {
#if ANYDML_HAVE_HIGHWAY
    ForEachTarget([&] { ExpectTruthOfAny(subject); });
#else
    ExpectTruthOfAny(subject);
#endif
  }
}

// Cases in which an intermediate result once overflowed, underflowed or lost its digits. Expected values were
// computed with 400 bits and rounded.
TEST(ExtremeParameters, Known) {
  Expect("ACTIVATION_CELU", {F32({-22.258392f})}, {{"Alpha", -0.25f}}, {F32({-1.1607211e38f})}, 4);
  Expect("ACTIVATION_CELU", {F32({-1e-20f})}, {{"Alpha", 1e30f}}, {F32({-1e-20f})}, 4);
  Expect("ACTIVATION_CELU", {F32({-1, kInf, 0})}, {{"Alpha", kInf}}, {F32({kNan, kNan, kNan})}, 4);
  Expect("ACTIVATION_CELU", {F32({-kInf, kInf, -300})}, {{"Alpha", -1.0f}}, {F32({-kInf, kInf, -kInf})}, 4);
  Expect("ACTIVATION_SCALED_ELU", {F32({-1e-40f})}, {{"Alpha", 1e20f}, {"Gamma", 1e20f}},
         {F32({-0.99999464f})}, 4);
  Expect("ACTIVATION_SCALED_TANH", {F32({1e-20f})}, {{"Alpha", 1e30f}, {"Beta", 1e-30f}}, {F32({1e-20f})}, 4);
  Expect("ACTIVATION_PARAMETRIC_SOFTPLUS", {F32({1.5f})}, {{"Alpha", 0x1.8p-148f}, {"Beta", 3e38f}},
         {F32({0x1.fbd046p-20f})}, 4);
}

// (a + b) / 2 where a + b overflows.
TEST(ExtremeParameters, MeanOfLargeNumbers) {
  const float max = std::numeric_limits<float>::max();
  Expect("ELEMENT_WISE_MEAN",
         {F32({max, -max, max, kInf, kInf, 0x1p-149f, 3e38f}),
          F32({max, -max, -max, max, -kInf, 0x1p-149f, 1e38f})},
         {}, {F32({max, -max, 0, kInf, kNan, 0x1p-149f, 2e38f})});
}

// Exponents that FLOAT32 cannot represent, for powers that nearly overflow.
TEST(ExtremeParameters, LargeWholeExponents) {
  const TensorDesc tensor = Packed(DataType::kFloat32, {2048});
  TensorDesc whole = tensor;
  whole.type = DataType::kInt32;
  std::vector<float> bases;
  std::vector<int32_t> exponents;
  for (uint32_t i = 0; i < 2048; ++i) {
    const int steps = 1 + static_cast<int>(i / 64);
    const float base =
        i % 2 == 0 ? 1 + static_cast<float>(steps) * 0x1p-23f : 1 - static_cast<float>(steps) * 0x1p-24f;
    const auto most = static_cast<int32_t>(std::trunc(128 / std::log2(Long{base})));
    bases.push_back(base);
    exponents.push_back(most > 0 ? most - static_cast<int32_t>(i % 64) : most + static_cast<int32_t>(i % 64));
  }
  const OperatorDesc desc = MakeDesc(
      "ELEMENT_WISE_POW", {{"InputTensor", tensor}, {"ExponentTensor", whole}, {"OutputTensor", tensor}});
  for (const char* name : RunnableImplementations(desc)) {
    const RunResult result =
        RunOperator(desc, {Scattered(tensor, bases), Scattered(whole, exponents)}, {.implementation = name});
    if (result.implementation.empty()) continue;  // the implementation does not take the problem
    const std::vector<float> got = Gathered<float>(tensor, result.outputs[0]);
    for (size_t i = 0; i < bases.size(); ++i) {
      const Long truth = std::pow(Long{bases[i]}, static_cast<Long>(exponents[i]));
      ASSERT_LE(UlpsFrom(got[i], truth), kUlps) << name << ": " << bases[i] << " to the " << exponents[i];
    }
  }
}

}  // namespace
}  // namespace anydml::testing
