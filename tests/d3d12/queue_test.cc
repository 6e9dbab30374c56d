// Queues: order, fences, waiting. Longer than most files: one fixture serves all tests.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "d3d12/d3d12_test.h"

// Provided by ThreadSanitizer; null otherwise.
extern "C" __attribute__((weak)) void AnnotateBenignRaceSized(const char* file, int line,
                                                              const volatile void* memory, size_t size,
                                                              const char* why);

namespace anydml::testing {
namespace {

class QueueTest : public D3D12Test {
 protected:
  struct Recorder {
    Ptr<ID3D12CommandAllocator> allocator;
    Ptr<ID3D12GraphicsCommandList4> list;
  };
  Recorder Record(const std::function<void(ID3D12GraphicsCommandList4*)>& record,
                  D3D12_COMMAND_LIST_TYPE type = D3D12_COMMAND_LIST_TYPE_DIRECT) {
    Recorder recorder;
    recorder.allocator = CreateAllocator(device(), type);
    recorder.list = CreateList(device(), recorder.allocator.get(), type);
    record(recorder.list.get());
    EXPECT_EQ(recorder.list->Close(), S_OK);
    return recorder;
  }
  // ThreadSanitizer ignores accesses of the program to this buffer, which can be mapped.
  static void ExpectRaces(ID3D12Resource* buffer) {
    void* memory = nullptr;
    ASSERT_EQ(buffer->Map(0, nullptr, &memory), S_OK);
    if (AnnotateBenignRaceSized != nullptr) {
      AnnotateBenignRaceSized(__FILE__, __LINE__, memory, buffer->GetDesc().Width, "the same bytes");
    }
    buffer->Unmap(0, nullptr);
  }
  void ExpectRemoval(const std::string& text) {
    EXPECT_EQ(device()->GetDeviceRemovedReason(), DXGI_ERROR_INVALID_CALL);
    EXPECT_TRUE(HasMessage(device(), text)) << text;
  }
};

TEST_F(QueueTest, AThreadThatCannotBeStarted) {
  pthread_attr_t usual, absurd;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_attr_init(&absurd), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&absurd, size_t{1} << 55), 0);  // more than the address space
  ASSERT_EQ(pthread_setattr_default_np(&absurd), 0);
  const D3D12_COMMAND_QUEUE_DESC desc = {};
  void* queue = this;
  const HRESULT hr = device()->CreateCommandQueue(&desc, __uuidof(ID3D12CommandQueue), &queue);
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  pthread_attr_destroy(&absurd);
  pthread_attr_destroy(&usual);
  EXPECT_EQ(hr, E_OUTOFMEMORY);
  EXPECT_EQ(queue, nullptr);
  // The name ends differently on a GPU.
  constexpr char kSentence[] = "CreateCommandQueue: the thread anydml-";
  EXPECT_TRUE(LastErrorHas(kSentence));
  EXPECT_TRUE(LastErrorHas(" cannot be started: "));
  EXPECT_TRUE(HasMessage(device(), kSentence));
  Finish(CreateQueue(device()).get());
}

TEST_F(QueueTest, ListIsResetWhileItRuns) {
  const auto queue = CreateQueue(device());
  const auto fence = CreateFence(device());
  const auto allocator = CreateAllocator(device());
  const auto list = CreateList(device(), allocator.get());
  const auto readback = ReadbackBuffer(64);
  ASSERT_EQ(queue->Wait(fence.get(), 1), S_OK);  // nothing runs before everything is recorded
  std::vector<Ptr<ID3D12Resource>> uploads;
  for (uint32_t i = 0; i < 64; ++i) {
    if (i != 0) {
      ASSERT_EQ(list->Reset(allocator.get(), nullptr), S_OK);
    }
    uploads.push_back(UploadBuffer({i * 10}));
    list->CopyBufferRegion(readback.get(), i * 4, uploads.back().get(), 0, 4);
    ASSERT_EQ(list->Close(), S_OK);
    Execute(queue.get(), list.get());
  }
  EXPECT_EQ(allocator->Reset(), E_FAIL);
  EXPECT_TRUE(LastErrorHas("in flight"));
  EXPECT_EQ(Contents(readback.get())[5], 0u);
  fence->Signal(1);
  Finish(queue.get());
  EXPECT_EQ(allocator->Reset(), S_OK);
  for (uint32_t i = 0; i < 64; ++i) EXPECT_EQ(Contents(readback.get())[i], i * 10);
}

