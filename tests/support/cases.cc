#include "support/cases.h"

#include <gtest/gtest.h>

#include <chrono>
#include <iostream>

namespace anydml::testing {
std::span<const CaseFamily> AllCaseFamilies() {
  static const CaseFamily kFamilies[] = {
#define ANYDML_FAMILY(name) family::name::Cases(),
#include "ops/case_families.generated.h"
#undef ANYDML_FAMILY
  };
  return kFamilies;
}

Case MakeCase(const CaseFamily& family, OperatorType type, uint64_t seed, uint32_t least) {
  // Operators get different decisions from one seed.
  std::mt19937_64 random(seed * 1000 + static_cast<uint64_t>(type));
  Bytes decisions(512);
  for (uint8_t& byte : decisions) byte = static_cast<uint8_t>(random());
  CaseMaker make(ByteSource(decisions.data(), decisions.size()), least);
  return family.make(type, make);
}

void ForCases(const CaseFamily& family, double seconds, const std::function<void(const Case&)>& body) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(TestSeconds(seconds));
  uint64_t cases = 0;
  for (uint64_t seed = TestSeed(); seed == TestSeed() || Clock::now() < end; ++seed) {
    for (const OperatorType type : family.operators) {
      if (seed != TestSeed() && Clock::now() >= end) break;
      const Case problem = MakeCase(family, type, seed);
      SCOPED_TRACE(StrCat("ANYDML_TEST_SEED=", seed, " ", Describe(problem)));
      body(problem);
      ++cases;
      if (::testing::Test::HasFailure()) return;
    }
  }
  std::cout << family.name << ": " << cases << " cases of " << family.operators.size() << " operators\n";
}

std::string Describe(const Case& problem) {
  std::string text = problem.desc.schema->name;
  for (const TensorDesc* tensor : problem.desc.inputs()) {
    text += tensor == nullptr ? " -" : StrCat(" ", Name(tensor->type), SizesToString(*tensor));
  }
  text += " ->";
  for (const TensorDesc* tensor : problem.desc.outputs()) {
    text += tensor == nullptr ? " -" : StrCat(" ", Name(tensor->type), SizesToString(*tensor));
  }
  return StrCat(text, problem.in_place ? " in place" : "");
}

}  // namespace anydml::testing
