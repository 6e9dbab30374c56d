#include <chrono>
#include <thread>

#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

using RemovalTest = D3D12Test;

TEST_F(RemovalTest, ReasonAndMessage) {
  device()->RemoveDevice();
  EXPECT_EQ(device()->GetDeviceRemovedReason(), DXGI_ERROR_DEVICE_REMOVED);
  EXPECT_TRUE(HasMessage(device(), "RemoveDevice"));
  device()->RemoveDevice();
  EXPECT_EQ(device()->GetDeviceRemovedReason(), DXGI_ERROR_DEVICE_REMOVED);
}

TEST_F(RemovalTest, NothingCanBeCreated) {
  const auto allocator = CreateAllocator(device());
  device()->RemoveDevice();
  const auto removed = DXGI_ERROR_DEVICE_REMOVED;
  const D3D12_COMMAND_QUEUE_DESC queue = {};
  const D3D12_DESCRIPTOR_HEAP_DESC descriptors = {D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV, 1, {}, 0};
  const D3D12_HEAP_DESC heap = {64, HeapProperties(D3D12_HEAP_TYPE_DEFAULT), 0, D3D12_HEAP_FLAG_NONE};
  const D3D12_QUERY_HEAP_DESC queries = {D3D12_QUERY_HEAP_TYPE_TIMESTAMP, 1, 0};
  const D3D12_RESOURCE_DESC buffer = BufferDesc(64);
  void* out = this;
  EXPECT_EQ(device()->CreateCommandQueue(&queue, __uuidof(ID3D12CommandQueue), &out), removed);
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(device()->CreateCommandAllocator({}, __uuidof(ID3D12CommandAllocator), &out), removed);
  EXPECT_EQ(device()->CreateCommandList(0, {}, allocator.get(), nullptr, __uuidof(ID3D12CommandList), &out),
            removed);
  EXPECT_EQ(device()->CreateCommandList1(0, {}, {}, __uuidof(ID3D12CommandList), &out), removed);
  EXPECT_EQ(device()->CreateDescriptorHeap(&descriptors, __uuidof(ID3D12DescriptorHeap), &out), removed);
  EXPECT_EQ(device()->CreateHeap(&heap, __uuidof(ID3D12Heap), &out), removed);
  EXPECT_EQ(device()->CreateQueryHeap(&queries, __uuidof(ID3D12QueryHeap), &out), removed);
  EXPECT_EQ(device()->CreateFence(0, {}, __uuidof(ID3D12Fence), &out), removed);
  EXPECT_EQ(device()->CreateCommittedResource(&heap.Properties, {}, &buffer, {}, nullptr,
                                              __uuidof(ID3D12Resource), &out),
            removed);
  EXPECT_EQ(allocator->Reset(), removed);
}

TEST_F(RemovalTest, EveryRefusalHasItsOwnSentence) {
  const auto fence = CreateFence(device());
  const auto queue = CreateQueue(device());
  const auto allocator = CreateAllocator(device());
  const auto list = CreateList(device(), allocator.get());
  ID3D12Pageable* const objects[] = {fence.get()};
  device()->RemoveDevice();
  const auto expect = [](HRESULT hr, const std::string& method) {
    EXPECT_EQ(hr, DXGI_ERROR_DEVICE_REMOVED) << method;
    EXPECT_EQ(AnyDmlGetLastErrorMessage(), method + ": the device was removed");
  };
  expect(fence->Signal(1), "ID3D12Fence::Signal");
  expect(queue->Signal(fence.get(), 1), "ID3D12CommandQueue::Signal");
  expect(queue->Wait(fence.get(), 1), "ID3D12CommandQueue::Wait");
  expect(list->Close(), "ID3D12GraphicsCommandList::Close");
  expect(list->Reset(allocator.get(), nullptr), "ID3D12GraphicsCommandList::Reset");
  expect(allocator->Reset(), "ID3D12CommandAllocator::Reset");
  expect(device()->MakeResident(1, objects), "MakeResident");
  expect(device()->Evict(1, objects), "Evict");
}

TEST_F(RemovalTest, FencesReachEverything) {
  const auto fence = CreateFence(device());
  const auto queue = CreateQueue(device());
  Event event;
  EXPECT_EQ(fence->SetEventOnCompletion(5, event.handle()), S_OK);
  device()->RemoveDevice();
  EXPECT_EQ(fence->GetCompletedValue(), UINT64_MAX);
  EXPECT_EQ(event.Take(), 1u);
  EXPECT_EQ(fence->SetEventOnCompletion(1234, nullptr), S_OK);
  EXPECT_EQ(fence->SetEventOnCompletion(1234, event.handle()), S_OK);
  EXPECT_EQ(event.Take(), 1u);
  EXPECT_EQ(fence->Signal(1), DXGI_ERROR_DEVICE_REMOVED);
  EXPECT_EQ(fence->GetCompletedValue(), UINT64_MAX);
  EXPECT_EQ(queue->Signal(fence.get(), 1), DXGI_ERROR_DEVICE_REMOVED);
  EXPECT_EQ(queue->Wait(fence.get(), 1), DXGI_ERROR_DEVICE_REMOVED);
}

TEST_F(RemovalTest, BlockedThreadsAndQueuesAreReleased) {
  const auto fence = CreateFence(device()), after = CreateFence(device());
  const auto queue = CreateQueue(device());
  queue->Wait(fence.get(), 1);
  queue->Signal(after.get(), 1);
  std::thread waiter([&] { EXPECT_EQ(fence->SetEventOnCompletion(1, nullptr), S_OK); });
  std::thread other([&] { EXPECT_EQ(after->SetEventOnCompletion(1, nullptr), S_OK); });
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  device()->RemoveDevice();
  waiter.join();
  other.join();
}

TEST_F(RemovalTest, QueuesDropTheirWork) {
  const auto fence = CreateFence(device());
  const auto queue = CreateQueue(device());
  const auto allocator = CreateAllocator(device());
  const auto list = CreateList(device(), allocator.get());
  auto upload = UploadBuffer(Numbers(4));
  const auto readback = ReadbackBuffer(4);
  list->CopyResource(readback.get(), upload.get());
  ASSERT_EQ(list->Close(), S_OK);
  queue->Wait(fence.get(), 1);
  Execute(queue.get(), list.get());
  device()->RemoveDevice();
  Execute(queue.get(), list.get());
  upload.Reset();
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(Contents(readback.get())[0], 0u);
  EXPECT_EQ(list->Reset(allocator.get(), nullptr), DXGI_ERROR_DEVICE_REMOVED);
}

TEST_F(RemovalTest, ANewDeviceWorks) {
  device()->RemoveDevice();
  const auto other = CreateDevice();
  const auto queue = CreateQueue(other.get());
  const auto fence = CreateFence(other.get());
  EXPECT_EQ(queue->Signal(fence.get(), 1), S_OK);
  EXPECT_EQ(fence->SetEventOnCompletion(1, nullptr), S_OK);
}

TEST_F(RemovalTest, RacesWithFenceCreation) {
  std::thread remover([&] { device()->RemoveDevice(); });
  for (int i = 0; i < 100; ++i) {
    Ptr<ID3D12Fence> fence;
    if (FAILED(device()->CreateFence(0, {}, IID_PPV_ARGS(&fence)))) break;
    if (device()->GetDeviceRemovedReason() != S_OK) {
      EXPECT_EQ(fence->SetEventOnCompletion(1, nullptr), S_OK);
    }
  }
  remover.join();
}

}  // namespace
}  // namespace anydml::testing
