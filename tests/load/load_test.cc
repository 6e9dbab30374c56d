// Sixteen threads on eight queues create, compile, bind, dispatch and destroy operators and graphs: every
// result is right, and no memory is lost. ANYDML_LOAD_SECONDS sets the duration, ANYDML_LOAD_CSV the file for
// the samples.
#include <malloc.h>
#include <windows.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <thread>

#include <anydml.h>
#include <gtest/gtest.h>

#include "base/sanitizers.h"
#include "client/c_desc.h"
#include "client/scoped_variable.h"
#include "load/process_state.h"
#include "support/cases.h"
#include "support/compare.h"
#include "support/dml_harness.h"
#include "support/random_graph.h"

namespace anydml::test {
namespace {

using Clock = std::chrono::steady_clock;
using testing::Bytes;

constexpr int kThreads = 16;
constexpr int kQueues = 8;
constexpr int kSamples = 40;
constexpr int kGraphs = 24;

// Work that is run repeatedly.
class Work {
 public:
  virtual ~Work() = default;
  // Throws if the result is wrong.
  virtual void RunOn(ID3D12Device* device, ID3D12CommandQueue* queue) const = 0;
};

// A problem with its result, compared with the accuracy that the device's implementation declares.
class OperatorWork final : public Work {
 public:
  OperatorWork(testing::Case problem, ID3D12Device* device) : problem_(std::move(problem)) {
    const client::CDesc desc(problem_.desc);
    DmlHarness chooser(device, DML_CREATE_DEVICE_FLAG_NONE);
    const auto compiled = chooser.Compile(desc.get().Type, desc.get().Desc);
    exactness_ = testing::ExactnessOf(problem_.desc, AnyDmlGetImplementation(compiled.Get()));
    errors_ = testing::ErrorsOf(problem_.desc, problem_.inputs);
    const client::ScopedVariable reference("ANYDML_IMPLEMENTATION", "cpu.reference");
    DmlHarness harness(CpuDevice().Get(), DML_CREATE_DEVICE_FLAG_NONE);
    expected_ = Run(harness);
  }

  void RunOn(ID3D12Device* device, ID3D12CommandQueue* queue) const override {
    DmlHarness harness(device, queue);
    const std::string difference =
        testing::Difference(problem_.desc, Run(harness), expected_, exactness_, errors_);
    if (!difference.empty()) throw std::runtime_error(testing::Describe(problem_) + ": " + difference);
  }

 private:
  std::vector<Bytes> Run(DmlHarness& harness) const {
    const client::CDesc desc(problem_.desc);
    std::vector<uint64_t> output_bytes;
    for (const TensorDesc* tensor : problem_.desc.outputs()) {
      output_bytes.push_back(tensor == nullptr ? 0 : tensor->total_bytes);
    }
    return harness.Run(desc.get().Type, desc.get().Desc, problem_.inputs, output_bytes);
  }

  testing::Case problem_;
  Exactness exactness_;
  testing::Errors errors_;
  std::vector<Bytes> expected_;
};

// A graph with the bytes that its operators give one by one.
class GraphWork final : public Work {
 public:
  GraphWork(uint64_t seed, ID3D12Device* device)
      : graph_(testing::MakeRandomGraph(seed, testing::GraphKinds::kExact)) {
    DmlHarness harness(device, DML_CREATE_DEVICE_FLAG_NONE);
    expected_ = testing::RunOneByOne(harness, graph_);
  }

  void RunOn(ID3D12Device* device, ID3D12CommandQueue* queue) const override {
    DmlHarness harness(device, queue);
    if (testing::RunCompiled(harness, graph_) != expected_) {
      throw std::runtime_error("other bytes than one by one:\n" + graph_.ToString());
    }
  }

 private:
  const testing::RandomGraph graph_;
  std::vector<Bytes> expected_;
};

// Waits as a Windows program does, for everything on the queue.
void WaitWithEvent(ID3D12Device* device, ID3D12CommandQueue* queue) {
  ComPtr<ID3D12Fence> fence;
  Check(device->CreateFence(0, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)), "CreateFence");
  const HANDLE event = CreateEvent(nullptr, FALSE, FALSE, nullptr);
  Check(fence->SetEventOnCompletion(1, event), "SetEventOnCompletion");
  Check(queue->Signal(fence.Get(), 1), "Signal");
  WaitForSingleObject(event, INFINITE);
  CloseHandle(event);
}

class Load {
 public:
  Load() {
    // These threads allocate, too: variation in their assignment to many malloc arenas would look like
    // growth.
    mallopt(M_ARENA_MAX, 1);
    Check(D3D12CreateDevice(nullptr, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device_)), "D3D12CreateDevice");
    D3D12_COMMAND_QUEUE_DESC desc = {};
    desc.Type = D3D12_COMMAND_LIST_TYPE_COMPUTE;
    for (auto& queue : queues_) {
      Check(device_->CreateCommandQueue(&desc, IID_PPV_ARGS(&queue)), "CreateCommandQueue");
    }
    for (const testing::CaseFamily& family : testing::AllCaseFamilies()) {
      for (const OperatorType type : family.operators) {
        work_.push_back(std::make_unique<OperatorWork>(testing::MakeCase(family, type, testing::TestSeed()),
                                                       device_.Get()));
      }
    }
    for (int i = 0; i < kGraphs; ++i) {
      work_.push_back(
          std::make_unique<GraphWork>(testing::TestSeed() + static_cast<uint64_t>(i), device_.Get()));
    }
    // Operators and graphs at the same time, in an order that is the same in every run.
    std::mt19937_64 random(testing::TestSeed());
    std::shuffle(work_.begin(), work_.end(), random);
  }