TEST_F(QueueTest, SameListSeveralTimesInOneCall) {
  const auto queue = CreateQueue(device());
  const auto upload = UploadBuffer(Numbers(4)), middle = Buffer(16), readback = ReadbackBuffer(4);
  const auto recorder = Record([&](auto* list) {
    list->CopyResource(middle.get(), upload.get());
    list->CopyResource(readback.get(), middle.get());
  });
  ID3D12CommandList* lists[] = {recorder.list.get(), recorder.list.get(), recorder.list.get()};
  queue->ExecuteCommandLists(3, lists);
  queue->ExecuteCommandLists(3, lists);
  Finish(queue.get());
  EXPECT_EQ(Contents(readback.get()), Numbers(4));
  EXPECT_EQ(device()->GetDeviceRemovedReason(), S_OK);
}

TEST_F(QueueTest, TwoQueuesWaitForEachOther) {
  const auto first = CreateQueue(device()), second = CreateQueue(device(), D3D12_COMMAND_LIST_TYPE_COMPUTE);
  const auto fence = CreateFence(device());
  const auto upload = UploadBuffer({0, 1, 2, 3}), shared = Buffer(16), readback = ReadbackBuffer(4);
  const auto write = Record([&](auto* list) { list->CopyResource(shared.get(), upload.get()); });
  const auto read = Record([&](auto* list) { list->CopyResource(readback.get(), shared.get()); },
                           D3D12_COMMAND_LIST_TYPE_COMPUTE);
  for (uint32_t i = 0; i < 200; ++i) {
    Fill(upload.get(), {i, i, i, i});
    second->Wait(fence.get(), 2 * i + 1);
    Execute(second.get(), read.list.get());
    second->Signal(fence.get(), 2 * i + 2);
    Execute(first.get(), write.list.get());
    first->Signal(fence.get(), 2 * i + 1);
    ASSERT_EQ(fence->SetEventOnCompletion(2 * i + 2, nullptr), S_OK);
    ASSERT_EQ(Contents(readback.get())[3], i);
  }
}

TEST_F(QueueTest, ReleasedWhileItWaits) {
  const auto fence = CreateFence(device()), after = CreateFence(device());
  auto queue = CreateQueue(device());
  queue->Wait(fence.get(), 1);
  queue->Signal(after.get(), 1);
  queue.Reset();                                             // must not hang
  EXPECT_EQ(after->SetEventOnCompletion(1, nullptr), S_OK);  // nor must this
  EXPECT_EQ(device()->GetDeviceRemovedReason(), DXGI_ERROR_INVALID_CALL);
  EXPECT_TRUE(HasMessage(device(), "released while it waits"));
}

