// The fixture of the Direct3D tests: a device, small helpers, and a check that every test releases all
// objects. Uses public headers only.
#pragma once

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <anydml.h>
#include <d3d12.h>
#include <dxcore.h>
#include <dxgi1_6.h>

namespace anydml::testing {

// A reference; `&ptr` releases it and gives the address for IID_PPV_ARGS.
template <typename T>
class Ptr {
 public:
  Ptr() = default;
  explicit Ptr(T* object) : object_(object) {}
  Ptr(const Ptr& other) : object_(other.object_) {
    if (object_ != nullptr) object_->AddRef();
  }
  Ptr(Ptr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ptr& operator=(Ptr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ptr() { Reset(); }

  void Reset() {
    if (T* object = std::exchange(object_, nullptr)) object->Release();
  }
  T** operator&() {
    Reset();
    return &object_;
  }
  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

  template <typename U>
  Ptr<U> As() const {
    Ptr<U> result;
    object_->QueryInterface(__uuidof(U), reinterpret_cast<void**>(&result));
    return result;
  }

 private:
  T* object_ = nullptr;
};

inline constexpr uint64_t kAlignment = 65536;

inline D3D12_RESOURCE_DESC BufferDesc(uint64_t bytes, D3D12_RESOURCE_FLAGS flags = D3D12_RESOURCE_FLAG_NONE) {
  return {D3D12_RESOURCE_DIMENSION_BUFFER, 0,    bytes, 1, 1, 1, DXGI_FORMAT_UNKNOWN, {1, 0},
          D3D12_TEXTURE_LAYOUT_ROW_MAJOR,  flags};
}

inline D3D12_HEAP_PROPERTIES HeapProperties(D3D12_HEAP_TYPE type) {
  return {type, D3D12_CPU_PAGE_PROPERTY_UNKNOWN, D3D12_MEMORY_POOL_UNKNOWN, 0, 0};
}

inline D3D12_RESOURCE_STATES InitialState(D3D12_HEAP_TYPE type) {
  switch (type) {
    case D3D12_HEAP_TYPE_UPLOAD:
      return D3D12_RESOURCE_STATE_GENERIC_READ;
    case D3D12_HEAP_TYPE_READBACK:
      return D3D12_RESOURCE_STATE_COPY_DEST;
    default:
      return D3D12_RESOURCE_STATE_COMMON;
  }
}

inline Ptr<ID3D12Device9> CreateDevice(IUnknown* adapter = nullptr) {
  Ptr<ID3D12Device9> device;
  EXPECT_EQ(D3D12CreateDevice(adapter, D3D_FEATURE_LEVEL_11_0, IID_PPV_ARGS(&device)), S_OK);
  return device;
}

inline Ptr<ID3D12Resource> CreateBuffer(ID3D12Device* device, uint64_t bytes,
                                        D3D12_HEAP_TYPE type = D3D12_HEAP_TYPE_DEFAULT,
                                        D3D12_RESOURCE_FLAGS flags = D3D12_RESOURCE_FLAG_NONE) {
  const D3D12_HEAP_PROPERTIES properties = HeapProperties(type);
  const D3D12_RESOURCE_DESC desc = BufferDesc(bytes, flags);
  Ptr<ID3D12Resource> buffer;
  EXPECT_EQ(device->CreateCommittedResource(&properties, D3D12_HEAP_FLAG_NONE, &desc, InitialState(type),
                                            nullptr, IID_PPV_ARGS(&buffer)),
            S_OK);
  return buffer;
}

inline Ptr<ID3D12CommandQueue> CreateQueue(ID3D12Device* device,
                                           D3D12_COMMAND_LIST_TYPE type = D3D12_COMMAND_LIST_TYPE_DIRECT) {
  const D3D12_COMMAND_QUEUE_DESC desc = {type, 0, D3D12_COMMAND_QUEUE_FLAG_NONE, 0};
  Ptr<ID3D12CommandQueue> queue;
  EXPECT_EQ(device->CreateCommandQueue(&desc, IID_PPV_ARGS(&queue)), S_OK);
  return queue;
}

inline Ptr<ID3D12CommandAllocator> CreateAllocator(
    ID3D12Device* device, D3D12_COMMAND_LIST_TYPE type = D3D12_COMMAND_LIST_TYPE_DIRECT) {
  Ptr<ID3D12CommandAllocator> allocator;
  EXPECT_EQ(device->CreateCommandAllocator(type, IID_PPV_ARGS(&allocator)), S_OK);
  return allocator;
}

inline Ptr<ID3D12GraphicsCommandList4> CreateList(
    ID3D12Device* device, ID3D12CommandAllocator* allocator,
    D3D12_COMMAND_LIST_TYPE type = D3D12_COMMAND_LIST_TYPE_DIRECT) {
  Ptr<ID3D12GraphicsCommandList4> list;
  EXPECT_EQ(device->CreateCommandList(0, type, allocator, nullptr, IID_PPV_ARGS(&list)), S_OK);
  return list;
}

inline Ptr<ID3D12Fence> CreateFence(ID3D12Device* device, uint64_t initial = 0) {
  Ptr<ID3D12Fence> fence;
  EXPECT_EQ(device->CreateFence(initial, D3D12_FENCE_FLAG_NONE, IID_PPV_ARGS(&fence)), S_OK);
  return fence;
}

inline Ptr<ID3D12DescriptorHeap> CreateDescriptors(ID3D12Device* device, uint32_t count, bool visible) {
  const D3D12_DESCRIPTOR_HEAP_DESC desc = {
      D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV, count,
      visible ? D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE : D3D12_DESCRIPTOR_HEAP_FLAG_NONE, 0};
  Ptr<ID3D12DescriptorHeap> heap;
  EXPECT_EQ(device->CreateDescriptorHeap(&desc, IID_PPV_ARGS(&heap)), S_OK);
  return heap;
}

inline void Execute(ID3D12CommandQueue* queue, ID3D12CommandList* list) {
  queue->ExecuteCommandLists(1, &list);
}

inline void Fill(ID3D12Resource* buffer, const std::vector<uint32_t>& words) {
  void* data = nullptr;
  ASSERT_EQ(buffer->Map(0, nullptr, &data), S_OK);
  std::memcpy(data, words.data(), words.size() * sizeof(uint32_t));
  buffer->Unmap(0, nullptr);
}

inline std::vector<uint32_t> Contents(ID3D12Resource* buffer) {
  std::vector<uint32_t> words(buffer->GetDesc().Width / sizeof(uint32_t));
  void* data = nullptr;
  EXPECT_EQ(buffer->Map(0, nullptr, &data), S_OK);
  if (data != nullptr) std::memcpy(words.data(), data, words.size() * sizeof(uint32_t));
  buffer->Unmap(0, nullptr);
  return words;
}

inline std::vector<uint32_t> Numbers(size_t count, uint32_t first = 1) {
  std::vector<uint32_t> words(count);
  std::iota(words.begin(), words.end(), first);
  return words;
}

inline D3D12_RESOURCE_BARRIER Transition(ID3D12Resource* buffer, D3D12_RESOURCE_STATES before,
                                         D3D12_RESOURCE_STATES after) {
  D3D12_RESOURCE_BARRIER barrier{};
  barrier.Type = D3D12_RESOURCE_BARRIER_TYPE_TRANSITION;
  barrier.Transition = {buffer, D3D12_RESOURCE_BARRIER_ALL_SUBRESOURCES, before, after};
  return barrier;
}

// The texts of all stored messages.
inline std::vector<std::string> Messages(ID3D12Device* device) {
  Ptr<ID3D12InfoQueue> queue;
  EXPECT_EQ(device->QueryInterface(IID_PPV_ARGS(&queue)), S_OK);
  std::vector<std::string> texts;
  for (UINT64 i = 0; i < queue->GetNumStoredMessagesAllowedByRetrievalFilter(); ++i) {
    SIZE_T size = 0;
    EXPECT_EQ(queue->GetMessage(i, nullptr, &size), S_FALSE);
    std::vector<char> bytes(size);
    auto* message = reinterpret_cast<D3D12_MESSAGE*>(bytes.data());
    EXPECT_EQ(queue->GetMessage(i, message, &size), S_OK);
    texts.emplace_back(message->pDescription);
  }
  return texts;
}

inline bool HasMessage(ID3D12Device* device, const std::string& part) {
  for (const std::string& text : Messages(device)) {
    if (text.find(part) != std::string::npos) return true;
  }
  return false;
}

// A failed call must leave a message that names the error.
inline ::testing::AssertionResult LastErrorHas(const std::string& part) {
  const std::string text = AnyDmlGetLastErrorMessage();
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "the last error is \"" << text << "\", without \"" << part << "\"";
}

class Event {
 public:
  Event() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Event() { close(fd_); }
  HANDLE handle() const { return reinterpret_cast<HANDLE>(static_cast<uintptr_t>(fd_)); }
  int fd() const { return fd_; }
  uint64_t Take() const {  // how often it was set since the last query
    uint64_t count = 0;
    return read(fd_, &count, sizeof(count)) == sizeof(count) ? count : 0;
  }

 private:
  const int fd_;
};

// Objects with no device.
class NoLeakTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(AnyDmlGetLiveObjectCount(), 0u); }
  void TearDown() override { EXPECT_EQ(AnyDmlGetLiveObjectCount(), 0u); }
};

class D3D12Test : public NoLeakTest {
 protected:
  void SetUp() override {
    NoLeakTest::SetUp();
    device_ = CreateDevice();
    ASSERT_TRUE(device_);
  }
  void TearDown() override {
    device_.Reset();
    NoLeakTest::TearDown();
  }

