#include "ops/element/cuda/compiled_kernels.h"

#include <cuda_runtime_api.h>

#include <list>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

namespace anydml::element_cuda {
namespace {

// Texts whose kernels are kept although nobody may use them: about 100 KB each.
constexpr size_t kMostKept = 256;
constexpr size_t kLogBytes = 1024;

#define ANYDML_DRIVER_FUNCTIONS(V) \
  V(cuFuncGetAttribute)            \
  V(cuLaunchKernel)                \
  V(cuModuleGetFunction)           \
  V(cuModuleLoadDataEx)            \
  V(cuModuleUnload)

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
      const cudaError_t error =
          cudaGetDriverEntryPointByVersion(name, &function, kVersion, cudaEnableDefault, &result);
      if (error != cudaSuccess || result != cudaDriverEntryPointSuccess) function = nullptr;
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

std::shared_ptr<const CompiledKernel> Compile(const DeviceProperties& device, const std::string& text,
                                              const char* name, std::string* why_not) {
  const Driver& driver = TheDriver();
  if (!driver.complete) {
    *why_not = "the driver has no compiler";
    return nullptr;
  }
  cudaSetDevice(device.ordinal);  // the driver's functions need what the runtime's make when they need it
  char log[kLogBytes] = {};
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(kLogBytes - 1)};
  CUmodule module = nullptr;
  CUresult error = driver.cuModuleLoadDataEx(&module, text.c_str(), 2, options, values);
  if (error != CUDA_SUCCESS) {
    *why_not = StrCat("the driver does not compile it: error ", static_cast<int>(error), " ", log);
    return nullptr;
  }
  CUfunction function = nullptr;
  error = driver.cuModuleGetFunction(&function, module, name);
  // Asking brings it onto the device, which may not be done while a stream is recorded.
  int registers = 0;
  if (error == CUDA_SUCCESS)
    error = driver.cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
  if (error != CUDA_SUCCESS) {
    driver.cuModuleUnload(module);
    *why_not = StrCat("the driver does not load it: error ", static_cast<int>(error));
    return nullptr;
  }
  return std::make_shared<CompiledKernel>(device, module, function);
}

// What was compiled, by device and text. What was used last is first.
class Cache {
 public:
  std::shared_ptr<const CompiledKernel> Get(const DeviceProperties& device, const std::string& text,
                                            const char* name, std::string* why_not) {
    const std::lock_guard lock(mutex_);
    const auto [at, is_new] = index_.try_emplace({device.ordinal, text}, entries_.end());
    if (is_new) {
      at->second = entries_.insert(entries_.begin(), {at, nullptr, {}});
      at->second->kernel = Compile(device, text, name, &at->second->why_not);
      if (entries_.size() > kMostKept) {
        index_.erase(entries_.back().key);
        entries_.pop_back();
      }
    } else {
      entries_.splice(entries_.begin(), entries_, at->second);
    }
    *why_not = at->second->why_not;
    return at->second->kernel;
  }

 private:
  struct Entry;
  using Index = std::map<std::pair<int, std::string>, std::list<Entry>::iterator>;
  struct Entry {
    Index::iterator key;
    std::shared_ptr<const CompiledKernel> kernel;
    std::string why_not;  // where there is no kernel
  };

  std::mutex mutex_;
  std::list<Entry> entries_;
  Index index_;
};

}  // namespace

CompiledKernel::~CompiledKernel() {
  const CurrentDevice current(&device_);
  cudaSetDevice(device_.ordinal);
  TheDriver().cuModuleUnload(module_);
}

Status CompiledKernel::Launch(uint64_t blocks, uint32_t threads, void** parameters, void* stream) const {
  const auto launch = [&] {
    return TheDriver().cuLaunchKernel(function_, static_cast<uint32_t>(blocks), 1, 1, threads, 1, 1, 0,
                                      static_cast<CUstream>(stream), parameters, nullptr);
  };
  CUresult error = launch();
  if (error == CUDA_ERROR_INVALID_CONTEXT) {  // nothing has been done on this thread yet
    cudaSetDevice(device_.ordinal);
    error = launch();
  }
  if (error == CUDA_SUCCESS) return {};
  return Status(Code::kDriverInternal,
                StrCat("CUDA: starting a compiled element program: error ", static_cast<int>(error)));
}

std::shared_ptr<const CompiledKernel> CompileKernel(const DeviceProperties& device, const std::string& text,
                                                    const char* name, std::string* why_not) {
  static auto* const cache = new Cache;  // stays, as the driver's functions do
  return cache->Get(device, text, name, why_not);
}

}  // namespace anydml::element_cuda
