// Kernels that the driver compiles: how failures are handled, and how long a module is kept. The test
// provides the driver and the runtime.
#include "ops/element/cuda/compiled_kernels.h"

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

struct FakeCuda {
  CUresult loading = CUDA_SUCCESS, finding = CUDA_SUCCESS, launching = CUDA_SUCCESS;
  cudaError_t choosing = cudaSuccess;
  cudaError_t last_error = cudaSuccess;  // the error that the next query would return
  std::vector<std::string> calls;
};
FakeCuda g_cuda;

CUresult Note(const char* call, CUresult result) {
  g_cuda.calls.emplace_back(call);
  return result;
}

CUresult LoadModule(CUmodule* module, const void*, unsigned, CUjit_option*, void**) {
  if (g_cuda.loading == CUDA_SUCCESS) *module = reinterpret_cast<CUmodule>(&g_cuda);
  return Note("load", g_cuda.loading);
}
CUresult GetFunction(CUfunction* function, CUmodule, const char*) {
  *function = reinterpret_cast<CUfunction>(&g_cuda);
  return Note("find", g_cuda.finding);
}
CUresult GetAttribute(int*, CUfunction_attribute, CUfunction) { return CUDA_SUCCESS; }
CUresult Unload(CUmodule) { return Note("unload", CUDA_SUCCESS); }
CUresult Launch(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream,
                void**, void**) {
  return Note("launch", g_cuda.launching);
}

}  // namespace

// Replaces CUDA's runtime, which is not linked.
extern "C" {
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  const std::string_view wanted = name;
  *function = wanted == "cuModuleLoadDataEx"    ? reinterpret_cast<void*>(&LoadModule)
              : wanted == "cuModuleGetFunction" ? reinterpret_cast<void*>(&GetFunction)
              : wanted == "cuFuncGetAttribute"  ? reinterpret_cast<void*>(&GetAttribute)
              : wanted == "cuModuleUnload"      ? reinterpret_cast<void*>(&Unload)
              : wanted == "cuLaunchKernel"      ? reinterpret_cast<void*>(&Launch)
                                                : nullptr;
  *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) {
  if (g_cuda.choosing != cudaSuccess) g_cuda.last_error = g_cuda.choosing;
  return g_cuda.choosing;
}
cudaError_t cudaGetLastError() {
  const cudaError_t error = g_cuda.last_error;
  g_cuda.last_error = cudaSuccess;
  return error;
}
}

namespace anydml::element_cuda {
namespace {

using Calls = std::vector<std::string>;

class CompiledKernels : public ::testing::Test {
 protected:
  CompiledKernels() { g_cuda = FakeCuda(); }

  const CompiledKernel* Compile(const std::string& text) {
    why_not_.clear();
    return CompileKernel(device_, text, "Kernel", &why_not_);
  }
  Calls TakeCalls() { return std::exchange(g_cuda.calls, {}); }

  DeviceTraits device_;
  std::string why_not_;
};

TEST_F(CompiledKernels, AreCompiledOnce) {
  const CompiledKernel* const kernel = Compile("once");
  EXPECT_EQ(Compile("once"), kernel);
  EXPECT_EQ(TakeCalls(), (Calls{"load", "find"}));
}

TEST_F(CompiledKernels, AFailureIsASentenceAndNotForEver) {
  g_cuda.loading = CUDA_ERROR_OUT_OF_MEMORY;
  EXPECT_EQ(Compile("again"), nullptr);
  EXPECT_EQ(why_not_, "the driver does not compile it: error 2 ");
  g_cuda.loading = CUDA_SUCCESS;
  EXPECT_NE(Compile("again"), nullptr);
  EXPECT_EQ(why_not_, "");
}

TEST_F(CompiledKernels, AModuleWithoutTheKernelIsUnloaded) {
  g_cuda.finding = CUDA_ERROR_NOT_FOUND;
  EXPECT_EQ(Compile("without"), nullptr);
  EXPECT_EQ(why_not_, "the driver does not load it: error 500");
  EXPECT_EQ(TakeCalls(), (Calls{"load", "find", "unload"}));
}

// An application's graph may launch the kernels at any time.
TEST_F(CompiledKernels, Stay) {
  const CompiledKernel* const first = Compile("0");
  for (int i = 1; i < 300; ++i) ASSERT_NE(Compile("another " + std::to_string(i)), nullptr);
  const Calls calls = TakeCalls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "unload"), 0);
  EXPECT_EQ(Compile("0"), first);
  EXPECT_EQ(TakeCalls(), Calls());
}

TEST_F(CompiledKernels, AreNotMoreThanADeviceHasRoomFor) {
  device_.ordinal = 1;
  const CompiledKernel* const first = Compile("0");
  for (int i = 1; i < 1024; ++i) ASSERT_NE(Compile(std::to_string(i)), nullptr);
  TakeCalls();
  EXPECT_EQ(Compile("one more"), nullptr);
  EXPECT_EQ(why_not_, "the driver has compiled 1024 programs for this process already");
  EXPECT_EQ(Compile("0"), first);
  EXPECT_EQ(TakeCalls(), Calls());
  device_.ordinal = 2;
  EXPECT_NE(Compile("one more"), nullptr);
}

TEST_F(CompiledKernels, NoErrorIsLeftBehind) {
  g_cuda.choosing = cudaErrorDevicesUnavailable;
  EXPECT_EQ(Compile("behind"), nullptr);
  EXPECT_EQ(why_not_, "the device cannot be used");
  EXPECT_EQ(g_cuda.last_error, cudaSuccess);
}

// Errors that the application's own calls have left stay for the application.
TEST_F(CompiledKernels, AnErrorOfOthersStays) {
  g_cuda.last_error = cudaErrorInvalidValue;
  EXPECT_NE(Compile("others"), nullptr);
  EXPECT_EQ(g_cuda.last_error, cudaErrorInvalidValue);
}

TEST_F(CompiledKernels, AStartThatFailsIsASentence) {
  const CompiledKernel* const kernel = Compile("start");
  g_cuda.launching = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  const Status status = kernel->Launch(1, 32, nullptr, nullptr);
  EXPECT_EQ(status.code(), Code::kDriverInternal);
  EXPECT_EQ(status.message(), "CUDA: starting a compiled element program: error 701");
}

}  // namespace
}  // namespace anydml::element_cuda
