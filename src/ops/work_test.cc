// What is told to be brief is, and does with a small stack: it may run on a thread of the application.
#include "ops/work.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "kernel/short_work.h"
#include "kernel/work_estimate.h"
#include "support/cases.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

void RunOnSmallStack(std::function<void()> body) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 128 << 10), 0);
  constexpr auto kMain = [](void* what) -> void* {
    (*static_cast<std::function<void()>*>(what))();
    return nullptr;
  };
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, kMain, &body), 0);
  pthread_attr_destroy(&attributes);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
}

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class WorkBuffers {
 public:
  Buffer Add(uint64_t bytes) {
    memory_.emplace_back(bytes + 256);
    const auto address = reinterpret_cast<uintptr_t>(memory_.back().data());
    return {memory_.back().data() + (256 - address % 256), bytes};
  }
  std::vector<Buffer> AddAll(const std::vector<const TensorDesc*>& tensors) {
    std::vector<Buffer> buffers;
    for (const TensorDesc* tensor : tensors) {
      buffers.push_back(tensor != nullptr ? Add(tensor->total_bytes) : Buffer{});
    }
    return buffers;
  }

 private:
  std::vector<std::vector<std::byte>> memory_;
};

// Whether it is told to be brief.
bool ExpectBrief(const Case& problem) {
  LoweredOperator lowered;
  EXPECT_TRUE(LowerOperator(ImplementationOf(problem.desc), problem.desc, {}, &lowered).ok());
  if (WorkOf(lowered, &problem.desc) > ShortWork::kMostBytes) return false;
  WorkBuffers memory;
  std::vector<Buffer> inputs = memory.AddAll(problem.desc.inputs());
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::copy_n(reinterpret_cast<const std::byte*>(problem.inputs[i].data()), inputs[i].size, inputs[i].data);
  }
  const std::vector<Buffer> outputs = memory.AddAll(problem.desc.outputs());
  const KernelArguments arguments = {.inputs = inputs,
                                     .outputs = outputs,
                                     .temporary = memory.Add(lowered.kernel->temporary_bytes()),
                                     .persistent = memory.Add(lowered.kernel->persistent_bytes())};
  if (lowered.kernel->persistent_bytes() != 0) {
    const Buffer temporary = memory.Add(lowered.kernel->initialization_temporary_bytes());
    KernelArguments initialization = arguments;
    initialization.temporary = temporary;
    EXPECT_TRUE(lowered.kernel->Initialize(initialization).ok());
  }
  double best = 1;
  RunOnSmallStack([&] {
    for (int run = 0; run < 3; ++run) {  // the first one finds cold caches
      const double begin = ThreadSeconds();
      EXPECT_TRUE(lowered.kernel->Run(arguments).ok());
      best = std::min(best, ThreadSeconds() - begin);
    }
  });
  // Some tens of microseconds; a hundred times that without vectors, with a sanitizer, in an emulator.
  EXPECT_LT(best, 5e-3) << Describe(problem);
  return true;
}

TEST(Work, WhatIsBrief) {
  std::set<std::string> brief;
  for (const CaseFamily& family : AllCaseFamilies()) {
    ForCases(family, 0.2, [&](const Case& problem) {
      if (ExpectBrief(problem)) brief.insert(problem.desc.schema->name);
    });
  }
  for (const char* name :
       {"ELEMENT_WISE_ADD", "GEMM", "MATRIX_MULTIPLY_INTEGER", "CONVOLUTION", "CONVOLUTION_INTEGER", "REDUCE",
        "ARGMAX", "ACTIVATION_SOFTMAX", "MEAN_VARIANCE_NORMALIZATION2", "JOIN", "GATHER"}) {
    EXPECT_TRUE(brief.contains(name)) << name;
  }
  // The data decide how long those take.
  for (const char* name : {"LSTM", "NONZERO_COORDINATES"}) EXPECT_FALSE(brief.contains(name)) << name;
}

TEST(Work, NotOfTheReference) {
  const TensorDesc matrix = Packed(DataType::kFloat32, {1, 1, 4, 4});
  const OperatorDesc desc = MakeDesc("GEMM", {{"ATensor", matrix},
                                              {"BTensor", matrix},
                                              {"OutputTensor", matrix},
                                              {"TransA", 0u},
                                              {"TransB", 0u},
                                              {"Alpha", 1.f},
                                              {"Beta", 0.f}});
  for (const char* name : {"", "cpu.reference"}) {
    LoweredOperator lowered;
    ASSERT_TRUE(LowerOperator(ImplementationOf(desc), desc, {.implementation = name}, &lowered).ok());
    EXPECT_EQ(WorkOf(lowered, &desc) == WorkEstimate::kUnknown, *name != 0) << lowered.implementation;
    EXPECT_EQ(WorkOf(lowered, nullptr), WorkEstimate::kUnknown);
  }
}

}  // namespace
}  // namespace anydml::testing
