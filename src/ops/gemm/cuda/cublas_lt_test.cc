// Failures of cuBLASLt: at compilation they are a reason to choose the next implementation; at execution our
// own kernel runs instead. Without a GPU: the tests provide the library and the kernel.
#include <gtest/gtest.h>

#include "kernel/device_traits.h"
#include "ops/gemm/problem.h"
#include "support/fake_cublas_lt.h"

namespace anydml {
namespace {

using testing::FakeCublasLt;
using Fails = FakeCublasLt::Fails;

int g_runs_instead = 0;
Status g_status_instead;

class Instead final : public Kernel {
 public:
  Status Run(const KernelArguments&) const override {
    ++g_runs_instead;
    return g_status_instead;
  }
};

}  // namespace

std::unique_ptr<const Kernel> CreateGemmTiledCuda(const GemmProblem&, const LowerContext&, std::string*) {
  return std::make_unique<Instead>();
}
std::unique_ptr<const Kernel> CreateGemmInTwo(const GemmProblem&, const LowerContext&, std::string*) {
  return std::make_unique<Instead>();
}

namespace {

class CublasLt : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(library_, nullptr) << dlerror();
    *library_ = FakeCublasLt();
    g_runs_instead = 0;
    g_status_instead = Status();
    device_.ordinal = next_device_++;  // each thread has its own handle
    problem_.m = problem_.n = problem_.k = 64;
    problem_.a = problem_.b = problem_.output = {{}, 64, 1};
  }
  void TearDown() override { EXPECT_EQ(library_->descriptions, 0); }

  std::unique_ptr<const Kernel> Create() {
    LowerContext context;
    context.device = &device_;
    why_not_.clear();
    return CreateGemmCublas(problem_, context, &why_not_);
  }
  static Status Run(const Kernel& kernel) {
    const Buffer buffers[3] = {};
    KernelArguments arguments;
    arguments.inputs = buffers;
    arguments.outputs = {buffers, 1};
    return kernel.Run(arguments);
  }

  FakeCublasLt* const library_ = FakeCublasLt::Find();
  DeviceTraits device_;
  GemmProblem problem_;
  std::string why_not_;

 private:
  static inline int next_device_ = 0;
};

TEST_F(CublasLt, Multiplies) {
  const auto kernel = Create();
  ASSERT_NE(kernel, nullptr) << why_not_;
  EXPECT_EQ(Run(*kernel).message(), "");
  EXPECT_EQ(library_->multiplications, 1);
  EXPECT_EQ(g_runs_instead, 0);
}

TEST_F(CublasLt, WhatFailsAtCompileTimeIsAReason) {
  library_->fails = Fails::kCreate;
  EXPECT_EQ(Create(), nullptr);
  EXPECT_EQ(why_not_, "cuBLASLt could not be started");
  for (const Fails fails : {Fails::kDescribe, Fails::kFindAlgorithm, Fails::kHasNoAlgorithm}) {
    library_->fails = fails;
    EXPECT_EQ(Create(), nullptr);
    EXPECT_EQ(why_not_, "cuBLASLt has no algorithm for it");
    EXPECT_EQ(library_->descriptions, 0);
  }
}

// There may have been too little memory for it.
TEST_F(CublasLt, AStartIsTriedAgain) {
  library_->fails = Fails::kCreate;
  EXPECT_EQ(Create(), nullptr);
  library_->fails = Fails::kNothing;
  EXPECT_NE(Create(), nullptr) << why_not_;
}

TEST_F(CublasLt, AProductThatItRefusesIsOurs) {
  const auto kernel = Create();
  ASSERT_NE(kernel, nullptr) << why_not_;
  library_->fails = Fails::kMultiply;
  EXPECT_EQ(Run(*kernel).message(), "");
  EXPECT_EQ(g_runs_instead, 1);
  g_status_instead = Status(Code::kDriverInternal, "CUDA: the device is lost");
  EXPECT_EQ(Run(*kernel).message(), "CUDA: the device is lost");
}

}  // namespace
}  // namespace anydml
