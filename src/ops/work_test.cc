// Work with a short estimate must be short and need little stack, because it may run on an application's
// thread.
#include "ops/work.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/sanitizers.h"
#include "kernel/short_work.h"
#include "kernel/work_estimate.h"
#include "support/cases.h"
#include "support/operator_runner.h"

namespace anydml::testing {
namespace {

void RunOnSmallStack(std::function<void()> body) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  constexpr size_t kBytes = (kAddressSanitizer ? 1024 : 128) << 10;  // the sanitizer's frames are large
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kBytes), 0);
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

// Whether the estimate is below the limit for short work.
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
    for (int run = 0; run < 3; ++run) {  // caches are cold in the first run
      const double begin = ThreadSeconds();
      EXPECT_TRUE(lowered.kernel->Run(arguments).ok());
      best = std::min(best, ThreadSeconds() - begin);
    }
  });
  // Some tens of microseconds; a hundred times that without vectors, with a sanitizer, or in an emulator.
  EXPECT_LT(best, 5e-3) << Describe(problem);
  return true;
}

TEST(Work, WhatIsBrief) {
  // Their time depends on the data.
  const std::set<std::string> unknown = {"LSTM", "NONZERO_COORDINATES"};
  for (const CaseFamily& family : AllCaseFamilies()) {
    ForCases(family, 0.2, [&](const Case& problem) {
      const std::string name = problem.desc.schema->name;
      const bool is_brief = ExpectBrief(problem);
      EXPECT_FALSE(is_brief && unknown.contains(name)) << name;
    });
  }
}

// Several cases of each operator, even if earlier cases take long. (Normalization is excluded: without
// vectors it is a composite.)
TEST(Work, OfManyOperators) {
  constexpr uint64_t kTries = 100;
  const std::set<std::string> known = {"ELEMENT_WISE_ADD",
                                       "GEMM",
                                       "MATRIX_MULTIPLY_INTEGER",
                                       "CONVOLUTION",
                                       "CONVOLUTION_INTEGER",
                                       "REDUCE",
                                       "ARGMAX",
                                       "ACTIVATION_SOFTMAX",
                                       "PADDING",
                                       "JOIN",
                                       "GATHER"};
  std::set<std::string> brief;
  for (const CaseFamily& family : AllCaseFamilies()) {
    for (const OperatorType type : family.operators) {
      for (uint64_t seed = TestSeed(); seed < TestSeed() + kTries; ++seed) {
        const Case problem = MakeCase(family, type, seed);
        const std::string name = problem.desc.schema->name;
        if (!known.contains(name) || brief.contains(name)) break;
        if (ExpectBrief(problem)) brief.insert(name);
      }
    }
  }
  EXPECT_EQ(brief, known);
}

// Work that is fast with contiguous elements takes milliseconds here.
TEST(Work, WhatIsNot) {
  const auto is_brief = [](const OperatorDesc& desc) {
    LoweredOperator lowered;
    EXPECT_TRUE(LowerOperator(ImplementationOf(desc), desc, {}, &lowered).ok());
    return WorkOf(lowered, &desc) <= ShortWork::kMostBytes;
  };
  // Elements a cache line or a page apart, and short runs.
  const auto copy = [&](const TensorDesc& from, const TensorDesc& to) {
    return is_brief(MakeDesc("ELEMENT_WISE_IDENTITY", {{"InputTensor", from}, {"OutputTensor", to}}));
  };
  constexpr uint32_t kBytes = 400'000;
  const TensorDesc packed = Packed(DataType::kUInt8, {kBytes});
  EXPECT_TRUE(copy(packed, packed));
  EXPECT_TRUE(copy(Strided(DataType::kUInt8, {kBytes}, {0}), packed));
  EXPECT_TRUE(copy(Strided(DataType::kUInt8, {500, 800}, {1, 500}), Packed(DataType::kUInt8, {500, 800})));
  for (const uint32_t stride : {64u, 1040u}) {
    const TensorDesc apart = Strided(DataType::kUInt8, {kBytes}, {stride});
    EXPECT_FALSE(copy(apart, packed)) << stride;
    EXPECT_FALSE(copy(packed, apart)) << stride;
    EXPECT_TRUE(copy(Strided(DataType::kUInt8, {100}, {stride}), Packed(DataType::kUInt8, {100})));
  }
  for (const uint32_t run : {2u, 5u}) {
    const TensorDesc runs = Packed(DataType::kUInt8, {kBytes / run, run});
    const TensorDesc apart = Strided(DataType::kUInt8, {kBytes / run, run}, {run + 1, 1});
    EXPECT_FALSE(copy(apart, runs)) << run;
    EXPECT_FALSE(copy(runs, apart)) << run;
  }
  // Large numbers are slow, too.
  for (const uint32_t count : {1000u, 80'000u}) {
    const TensorDesc numbers = Packed(DataType::kFloat32, {count});
    for (const char* name : {"ELEMENT_WISE_SIN", "ELEMENT_WISE_COS", "ELEMENT_WISE_TAN"}) {
      EXPECT_EQ(is_brief(MakeDesc(name, {{"InputTensor", numbers}, {"OutputTensor", numbers}})),
                count == 1000)
          << name;
    }
    for (const char* name : {"ELEMENT_WISE_MODULUS_FLOOR", "ELEMENT_WISE_MODULUS_TRUNCATE"}) {
      const OperatorDesc desc =
          MakeDesc(name, {{"ATensor", numbers}, {"BTensor", numbers}, {"OutputTensor", numbers}});
      EXPECT_EQ(is_brief(desc), count == 1000) << name;
    }
    // No vector code converts these types.
    for (const auto& [from, to] :
         {std::pair(DataType::kFloat64, DataType::kInt8), std::pair(DataType::kFloat16, DataType::kUInt64)}) {
      const OperatorDesc desc =
          MakeDesc("CAST", {{"InputTensor", Packed(from, {count})}, {"OutputTensor", Packed(to, {count})}});
      EXPECT_EQ(is_brief(desc), count == 1000) << static_cast<int>(from);
    }
  }
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
