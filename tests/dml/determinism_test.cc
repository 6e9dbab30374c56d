// A result depends on the description and the contents, and on nothing else; where an implementation is not
// exact, on it and its SIMD target, too. Every problem is run by every implementation that fits, for every
// SIMD target, with 1, 2 and 7 threads, more than once; and everything that there is must have been run.
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include "base/status.h"
#include "ops/operator.h"
#include "schema/schema.h"
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

// One line per run: what its bytes depend on, operator, implementation, target, hash; separated by tabs.
void RunEverywhere(DmlHarness& harness, const Problem& problem, const ApiResult& expected,
                   std::ostream& lines) {
  for (const std::string& implementation :
       ImplementationsUnderTest(*FindImplementation(problem.desc.schema->type))) {
    std::optional<Exactness> exactness;
    bool again = true;
    OnEveryTarget([&](const char* target) {
      for (int run = 0; run < (again ? 2 : 1); ++run) {
        const ApiResult result = RunThroughApi(harness, problem, implementation);
        if (result.implementation.empty()) return;  // does not fit
        EXPECT_EQ(result.implementation, implementation);
        if (!exactness) exactness = ExactnessOf(problem.desc, implementation);
        EXPECT_EQ(Difference(problem.desc, result.outputs, expected.outputs, *exactness), "")
            << problem.name << " by " << implementation;
        EXPECT_EQ(result.messages, expected.messages) << problem.name << " by " << implementation;
        lines << problem.name;
        if (!exactness->exact()) lines << ", " << implementation << ", " << target;
        lines << '\t' << problem.desc.schema->name << '\t' << implementation << '\t' << target << '\t'
              << Hash(result) << '\n';
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
  for (const auto& problems : {SmallProblems(), LargeProblems()}) {
    for (const Problem& problem : problems) {
      RunEverywhere(harness, problem, RunThroughApi(cpu, problem, "cpu.reference"), lines);
      if (::testing::Test::HasFailure()) return lines.str();
    }
  }
  return lines.str();
}

TEST(Determinism, NothingElseMatters) {
  const std::vector<uint32_t> threads =
      BackendUnderTest() == "cpu" ? std::vector<uint32_t>{1, 2, 7} : std::vector<uint32_t>{1};
  std::map<std::string, std::set<std::string>> hashes;  // by what they depend on: the problem
  // By "operator implementation", each as "target, number of threads".
  std::map<std::string, std::set<std::string>> configurations;
  std::set<std::string> targets;
  uint64_t runs = 0;
  for (const uint32_t count : threads) {
    std::istringstream lines(InChild(count, [&] { return RunAll(count); }));
    for (std::string line; std::getline(lines, line); ++runs) {
      std::istringstream fields(line);
      std::string problem, name, implementation, target, hash;
      std::getline(fields, problem, '\t');
      std::getline(fields, name, '\t');
      std::getline(fields, implementation, '\t');
      std::getline(fields, target, '\t');
      std::getline(fields, hash, '\t');
      hashes[problem].insert(hash);
      configurations[name + " " + implementation].insert(StrCat(target, ", ", count));
      targets.insert(target);
    }
  }
  for (const auto& [problem, different] : hashes) EXPECT_EQ(different.size(), 1u) << problem;
  std::cout << runs << " runs of " << hashes.size() << " problems; targets";
  for (const std::string& target : targets) std::cout << " " << target;
  std::cout << "; threads";
  for (const uint32_t count : threads) std::cout << " " << count;
  for (const Operator* op : ImplementedOperators()) {
    const std::string name = FindOperator(op->type)->name;
    std::cout << "\n  " << name << ":";
    for (const std::string& implementation : ImplementationsUnderTest(*op)) {
      std::cout << " " << implementation;
      EXPECT_EQ(configurations[name + " " + implementation].size(), targets.size() * threads.size())
          << name << ": " << implementation << " was not run on all targets with all numbers of threads";
    }
  }
  std::cout << "\n";
}

}  // namespace
}  // namespace anydml::testing
