// A result depends on the description and the contents only; if an implementation is not exact, also on the
// implementation and on whether its SIMD target has fused multiply-add. Cases of all operators are run by
// every implementation that fits, for every SIMD target, with 1, 2 and 7 threads, more than once. Every
// implementation of every family must have been run.
#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "base/status.h"
#include "ops/operator.h"
#include "support/api_run.h"
#include "support/child_process.h"
#include "support/compare.h"
#include "support/every_target.h"
#include "support/operator_runner.h"
#include "support/problems.h"

namespace anydml::testing {
namespace {

using test::DmlHarness;

uint64_t Hash(const ApiResult& result) {
  std::string text;
  for (const Bytes& bytes : result.outputs) text.append(bytes.begin(), bytes.end());
  for (const std::string& message : result.messages) text += message;
  return std::hash<std::string>()(text);
}

// Small cases, equally many for families with few operators and with several, and cases that threads divide.
constexpr int kPerOperator = 1, kPerFamily = 60;
constexpr uint32_t kShared = 1 << 17;
// More small cases, drawn for an implementation that fits none of an operator's cases.
constexpr int kTries = 400;

struct NumberedCase {
  std::string name;  // no other has it
  const char* family;
  Case problem;
};

// The same in every process.
std::vector<NumberedCase> AllCases() {
  std::vector<NumberedCase> cases;
  const auto add = [&](const char* family, const std::string& how, Case problem) {
    std::string name = StrCat(cases.size(), " (", how, ") ", Describe(problem));
    cases.push_back({std::move(name), family, std::move(problem)});
  };
  for (const CaseFamily& family : AllCaseFamilies()) {
    const int count =
        TestIterations(std::max(kPerOperator, kPerFamily / static_cast<int>(family.operators.size())));
    for (const OperatorType type : family.operators) {
      for (int i = 0; i < count; ++i) {
        const uint64_t seed = TestSeed() + static_cast<uint64_t>(i);
        add(family.name, StrCat("ANYDML_TEST_SEED=", seed), MakeCase(family, type, seed));
      }
      add(family.name, "shared", MakeCase(family, type, TestSeed(), kShared));
    }
    for (Case& problem : LargeProblems()) {
      const auto type = static_cast<OperatorType>(problem.desc.schema->type);
      if (std::find(family.operators.begin(), family.operators.end(), type) != family.operators.end()) {
        add(family.name, "large", std::move(problem));
      }
    }
  }
  return cases;
}

// What else the bytes of inexact results depend on. Sums, whose bounds are magnitudes: the number of lanes
// that add them, and the order of these. Functions: whether products are rounded.
std::string RoundingOf(const Exactness& exactness, const std::string& target) {
  if (exactness.relative != 0 || exactness.absolute != 0) return target;
  for (const char* unfused : {"SSE2", "SSSE3", "SSE4", "EMU128", "SCALAR"}) {
    if (target == unfused) return "not fused";
  }
  return "fused";
}

using Met = std::set<std::pair<uint32_t, std::string>>;  // operators and implementations

// One line per run: what its bytes depend on, family, implementation, target, hash; separated by tabs.
void RunEverywhere(DmlHarness& harness, const NumberedCase& numbered, const ApiResult& expected,
                   const std::vector<std::string>& implementations, Met* met, std::ostream& lines) {
  const Case& problem = numbered.problem;
  const Errors errors = ErrorsOf(problem.desc, problem.inputs);
  // The reference uses neither threads nor targets: one run per process suffices.
  lines << numbered.name << '\t' << numbered.family << "\tcpu.reference\tno target\t" << Hash(expected)
        << '\n';
  met->emplace(problem.desc.schema->type, "cpu.reference");
  for (const std::string& implementation : implementations) {
    if (implementation == "cpu.reference") continue;
    std::optional<Exactness> exactness;
    bool again = true;
    OnEveryTarget([&](const char* target) {
      for (int run = 0; run < (again ? 2 : 1); ++run) {
        const ApiResult result = RunThroughApi(harness, problem, implementation);
        if (result.implementation.empty()) return;  // does not fit
        EXPECT_EQ(result.implementation, implementation);
        met->emplace(problem.desc.schema->type, implementation);
        if (!exactness) exactness = ExactnessOf(problem.desc, implementation);
        EXPECT_EQ(Difference(problem.desc, result.outputs, expected.outputs, *exactness, errors), "")
            << numbered.name << " by " << implementation;
        EXPECT_EQ(result.messages, expected.messages) << numbered.name << " by " << implementation;
        lines << numbered.name;
        if (!exactness->exact()) lines << ", " << implementation << ", " << RoundingOf(*exactness, target);
        lines << '\t' << numbered.family << '\t' << implementation << '\t' << target << '\t' << Hash(result)
              << '\n';
      }
      again = false;
    });
    if (::testing::Test::HasFailure()) return;
  }
}

std::string RunAll(uint32_t threads) {
  EnableDebugLayer();
  DmlHarness harness, cpu(test::CpuDevice().Get(), DML_CREATE_DEVICE_FLAG_NONE);
  EXPECT_TRUE(test::AdapterOf(harness.d3d()).starts_with(BackendUnderTest()));
  EXPECT_EQ(WorkerThreads().size(), threads - 1);
  std::ostringstream lines;
  Met met;
  const auto run = [&](const NumberedCase& numbered, const std::vector<std::string>& implementations) {
    RunEverywhere(harness, numbered, RunThroughApi(cpu, numbered.problem, "cpu.reference"), implementations,
                  &met, lines);
  };
  for (const NumberedCase& numbered : AllCases()) {
    run(numbered, ImplementationsUnderTest(*FindImplementation(numbered.problem.desc.schema->type)));
    if (::testing::Test::HasFailure()) return lines.str();
  }
  for (const CaseFamily& family : AllCaseFamilies()) {
    for (const OperatorType type : family.operators) {
      const auto number = static_cast<uint32_t>(type);
      for (const std::string& implementation : ImplementationsUnderTest(*FindImplementation(number))) {
        const uint64_t end = TestSeed() + static_cast<uint64_t>(TestIterations(kTries));
        for (uint64_t seed = TestSeed(); seed < end && !met.contains({number, implementation}); ++seed) {
          const Case problem = MakeCase(family, type, seed);
          if (RunThroughApi(harness, problem, implementation).implementation.empty()) continue;
          run({StrCat("ANYDML_TEST_SEED=", seed, " ", Describe(problem)), family.name, problem},
              {implementation});
          if (::testing::Test::HasFailure()) return lines.str();
        }
      }
    }
  }
  return lines.str();
}

TEST(Determinism, NothingElseMatters) {
  const std::vector<uint32_t> threads =
      BackendUnderTest() == "cpu" ? std::vector<uint32_t>{1, 2, 7} : std::vector<uint32_t>{1};
  std::map<std::string, std::set<std::string>> hashes;  // by the key that determines them: the problem
  // By "family implementation": the set of "target, number of threads".
  std::map<std::string, std::set<std::string>> configurations;
  std::set<std::string> targets;
  uint64_t runs = 0;
  for (const uint32_t count : threads) {
    std::istringstream lines(InChild(count, [&] { return RunAll(count); }));
    for (std::string line; std::getline(lines, line); ++runs) {
      std::istringstream fields(line);
      std::string problem, family, implementation, target, hash;
      std::getline(fields, problem, '\t');
      std::getline(fields, family, '\t');
      std::getline(fields, implementation, '\t');
      std::getline(fields, target, '\t');
      std::getline(fields, hash, '\t');
      hashes[problem].insert(hash);
      configurations[family + " " + implementation].insert(StrCat(target, ", ", count));
      if (implementation != "cpu.reference") targets.insert(target);
    }
  }
  for (const auto& [problem, different] : hashes) EXPECT_EQ(different.size(), 1u) << problem;
  std::cout << runs << " runs of " << hashes.size() << " results; targets";
  for (const std::string& target : targets) std::cout << " " << target;
  std::cout << "; threads";
  for (const uint32_t count : threads) std::cout << " " << count;
  for (const CaseFamily& family : AllCaseFamilies()) {
    std::cout << "\n  " << family.name << ":";
    const auto first = static_cast<uint32_t>(family.operators[0]);
    for (const std::string& implementation : ImplementationsUnderTest(*FindImplementation(first))) {
      std::cout << " " << implementation;
      const size_t expected = implementation == "cpu.reference" ? 1 : targets.size();
      const auto& seen = configurations[StrCat(family.name, " ", implementation)];
      // Implementations that need libraries, or instructions that not every processor has.
      const bool may_be_missing = implementation.starts_with("cpu.dot") ||
                                  implementation == "cuda.cublaslt" || implementation == "cuda.cudnn" ||
                                  implementation == "cuda.planes";
      if (may_be_missing && seen.empty()) {
        std::cout << " (not here)";
        continue;
      }
      EXPECT_EQ(seen.size(), expected * threads.size())
          << family.name << ": " << implementation
          << " was not run on all targets with all numbers of threads";
    }
  }
  std::cout << "\n";
}

}  // namespace
}  // namespace anydml::testing
