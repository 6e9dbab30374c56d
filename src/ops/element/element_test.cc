// Every implementation of every element-wise operator against the reference, for all types, ranks, layouts,
// attributes and optional tensors, in place and apart.
#include <gtest/gtest.h>

#include "ops/element/element_cases.h"
#include "ops/element/operators.h"

namespace anydml::testing {
namespace {

class ElementOperators : public ::testing::TestWithParam<OperatorType> {};

Bytes RandomDecisions(std::mt19937_64& random) {
  Bytes bytes(512);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

std::string Describe(const Case& c) {
  std::string text = c.desc.schema->name;
  for (const TensorDesc* tensor : c.desc.inputs()) {
    text += tensor == nullptr ? " -" : StrCat(" ", Name(tensor->type), SizesToString(*tensor));
  }
  for (const TensorDesc* tensor : c.desc.outputs()) {
    text += tensor == nullptr ? " -" : StrCat(" -> ", Name(tensor->type), SizesToString(*tensor));
  }
  return StrCat(text, c.in_place ? " in place" : "");
}

TEST_P(ElementOperators, AgreeWithTheReference) {
  const auto type = GetParam();
  for (int i = 0; i < TestIterations(60); ++i) {
    const uint64_t seed = TestSeed() + static_cast<uint64_t>(i);
    std::mt19937_64 random(seed * 1000 + static_cast<uint64_t>(type));
    const Bytes decisions = RandomDecisions(random);
    CaseMaker make(ByteSource(decisions.data(), decisions.size()));
    const Case c = MakeElementCase(type, make);
    SCOPED_TRACE(StrCat("ANYDML_TEST_SEED=", seed, " ", Describe(c)));
    ExpectAllAgree(c.desc, c.inputs, c.in_place);
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ElementOperators,
                         ::testing::ValuesIn(ElementOperatorTypes().begin(), ElementOperatorTypes().end()),
                         [](const auto& info) { return std::string(FindOperator(info.param)->name); });

}  // namespace
}  // namespace anydml::testing