  // Takes its samples while no thread works. `more` is called in every round, too.
  template <typename More>
  std::vector<Sample> Run(double seconds, More more) {
    WarmUp();
    std::vector<Sample> samples;
    const Clock::time_point start = Clock::now();
    for (int i = 1; i <= kSamples && error_.empty(); ++i) {
      RunThreadsUntil(start + std::chrono::duration_cast<Clock::duration>(
                                  std::chrono::duration<double>(seconds * i / kSamples)),
                      more);
      const std::chrono::duration<double> passed = Clock::now() - start;
      samples.push_back({passed.count(), rounds_, MeasureProcess()});
    }
    return samples;
  }

  const std::string& error() const { return error_; }

 private:
  // Queues keep memory for the largest item they were given: every queue gets every item once.
  void WarmUp() {
    std::vector<std::thread> threads;
    for (auto& queue : queues_) {
      threads.emplace_back([&, queue = queue.Get()] {
        for (const auto& work : work_) work->RunOn(device_.Get(), queue);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  template <typename More>
  void RunThreadsUntil(Clock::time_point end, More more) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, queue = queues_[i % kQueues].Get()] {
        try {
          do {
            const uint64_t round = rounds_.fetch_add(1);
            work_[round % work_.size()]->RunOn(device_.Get(), queue);
            if (round % 3 == 0) WaitWithEvent(device_.Get(), queue);
            more();
          } while (Clock::now() < end && !failed_.load(std::memory_order_relaxed));
        } catch (const std::exception& error) {
          std::lock_guard lock(mutex_);
          failed_ = true;
          error_ = error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<std::unique_ptr<const Work>> work_;
  ComPtr<ID3D12Device> device_;
  ComPtr<ID3D12CommandQueue> queues_[kQueues];
  std::atomic<uint64_t> rounds_{0};
  std::mutex mutex_;
  std::atomic<bool> failed_{false};
  std::string error_;
};

double Seconds() {
  const char* const text = std::getenv("ANYDML_LOAD_SECONDS");
  return text != nullptr ? std::atof(text) : 5;
}

TEST(Load, EverythingIsRightAndNothingGrows) {
  std::vector<Sample> samples;
  {
    Load load;
    samples = load.Run(Seconds(), [] {});
    ASSERT_EQ(load.error(), "");
  }
  if (const char* const path = std::getenv("ANYDML_LOAD_CSV")) WriteCsv(samples, path);
  EXPECT_EQ(FindGrowth(samples, kObjects), "");
  EXPECT_EQ(FindGrowth(samples, kDescriptors), "");
  EXPECT_EQ(FindGrowth(samples, kHeap), "");
  if (!kAddressSanitizer && !kThreadSanitizer) {  // most of the memory would be theirs
    EXPECT_EQ(FindGrowth(samples, kResident), "");
  }
  EXPECT_EQ(AnyDmlGetLiveObjectCount(), 0u);
  const Sample& last = samples.back();
  std::cout << last.rounds << " rounds in " << last.seconds << " s; at the end " << last.state.objects
            << " objects, " << last.state.heap / 1024 << " KiB allocated, " << last.state.resident / 1024
            << " KiB resident; a leak of " << SmallestLeak(samples, kHeap)
            << " bytes a round would have been seen\n";
}

// Tests the test: finds a leak of 100 bytes a round in an ordinary short run. ThreadSanitizer has fewer
// rounds.
TEST(Load, ALeakIsFound) {
  constexpr size_t kLeak = kThreadSanitizer ? 1000 : 100;
  std::mutex mutex;
  std::vector<std::unique_ptr<char[]>> leaked;
  leaked.reserve(1 << 20);
  std::vector<Sample> samples;
  {
    Load load;
    samples = load.Run(3, [&] {
      std::lock_guard lock(mutex);
      leaked.push_back(std::make_unique<char[]>(kLeak));
    });
    ASSERT_EQ(load.error(), "");
  }
  // Leaks near the smallest one may be hidden by other variation.
  if (SmallestLeak(samples, kHeap) > kLeak / 2)
    GTEST_SKIP() << "too slow: only " << leaked.size() << " rounds";
  EXPECT_NE(FindGrowth(samples, kHeap), "");
}

// And in synthetic samples, as large as those of a long run.
TEST(Load, GrowthIsToldFromNoise) {
  const auto samples = [](double leak_per_round) {
    std::vector<Sample> result;
    for (int i = 1; i <= kSamples; ++i) {
      const uint64_t rounds = 5000 * static_cast<uint64_t>(i);
      const auto leaked = static_cast<uint64_t>(leak_per_round * static_cast<double>(rounds));
      const auto warm = static_cast<uint64_t>(std::min(i, 8)) * 1000000;
      const auto noise = static_cast<uint64_t>(i * 7919 % 13) * 1000;
      result.push_back({i * 1.0,
                        rounds,
                        {9, 20 + leaked / 1000000, warm + noise + leaked, 4 * warm + 100 * noise + leaked}});
    }
    return result;
  };
  for (const Allowance& allowance : {kObjects, kDescriptors, kHeap, kResident}) {
    EXPECT_EQ(FindGrowth(samples(0), allowance), "") << allowance.name;
  }
  for (const Allowance& allowance : {kDescriptors, kHeap, kResident}) {
    EXPECT_NE(FindGrowth(samples(100), allowance), "") << allowance.name;
  }
}

}  // namespace
}  // namespace anydml::test