  ID3D12Device9* device() const { return device_.get(); }
  void ReleaseDevice() { device_.Reset(); }

  // Waits until the queue has completed everything submitted before this call.
  void Finish(ID3D12CommandQueue* queue) {
    const auto fence = CreateFence(device());
    ASSERT_EQ(queue->Signal(fence.get(), 1), S_OK);
    ASSERT_EQ(fence->SetEventOnCompletion(1, nullptr), S_OK);
  }

  Ptr<ID3D12Resource> Buffer(uint64_t bytes, D3D12_HEAP_TYPE type = D3D12_HEAP_TYPE_DEFAULT,
                             D3D12_RESOURCE_FLAGS flags = D3D12_RESOURCE_FLAG_NONE) {
    return CreateBuffer(device(), bytes, type, flags);
  }
  Ptr<ID3D12Resource> UploadBuffer(const std::vector<uint32_t>& words) {
    auto buffer = Buffer(words.size() * sizeof(uint32_t), D3D12_HEAP_TYPE_UPLOAD);
    Fill(buffer.get(), words);
    return buffer;
  }
  Ptr<ID3D12Resource> ReadbackBuffer(size_t words) {
    return Buffer(words * sizeof(uint32_t), D3D12_HEAP_TYPE_READBACK);
  }

 private:
  Ptr<ID3D12Device9> device_;
};

}  // namespace anydml::testing
