// A library thread that hardly gets any processor time makes others wait, and has no other effect.
#include <sched.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "base/status.h"
#include "support/api_run.h"
#include "support/child_process.h"
#include "support/compare.h"
#include "support/operator_runner.h"
#include "support/problems.h"

namespace anydml::testing {
namespace {

using test::DmlHarness;

// Restricts some threads to one busy processor: they get the remaining time, about one part in 300.
class Stall {
 public:
  explicit Stall(std::vector<int> threads) : threads_(std::move(threads)) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    const sched_param none{};
    for (const int thread : threads_) {
      EXPECT_EQ(sched_setaffinity(thread, sizeof(one), &one), 0);
      EXPECT_EQ(sched_setscheduler(thread, SCHED_IDLE, &none), 0);
    }
    busy_ = std::thread([this, one] {
      sched_setaffinity(0, sizeof(one), &one);
      while (!ending_.load(std::memory_order_relaxed)) {
      }
    });
  }
  ~Stall() {
    ending_ = true;
    busy_.join();
  }

 private:
  const std::vector<int> threads_;
  std::atomic<bool> ending_{false};
  std::thread busy_;
};

// Total processor time so far, in nanoseconds.
uint64_t TimeOf(const std::vector<int>& threads) {
  uint64_t sum = 0;
  for (const int thread : threads) {
    uint64_t time = 0;
    std::ifstream(StrCat("/proc/self/task/", thread, "/schedstat")) >> time;
    sum += time;
  }
  return sum;
}

// Adds 1 to a million numbers.
Case Increment(std::vector<int32_t> numbers) {
  const TensorDesc tensor = Packed(DataType::kInt32, {static_cast<uint32_t>(numbers.size())});
  return {MakeDesc("ELEMENT_WISE_IDENTITY",
                   {{"InputTensor", tensor}, {"OutputTensor", tensor}, {"ScaleBias", ScaleBias{1, 1}}}),
          {Scattered(tensor, numbers)},
          /*in_place=*/true};
}

TEST(SlowWorker, OnlyDelays) {
  InChild(7, [] {
    DmlHarness harness;
    std::vector<int> workers = WorkerThreads();
    EXPECT_EQ(workers.size(), 6u);
    std::vector<ApiResult> expected;
    const std::vector<Case> problems = LargeProblems();
    for (const Case& problem : problems) {
      expected.push_back(RunThroughApi(harness, problem, "cpu.reference"));
    }
    workers.resize(3);  // the others are as fast as before
    const uint64_t before = TimeOf(workers);
    const Stall stall(workers);
    std::vector<int32_t> numbers(1000000);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
    int32_t rounds = 0;
    do {
      for (size_t i = 0; i < problems.size(); ++i) {
        const ApiResult result = RunThroughApi(harness, problems[i]);
        const Exactness exactness = ExactnessOf(problems[i].desc, result.implementation);
        EXPECT_EQ(Difference(problems[i].desc, result.outputs, expected[i].outputs, exactness,
                             testing::ErrorsOf(problems[i].desc, problems[i].inputs)),
                  "")
            << Describe(problems[i]);
      }
      const Case increment = Increment(numbers);
      numbers = Gathered<int32_t>(*increment.desc.tensor("OutputTensor"),
                                  RunThroughApi(harness, increment).outputs[0]);
      EXPECT_EQ(numbers, std::vector<int32_t>(numbers.size(), ++rounds));
    } while (!::testing::Test::HasFailure() && std::chrono::steady_clock::now() < end);
    EXPECT_GT(TimeOf(workers), before);  // otherwise they did not take part
    return std::string();
  });
}

}  // namespace
}  // namespace anydml::testing
