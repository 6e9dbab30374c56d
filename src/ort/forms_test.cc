// Operators in all their forms: every model that onnxruntime runs without the plugin also runs with it, and
// the plugin claims nothing that AnyDML cannot run for the given sizes.
#include <gtest/gtest.h>

#include "ort/compare_for_tests.h"
#include "ort/forms_for_tests.h"

namespace anydml::ort {
namespace {

// Forms, and the minimum number that AnyDML claims: with known sizes, with ranks only, with types only.
struct Family {
  const char* name;
  Forms (*forms)();
  size_t claimed[3];
};
void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

class OrtForms : public testing::TestWithParam<Family> {};

TEST_P(OrtForms, RunAsWithoutThePlugin) {
  std::string why_not;
  const std::unique_ptr<Comparison> comparison = Comparison::Create(&why_not);
  if (comparison == nullptr) GTEST_SKIP() << why_not;
  using Known = Comparison::Known;
  const Known all[] = {Known::kSizes, Known::kRanks, Known::kTypes};
  for (size_t i = 0; i < std::size(all); ++i) {
    size_t claimed = 0;
    for (const Form& form : GetParam().forms()) {
      const onnx::Model model = Comparison::With(form.model, all[i]);
      const Comparison::Outcome outcome = comparison->Run(model, form.inputs);
      EXPECT_EQ(outcome.difference, "") << form.name << ", " << Comparison::Name(all[i]);
      claimed += outcome.claimed ? 1 : 0;
    }
    EXPECT_GE(claimed, GetParam().claimed[i]) << Comparison::Name(all[i]);
  }
}

TEST(OrtDecoder, IsClaimed) {
  std::string why_not;
  const std::unique_ptr<Comparison> comparison = Comparison::Create(&why_not);
  if (comparison == nullptr) GTEST_SKIP() << why_not;
  for (const Form& form : {DecoderLayer(), DecoderCache()}) {
    const Comparison::Outcome outcome = comparison->Run(form.model, form.inputs);
    EXPECT_EQ(outcome.difference, "") << form.name;
    EXPECT_EQ(outcome.refused, "") << form.name;
    EXPECT_TRUE(outcome.claimed) << form.name;
  }
}

INSTANTIATE_TEST_SUITE_P(, OrtForms,
                         testing::Values(Family{"GroupQuery", GroupQueryForms, {12, 0, 0}},
                                         Family{"MultiHead", MultiHeadForms, {12, 10, 12}},
                                         Family{"Attention", AttentionForms, {17, 15, 15}},
                                         Family{"Rotary", RotaryForms, {11, 6, 0}},
                                         Family{"Normalization", NormalizationForms, {32, 30, 30}},
                                         Family{"Expert", ExpertForms, {4, 4, 4}},
                                         Family{"Matrix", MatrixForms, {20, 20, 20}},
                                         Family{"Quantized", QuantizedForms, {70, 70, 70}}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace anydml::ort
