// Several threads submit to several queues, reuse lists, release buffers in flight and wait on each other's
// fences. All results must be right, and ThreadSanitizer must report nothing.
#include <atomic>
#include <random>
#include <thread>

#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

using TortureTest = D3D12Test;

// What each thread does: random copies through a chain of buffers, checked at the end of each round.
void Submit(ID3D12Device* device, ID3D12CommandQueue* queue, ID3D12CommandQueue* other, uint32_t seed,
            int rounds) {
  std::mt19937 random(seed);
  const auto allocator = CreateAllocator(device);
  const auto list = CreateList(device, allocator.get());
  ASSERT_EQ(list->Close(), S_OK);
  const auto fence = CreateFence(device), cross = CreateFence(device);
  const auto upload = CreateBuffer(device, 64, D3D12_HEAP_TYPE_UPLOAD);
  const auto readback = CreateBuffer(device, 64, D3D12_HEAP_TYPE_READBACK);
  uint64_t value = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto words = Numbers(16, random());
    Fill(upload.get(), words);
    if (round % 8 == 0) {
      ASSERT_EQ(allocator->Reset(), S_OK);
    }
    ASSERT_EQ(list->Reset(allocator.get(), nullptr), S_OK);
    std::vector<Ptr<ID3D12Resource>> chain;
    const size_t length = random() % 4;
    ID3D12Resource* last = upload.get();
    for (size_t i = 0; i < length; ++i) {
      chain.push_back(CreateBuffer(device, 64));
      list->CopyResource(chain.back().get(), last);
      last = chain.back().get();
    }
    list->CopyResource(readback.get(), last);
    ASSERT_EQ(list->Close(), S_OK);
    ++value;
    if (random() % 3 == 0) {  // through the other queue first
      other->Signal(cross.get(), value);
      queue->Wait(cross.get(), value);
    }
    ID3D12CommandList* const lists[] = {list.get(), list.get()};
    queue->ExecuteCommandLists(1 + random() % 2, lists);
    queue->Signal(fence.get(), value);
    if (random() % 2 == 0) chain.clear();  // released in flight: a message, no harm
    if (random() % 2 == 0) {
      Event event;
      ASSERT_EQ(fence->SetEventOnCompletion(value, event.handle()), S_OK);
      while (event.Take() == 0) std::this_thread::yield();
    } else {
      ASSERT_EQ(fence->SetEventOnCompletion(value, nullptr), S_OK);
    }
    ASSERT_EQ(Contents(readback.get()), words);
  }
}

TEST_F(TortureTest, ThreadsAndQueues) {
  const auto a = CreateQueue(device()), b = CreateQueue(device());
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Submit(device(), t % 2 == 0 ? a.get() : b.get(), t % 2 == 0 ? b.get() : a.get(), t + 1, 300);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(device()->GetDeviceRemovedReason(), S_OK);
}

TEST_F(TortureTest, DevicesComeAndGo) {
  std::vector<std::thread> threads;
  ReleaseDevice();
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 300; ++i) {
        const auto device = CreateDevice();
        const auto fence = CreateFence(device.get());
        EXPECT_EQ(fence->Signal(1), S_OK);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(TortureTest, DescriptorsFromManyThreads) {
  const auto heap = CreateDescriptors(device(), 1024, true);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      for (int i = 0; i < 500; ++i) {
        const auto buffer =
            CreateBuffer(device(), 64, D3D12_HEAP_TYPE_DEFAULT, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS);
        D3D12_UNORDERED_ACCESS_VIEW_DESC desc{};
        desc.Format = DXGI_FORMAT_R32_UINT;
        desc.ViewDimension = D3D12_UAV_DIMENSION_BUFFER;
        desc.Buffer.NumElements = 16;
        const SIZE_T start = heap->GetCPUDescriptorHandleForHeapStart().ptr;
        const UINT step = device()->GetDescriptorHandleIncrementSize(D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
        device()->CreateUnorderedAccessView(buffer.get(), nullptr, &desc, {start + random() % 1024 * step});
        device()->CopyDescriptorsSimple(4, {start + random() % 1000 * step}, {start + random() % 1000 * step},
                                        D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST_F(TortureTest, RemovalInTheMiddle) {
  for (int i = 0; i < 20; ++i) {
    const auto device = CreateDevice();
    const auto queue = CreateQueue(device.get());
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      // Created here: a removed device creates none.
      threads.emplace_back([&, fence = CreateFence(device.get())] {
        for (uint64_t value = 1; value < 200; ++value) {
          if (FAILED(queue->Signal(fence.get(), value))) break;
          ASSERT_EQ(fence->SetEventOnCompletion(value, nullptr), S_OK);
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    device->RemoveDevice();
    for (auto& thread : threads) thread.join();
  }
}

}  // namespace
}  // namespace anydml::testing
