#include "ops/element/cuda/compiled_kernels.h"

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace anydml::element_cuda {
namespace {

// For a device. Their modules stay, about 100 KB each, although nobody may use them: an application's stream
// or graph does not keep us, so that it may start a kernel after we know of nobody, and waiting for the
// device would break what the application records on it. Programs of applications are far fewer; if they are
// not, the rest does without a compiler.
constexpr size_t kMostKernels = 1024;
constexpr size_t kLogBytes = 1024;

#define ANYDML_DRIVER_FUNCTIONS(V) \
  V(cuFuncGetAttribute)            \
  V(cuLaunchKernel)                \
  V(cuModuleGetFunction)           \
  V(cuModuleLoadDataEx)            \
  V(cuModuleUnload)

// Whether the runtime did it; where it did not, nobody else finds that by asking for the last error.
bool Succeeds(cudaError_t error) {
  if (error != cudaSuccess) cudaGetLastError();
  return error == cudaSuccess;
}

// Of the driver, which is not linked: there are machines without it.
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
  static const Driver* const driver = new Driver;  // stays: kernels may outlive the process's statics
  return *driver;
}

// What was compiled, by device and text. Not what could not be: memory or a device may be there the next
// time.
class Cache {
 public:
  const CompiledKernel* Get(const DeviceTraits& device, const std::string& text, const char* name,
                            std::string* why_not) {
    const std::lock_guard lock(mutex_);
    auto& kernels = kernels_[device.ordinal];
    auto& kept = kernels[text];  // first, since a module that there is no memory for would be lost
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
  // The driver's functions need what the runtime's make when they need it.
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
  // Asking brings it onto the device, which may not be done while a stream is recorded.
  int registers = 0;
  if (error == CUDA_SUCCESS) {
    error = driver.cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function_);
  }
  if (error != CUDA_SUCCESS) {
    driver.cuModuleUnload(module);  // nobody has started anything of it
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
  if (error == CUDA_ERROR_INVALID_CONTEXT) {  // nothing has been done on this thread yet
    if (Succeeds(cudaSetDevice(device_.ordinal))) error = launch();
  }
  if (error == CUDA_SUCCESS) return {};
  return Status(Code::kDriverInternal,
                StrCat("CUDA: starting a compiled element program: error ", static_cast<int>(error)));
}

const CompiledKernel* CompileKernel(const DeviceTraits& device, const std::string& text, const char* name,
                                    std::string* why_not) {
  static auto* const cache = new Cache;  // stays, as the driver's functions do
  return cache->Get(device, text, name, why_not);
}

}  // namespace anydml::element_cuda
