// A kernel that faults ends all GPU work of the process. The test launches its own faulting kernel through
// the driver, outside the library.
#include <dlfcn.h>

#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

constexpr char kFaultingKernel[] =
    ".version 7.8\n"
    ".target sm_90\n"
    ".address_size 64\n"
    ".visible .entry Fault() { trap; }\n";

// A function of the driver; all of them return 0 for success.
template <typename... Args>
void Call(void* driver, const char* name, Args... args) {
  const auto function = reinterpret_cast<int (*)(Args...)>(dlsym(driver, name));
  ASSERT_NE(function, nullptr) << name;
  ASSERT_EQ(function(args...), 0) << name;
}

// In the context that the library uses.
void StartFaultingKernel() {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  ASSERT_NE(driver, nullptr) << dlerror();
  void *context = nullptr, *module = nullptr, *kernel = nullptr;
  void** const none = nullptr;
  Call(driver, "cuInit", 0u);
  Call(driver, "cuDevicePrimaryCtxRetain", &context, 0);
  Call(driver, "cuCtxPushCurrent_v2", context);
  Call(driver, "cuModuleLoadData", &module, static_cast<const void*>(kFaultingKernel));
  Call(driver, "cuModuleGetFunction", &kernel, module, "Fault");
  Call(driver, "cuLaunchKernel", kernel, 1u, 1u, 1u, 1u, 1u, 1u, 0u, static_cast<void*>(nullptr), none, none);
}

class GpuFaultTest : public D3D12Test {};

TEST_F(GpuFaultTest, RemovesTheDeviceWithItsReason) {
  const auto queue = CreateQueue(device());
  const auto allocator = CreateAllocator(device());
  const auto list = CreateList(device(), allocator.get());
  const auto upload = UploadBuffer(Numbers(4));
  const auto readback = ReadbackBuffer(4);
  const auto fence = CreateFence(device());
  list->CopyResource(readback.get(), upload.get());
  ASSERT_EQ(list->Close(), S_OK);
  // Executed often enough to be replayed as well.
  for (int i = 0; i < 4; ++i) Execute(queue.get(), list.get());
  Finish(queue.get());
  EXPECT_EQ(Contents(readback.get()), Numbers(4));

  StartFaultingKernel();
  // Some commands may complete before the fault.
  for (uint64_t value = 1; device()->GetDeviceRemovedReason() == S_OK; ++value) {
    Execute(queue.get(), list.get());
    queue->Signal(fence.get(), value);
    EXPECT_EQ(fence->SetEventOnCompletion(value, nullptr), S_OK);
  }
  EXPECT_EQ(device()->GetDeviceRemovedReason(), DXGI_ERROR_DRIVER_INTERNAL_ERROR);
  EXPECT_TRUE(HasMessage(device(), "CUDA: "));
  EXPECT_TRUE(HasMessage(device(), "cudaErrorLaunchFailure"));
  EXPECT_EQ(fence->GetCompletedValue(), UINT64_MAX);
  EXPECT_EQ(queue->Signal(fence.get(), 1), DXGI_ERROR_DEVICE_REMOVED);

  // This process has lost the GPU; a message says so.
  const auto other = CreateDevice();
  const D3D12_HEAP_PROPERTIES properties = HeapProperties(D3D12_HEAP_TYPE_DEFAULT);
  const D3D12_RESOURCE_DESC desc = BufferDesc(64);
  Ptr<ID3D12Resource> buffer;
  EXPECT_EQ(other->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &desc, {}, nullptr,
                                           IID_PPV_ARGS(&buffer)),
            DXGI_ERROR_DRIVER_INTERNAL_ERROR);
  EXPECT_TRUE(LastErrorHas("cudaErrorLaunchFailure"));
}

}  // namespace
}  // namespace anydml::testing
