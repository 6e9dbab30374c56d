// Every implementation of every operator against the reference, on random cases of all families.
#include <gtest/gtest.h>

#include <map>

#include "support/cases.h"

namespace anydml::testing {

void PrintTo(const CaseFamily& family, std::ostream* out) { *out << family.name; }

namespace {

constexpr double kSeconds = 2;  // for each family

TEST(Cases, EveryImplementedOperatorHasSome) {
  std::map<uint32_t, int> families;
  for (const CaseFamily& family : AllCaseFamilies()) {
    for (const OperatorType type : family.operators) {
      ++families[static_cast<uint32_t>(type)];
      EXPECT_NE(FindImplementation(static_cast<uint32_t>(type)), nullptr) << FindOperator(type)->name;
    }
  }
  for (const Operator* op : ImplementedOperators()) {
    EXPECT_EQ(families[op->type], 1) << FindOperator(op->type)->name
                                     << " must be in one family of AllCaseFamilies()";
  }
}

TEST(Cases, AreOfTheirOperatorAndTheSameForASeed) {
  for (const CaseFamily& family : AllCaseFamilies()) {
    for (const OperatorType type : family.operators) {
      const Case once = MakeCase(family, type, TestSeed()), again = MakeCase(family, type, TestSeed());
      EXPECT_EQ(once.desc.schema, FindOperator(type)) << family.name;
      EXPECT_EQ(Describe(once), Describe(again));
      EXPECT_EQ(once.inputs, again.inputs) << Describe(once);
    }
  }
}

class CasesOf : public ::testing::TestWithParam<CaseFamily> {};

TEST_P(CasesOf, AgreeWithTheReference) {
  ForCases(GetParam(), kSeconds,
           [](const Case& problem) { ExpectAllAgree(problem.desc, problem.inputs, problem.in_place); });
}

INSTANTIATE_TEST_SUITE_P(Families, CasesOf,
                         ::testing::ValuesIn(AllCaseFamilies().begin(), AllCaseFamilies().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace anydml::testing