TEST_F(QueueTest, ReleasedWhileAsleepInAWait) {
  const auto fence = CreateFence(device());
  auto queue = CreateQueue(device());
  queue->Wait(fence.get(), 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  queue.Reset();
}

TEST_F(QueueTest, WorkIsDoneBeforeTheQueueGoes) {
  const auto fence = CreateFence(device());
  const auto upload = UploadBuffer(Numbers(4)), readback = ReadbackBuffer(4);
  const auto recorder = Record([&](auto* list) { list->CopyResource(readback.get(), upload.get()); });
  {
    const auto queue = CreateQueue(device());
    Execute(queue.get(), recorder.list.get());
    queue->Signal(fence.get(), 1);
  }
  EXPECT_EQ(fence->GetCompletedValue(), 1u);
  EXPECT_EQ(Contents(readback.get()), Numbers(4));
}

TEST_F(QueueTest, BufferReleasedInFlight) {
  const auto queue = CreateQueue(device());
  const auto fence = CreateFence(device());
  auto upload = UploadBuffer(Numbers(4));
  const auto readback = ReadbackBuffer(4);
  upload->SetName(L"weights");
  const auto recorder = Record([&](auto* list) { list->CopyResource(readback.get(), upload.get()); });
  queue->Wait(fence.get(), 1);
  Execute(queue.get(), recorder.list.get());
  upload.Reset();
  EXPECT_TRUE(HasMessage(device(), "'weights' was released while"));
  fence->Signal(1);
  Finish(queue.get());
  EXPECT_EQ(Contents(readback.get()), Numbers(4));
  EXPECT_EQ(device()->GetDeviceRemovedReason(), S_OK);
}

TEST_F(QueueTest, BufferReleasedBeforeSubmission) {
  const auto queue = CreateQueue(device());
  auto upload = UploadBuffer(Numbers(4));
  const auto readback = ReadbackBuffer(4);
  const auto recorder = Record([&](auto* list) { list->CopyResource(readback.get(), upload.get()); });
  upload.Reset();
  Execute(queue.get(), recorder.list.get());
  ExpectRemoval("released");
  EXPECT_EQ(Contents(readback.get())[0], 0u);
}

TEST_F(QueueTest, OpenList) {
  const auto queue = CreateQueue(device());
  const auto allocator = CreateAllocator(device());
  const auto list = CreateList(device(), allocator.get());
  Execute(queue.get(), list.get());
  ExpectRemoval("still open");
}

TEST_F(QueueTest, ListInError) {
  const auto queue = CreateQueue(device());
  const auto allocator = CreateAllocator(device());
  const auto list = CreateList(device(), allocator.get());
  list->Dispatch(1, 1, 1);
  EXPECT_EQ(list->Close(), E_INVALIDARG);
  Execute(queue.get(), list.get());
  ExpectRemoval("Close failed");
}

TEST_F(QueueTest, WrongType) {
  const auto queue = CreateQueue(device(), D3D12_COMMAND_LIST_TYPE_COMPUTE);
  const auto recorder = Record([](auto*) {});
  Execute(queue.get(), recorder.list.get());
  ExpectRemoval("type");
}

TEST_F(QueueTest, NullList) {
  const auto queue = CreateQueue(device());
  queue->ExecuteCommandLists(0, nullptr);
  EXPECT_EQ(device()->GetDeviceRemovedReason(), S_OK);
  Execute(queue.get(), nullptr);
  ExpectRemoval("ppCommandLists[0] is null");
}

TEST_F(QueueTest, AllocatorResetBetween) {
  const auto queue = CreateQueue(device());
  const auto recorder = Record([](auto*) {});
  EXPECT_EQ(recorder.allocator->Reset(), S_OK);
  Execute(queue.get(), recorder.list.get());
  ExpectRemoval("allocator");
}

TEST_F(QueueTest, NothingRunsWhenOneListIsBad) {
  const auto queue = CreateQueue(device());
  const auto upload = UploadBuffer(Numbers(4)), readback = ReadbackBuffer(4);
  const auto recorder = Record([&](auto* list) { list->CopyResource(readback.get(), upload.get()); });
  ID3D12CommandList* lists[] = {recorder.list.get(), nullptr};
  queue->ExecuteCommandLists(2, lists);
  ExpectRemoval("ppCommandLists[1]");
  EXPECT_EQ(Contents(readback.get())[0], 0u);
}

TEST_F(QueueTest, ObjectsOfAnotherDevice) {
  const auto queue = CreateQueue(device());
  const auto buffer = Buffer(64);
  device()->RemoveDevice();  // so that the next one is another
  const auto other = CreateDevice();
  ASSERT_NE(other.get(), device());
  const auto fence = CreateFence(other.get());
  EXPECT_EQ(queue->Signal(fence.get(), 1), E_INVALIDARG);
  EXPECT_EQ(queue->Wait(fence.get(), 1), E_INVALIDARG);
  const auto other_queue = CreateQueue(other.get());
  const auto allocator = CreateAllocator(other.get());
  const auto list = CreateList(other.get(), allocator.get());
  list->CopyResource(buffer.get(), buffer.get());
  EXPECT_EQ(list->Close(), E_INVALIDARG);
  EXPECT_TRUE(LastErrorHas("not a resource of this device"));
  ID3D12Pageable* pageable = buffer.get();
  EXPECT_EQ(other->MakeResident(1, &pageable), E_INVALIDARG);
}

TEST_F(QueueTest, Descriptions) {
  const auto queue = CreateQueue(device(), D3D12_COMMAND_LIST_TYPE_COPY);
  EXPECT_EQ(queue->GetDesc().Type, D3D12_COMMAND_LIST_TYPE_COPY);
  D3D12_COMMAND_QUEUE_DESC desc = {D3D12_COMMAND_LIST_TYPE_DIRECT, 50, D3D12_COMMAND_QUEUE_FLAG_NONE, 0};
  Ptr<ID3D12CommandQueue> other;
  EXPECT_EQ(device()->CreateCommandQueue(&desc, IID_PPV_ARGS(&other)), E_INVALIDARG);
  desc.Priority = D3D12_COMMAND_QUEUE_PRIORITY_HIGH;
  EXPECT_EQ(device()->CreateCommandQueue(&desc, IID_PPV_ARGS(&other)), S_OK);
  desc.NodeMask = 2;
  EXPECT_EQ(device()->CreateCommandQueue(&desc, IID_PPV_ARGS(&other)), E_INVALIDARG);
  desc = {D3D12_COMMAND_LIST_TYPE_BUNDLE, 0, D3D12_COMMAND_QUEUE_FLAG_NONE, 0};
  EXPECT_EQ(device()->CreateCommandQueue(&desc, IID_PPV_ARGS(&other)), E_NOTIMPL);
  desc.Type = D3D12_COMMAND_LIST_TYPE_DIRECT;
  EXPECT_EQ(device()->CreateCommandQueue1(&desc, GUID{}, IID_PPV_ARGS(&other)), S_OK);
}

TEST_F(QueueTest, Timestamps) {
  const auto queue = CreateQueue(device());
  UINT64 frequency = 0, gpu = 0, cpu = 0;
  ASSERT_EQ(queue->GetTimestampFrequency(&frequency), S_OK);
  EXPECT_GT(frequency, 0u);
  ASSERT_EQ(queue->GetClockCalibration(&gpu, &cpu), S_OK);
  const D3D12_QUERY_HEAP_DESC desc = {D3D12_QUERY_HEAP_TYPE_TIMESTAMP, 4, 0};
  Ptr<ID3D12QueryHeap> heap;
  ASSERT_EQ(device()->CreateQueryHeap(&desc, IID_PPV_ARGS(&heap)), S_OK);
  const auto readback = ReadbackBuffer(8);
  const auto recorder = Record([&](auto* list) {
    list->EndQuery(heap.get(), D3D12_QUERY_TYPE_TIMESTAMP, 1);
    list->EndQuery(heap.get(), D3D12_QUERY_TYPE_TIMESTAMP, 2);
    list->ResolveQueryData(heap.get(), D3D12_QUERY_TYPE_TIMESTAMP, 1, 2, readback.get(), 8);
  });
  Execute(queue.get(), recorder.list.get());
  Finish(queue.get());
  uint64_t stamps[4];
  std::memcpy(stamps, Contents(readback.get()).data(), sizeof(stamps));
  EXPECT_EQ(stamps[0], 0u);
  EXPECT_GE(stamps[1], gpu);
  EXPECT_GE(stamps[2], stamps[1]);
  UINT64 later = 0;
  queue->GetClockCalibration(&later, &cpu);
  EXPECT_GE(later, stamps[2]);
}

TEST_F(QueueTest, QueryMisuse) {
  D3D12_QUERY_HEAP_DESC desc = {D3D12_QUERY_HEAP_TYPE_OCCLUSION, 4, 0};
  Ptr<ID3D12QueryHeap> heap;
  EXPECT_EQ(device()->CreateQueryHeap(&desc, IID_PPV_ARGS(&heap)), E_NOTIMPL);
  desc = {D3D12_QUERY_HEAP_TYPE_TIMESTAMP, 0, 0};
  EXPECT_EQ(device()->CreateQueryHeap(&desc, IID_PPV_ARGS(&heap)), E_INVALIDARG);
  desc.Count = 4;
  ASSERT_EQ(device()->CreateQueryHeap(&desc, IID_PPV_ARGS(&heap)), S_OK);
  const auto readback = ReadbackBuffer(8);
  const auto allocator = CreateAllocator(device());
  const auto list = CreateList(device(), allocator.get());
  const auto fails = [&](const std::function<void()>& record) {
    record();
    EXPECT_EQ(list->Close(), E_INVALIDARG);
    EXPECT_EQ(list->Reset(allocator.get(), nullptr), S_OK);
  };
  const auto type = D3D12_QUERY_TYPE_TIMESTAMP;
  fails([&] { list->EndQuery(heap.get(), type, 4); });
  fails([&] { list->EndQuery(nullptr, type, 0); });
  fails([&] { list->EndQuery(heap.get(), D3D12_QUERY_TYPE_OCCLUSION, 0); });
  fails([&] { list->BeginQuery(heap.get(), type, 0); });
  fails([&] { list->ResolveQueryData(heap.get(), type, 3, 2, readback.get(), 0); });
  fails([&] { list->ResolveQueryData(heap.get(), type, 0, 4, readback.get(), 8); });
  fails([&] { list->ResolveQueryData(heap.get(), type, 0, 1, readback.get(), 4); });
  fails([&] { list->ResolveQueryData(heap.get(), type, 0, 1, nullptr, 0); });
}

// After some executions, a backend may replay the commands; only data and time differ.
TEST_F(QueueTest, AListThatComesAgainDoesItAgain) {
  const auto queue = CreateQueue(device());
  for (const size_t words : {size_t{1000}, size_t{300001}}) {
    const uint64_t bytes = words * 4;
    const auto upload = UploadBuffer(Numbers(words));
    const auto first = Buffer(bytes), second = Buffer(bytes), third = Buffer(bytes);
    const auto readback = ReadbackBuffer(words);
    const auto allocator = CreateAllocator(device());
    const auto list = CreateList(device(), allocator.get());
    list->CopyResource(first.get(), upload.get());
    list->CopyBufferRegion(second.get(), 0, first.get(), 4, bytes - 4);
    list->CopyBufferRegion(second.get(), bytes - 4, first.get(), 0, 4);
    list->CopyResource(third.get(), second.get());
    list->CopyResource(readback.get(), third.get());
    ASSERT_EQ(list->Close(), S_OK);
    for (uint32_t round = 0; round < 6; ++round) {
      std::vector<uint32_t> expected = Numbers(words, 1000 * round);
      Fill(upload.get(), expected);
      Execute(queue.get(), list.get());
      Finish(queue.get());
      std::rotate(expected.begin(), expected.begin() + 1, expected.end());
      ASSERT_EQ(Contents(readback.get()), expected) << round;
    }
  }
}

TEST_F(QueueTest, AListOnTwoQueuesAtOnce) {
  constexpr size_t kWords = 1 << 16;
  const auto upload = UploadBuffer(Numbers(kWords));
  const Ptr<ID3D12Resource> readbacks[] = {ReadbackBuffer(kWords), ReadbackBuffer(kWords)};
  const Ptr<ID3D12CommandQueue> queues[] = {CreateQueue(device()), CreateQueue(device())};
  const auto allocator = CreateAllocator(device());
  const auto list = CreateList(device(), allocator.get());
  for (const auto& readback : readbacks) {
    ExpectRaces(readback.get());  // both queues write the same bytes
    list->CopyResource(readback.get(), upload.get());
  }
  ASSERT_EQ(list->Close(), S_OK);
  for (int i = 0; i < 200; ++i) Execute(queues[i % 2].get(), list.get());
  for (const auto& queue : queues) Finish(queue.get());
  for (const auto& readback : readbacks) EXPECT_EQ(Contents(readback.get()), Numbers(kWords));
  EXPECT_EQ(device()->GetDeviceRemovedReason(), S_OK);
}

// The submitting thread may execute short lists itself; it does not execute long ones.
TEST_F(QueueTest, SeveralThreadsShareAQueue) {
  const auto queue = CreateQueue(device());
  std::atomic<int> wrong{0};
  const auto use = [&](uint32_t number) {
    const size_t words = number % 2 == 0 ? 1000 : 600000;
    const auto upload = UploadBuffer(Numbers(words));
    const auto buffer = Buffer(words * 4);
    const auto readback = ReadbackBuffer(words);
    const auto there = Record([&](auto* list) { list->CopyResource(buffer.get(), upload.get()); });
    const auto back = Record([&](auto* list) { list->CopyResource(readback.get(), buffer.get()); });
    for (uint32_t round = 0; round < 100; ++round) {
      const std::vector<uint32_t> expected = Numbers(words, 1000 * round + number);
      Fill(upload.get(), expected);
      Execute(queue.get(), there.list.get());
      Execute(queue.get(), back.list.get());
      Finish(queue.get());
      if (Contents(readback.get()) != expected) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (uint32_t number = 0; number < 4; ++number) threads.emplace_back(use, number);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(device()->GetDeviceRemovedReason(), S_OK);
}

// After a wait, the submitting thread executes nothing, however short.
TEST_F(QueueTest, ShortListsWaitToo) {
  const auto upload = UploadBuffer(Numbers(100, 7));
  const auto readback = ReadbackBuffer(100);
  const auto fence = CreateFence(device());
  const auto queue = CreateQueue(device());
  const auto copy = Record([&](auto* list) { list->CopyResource(readback.get(), upload.get()); });
  Finish(queue.get());
  ASSERT_EQ(queue->Wait(fence.get(), 1), S_OK);
  Execute(queue.get(), copy.list.get());
  ASSERT_EQ(queue->Signal(fence.get(), 2), S_OK);
  EXPECT_EQ(fence->GetCompletedValue(), 0u);
  EXPECT_NE(Contents(readback.get()), Numbers(100, 7));
  ASSERT_EQ(fence->Signal(1), S_OK);
  ASSERT_EQ(fence->SetEventOnCompletion(2, nullptr), S_OK);
  EXPECT_EQ(Contents(readback.get()), Numbers(100, 7));
}

// Buffers that are placed in the same memory.
TEST_F(QueueTest, CopiesThatOverlap) {
  constexpr uint32_t kWords = 5 * kAlignment / 4;
  const D3D12_HEAP_DESC desc = {6 * kAlignment, HeapProperties(D3D12_HEAP_TYPE_DEFAULT), 0,
                                D3D12_HEAP_FLAG_NONE};
  Ptr<ID3D12Heap> heap;
  ASSERT_EQ(device()->CreateHeap(&desc, IID_PPV_ARGS(&heap)), S_OK);
  const auto place = [&](uint64_t offset) {
    const D3D12_RESOURCE_DESC buffer = BufferDesc(5 * kAlignment);
    Ptr<ID3D12Resource> placed;
    EXPECT_EQ(device()->CreatePlacedResource(heap.get(), offset, &buffer, D3D12_RESOURCE_STATE_COMMON,
                                             nullptr, IID_PPV_ARGS(&placed)),
              S_OK);
    return placed;
  };
  const Ptr<ID3D12Resource> low = place(0), high = place(kAlignment);
  const auto upload = UploadBuffer(Numbers(kWords));
  const auto readback = ReadbackBuffer(kWords);
  const auto queue = CreateQueue(device());
  for (const bool up : {true, false}) {
    const auto& source = up ? low : high;
    const auto& target = up ? high : low;
    const auto allocator = CreateAllocator(device());
    const auto list = CreateList(device(), allocator.get());
    list->CopyResource(source.get(), upload.get());
    list->CopyResource(target.get(), source.get());
    list->CopyResource(readback.get(), target.get());
    ASSERT_EQ(list->Close(), S_OK);
    Execute(queue.get(), list.get());
    Finish(queue.get());
    EXPECT_EQ(Contents(readback.get()), Numbers(kWords)) << up;
  }
}

}  // namespace
}  // namespace anydml::testing
