#include "ops/element/cuda/compiled_kernels.h"

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace anydml::element_cuda {
namespace {

// Per device. The modules (about 100 KB each) are never unloaded, even without users: an application's stream
// or graph does not keep our objects alive, so it may start a kernel after its last known user is gone, and
// waiting for the device would break a capture. Applications have far fewer programs than this; beyond the
// limit, programs are interpreted.
constexpr size_t kMostKernels = 1024;
constexpr size_t kLogBytes = 1024;

#define ANYDML_DRIVER_FUNCTIONS(V) \
  V(cuFuncGetAttribute)            \
  V(cuLaunchKernel)                \
  V(cuModuleGetFunction)           \
  V(cuModuleLoadDataEx)            \
  V(cuModuleUnload)

// Whether the runtime call succeeded; an error is cleared, so that no later query finds it.
bool Succeeds(cudaError_t error) {
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess;
}

// The driver's functions; the driver is not linked because some machines lack it.
struct Driver {
#define ANYDML_MEMBER(name) decltype(&::name) name = nullptr;
  ANYDML_DRIVER_FUNCTIONS(ANYDML_MEMBER)
#undef ANYDML_MEMBER
  bool complete = true;

  Driver() {
    const auto find = [this](const char* name) {
      constexpr unsigned kVersion = 12000;
      void* function = nullptr;
      cudaDriverEntryPointQueryResult result;
      if (!Succeeds(
              cudaGetDriverEntryPointByVersion(name, &function, kVersion, cudaEnableDefault, &result)) ||
          result != cudaDriverEntryPointSuccess)
        function = nullptr;
      complete = complete && function != nullptr;
      return function;
    };
#define ANYDML_FIND(name) name = reinterpret_cast<decltype(&::name)>(find(#name));
    ANYDML_DRIVER_FUNCTIONS(ANYDML_FIND)
#undef ANYDML_FIND
  }
};

const Driver& TheDriver() {
  static const Driver* const driver = new Driver;  // never destroyed: kernels may outlive static objects
  return *driver;
}

// Compiled kernels, by device and text. Failures are not cached: memory or a device may be available next
// time.
class Cache {
 public:
  const CompiledKernel* Get(const DeviceTraits& device, const std::string& text, const char* name,
                            std::string* why_not) {
    const std::lock_guard lock(mutex_);
    auto& kernels = kernels_[device.ordinal];
    auto& kept = kernels[text];  // allocated first, because without memory for the entry the module would be
                                 // lost
    if (kept == nullptr) {
      auto kernel = std::make_unique<CompiledKernel>(device);
      if (kernels.size() > kMostKernels) {
        *why_not = StrCat("the driver has compiled ", kMostKernels, " programs for this process already");
      } else if (kernel->Load(text, name, why_not)) {
        kept = std::move(kernel);
      }
    }
    if (kept != nullptr) return kept.get();
    kernels.erase(text);
    return nullptr;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::map<std::string, std::unique_ptr<const CompiledKernel>>> kernels_;
};

}  // namespace

bool CompiledKernel::Load(const std::string& text, const char* name, std::string* why_not) {
  const Driver& driver = TheDriver();
  if (!driver.complete) {
    *why_not = "the driver has no compiler";
    return false;
  }
  // The driver's functions need the context, which the runtime creates on demand.
  if (!Succeeds(cudaSetDevice(device_.ordinal))) {
    *why_not = "the device cannot be used";
    return false;
  }
  char log[kLogBytes] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(kLogBytes - 1)};
  CUmodule module = nullptr;
  CUresult error = driver.cuModuleLoadDataEx(&module, text.c_str(), 2, options, values);
  if (error != CUDA_SUCCESS) {
    *why_not = StrCat("the driver does not compile it: error ", static_cast<int>(error), " ", log);
    return false;
  }
  error = driver.cuModuleGetFunction(&function_, module, name);
  // This query loads the kernel onto the device, which is not allowed while a stream is captured.
  int registers = 0;
  if (error == CUDA_SUCCESS) {
    error = driver.cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function_);
  }
  if (error != CUDA_SUCCESS) {
    driver.cuModuleUnload(module);  // nothing has used it yet
    *why_not = StrCat("the driver does not load it: error ", static_cast<int>(error));
    return false;
  }
  return true;
}

Status CompiledKernel::Launch(uint64_t blocks, uint32_t threads, void** parameters, void* stream) const {
  const auto launch = [&] {
    return TheDriver().cuLaunchKernel(function_, static_cast<uint32_t>(blocks), 1, 1, threads, 1, 1, 0,
                                      static_cast<CUstream>(stream), parameters, nullptr);
  };
  CUresult error = launch();
  if (error == CUDA_ERROR_INVALID_CONTEXT) {  // this thread has not used the device yet
    if (Succeeds(cudaSetDevice(device_.ordinal))) error = launch();
  }
  if (error == CUDA_SUCCESS) return {};
  return Status(Code::kDriverInternal,
                StrCat("CUDA: starting a compiled element program: error ", static_cast<int>(error)));
}

const CompiledKernel* CompileKernel(const DeviceTraits& device, const std::string& text, const char* name,
                                    std::string* why_not) {
  static auto* const cache = new Cache;  // never destroyed, as the driver's functions are not
  return cache->Get(device, text, name, why_not);
}

}  // namespace anydml::element_cuda
