// Reuse of memory: the order of streams, with CUDA's streams simulated in this file.
#include "../src/memory_pool.h"

#include <gtest/gtest.h>

#include <anydml.h>

#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/dml_harness.h"

namespace {

thread_local uint64_t t_own_stream = 1002;  // the id of stream 2

// The requests to CUDA, and the existing streams with handles above 2. A mark is the handle of the stream in
// which it was set, and is written with a "!".
struct Cuda {
  std::vector<std::string> calls{};
  std::map<uintptr_t, uint64_t> ids{};
  std::set<uintptr_t> capturing{};
  HRESULT ordering = S_OK;
  HRESULT marking = S_OK;
  int freed_marks = 0;
};

Cuda& TheCuda() {
  static Cuda cuda;
  return cuda;
}

std::string Number(void* handle) { return std::to_string(reinterpret_cast<uintptr_t>(handle)); }

// CUDA may crash if the stream no longer exists.
void ExpectToExist(void* stream) {
  const auto handle = reinterpret_cast<uintptr_t>(stream);
  EXPECT_TRUE(handle <= 2 || TheCuda().ids.contains(handle)) << "stream " << handle << " is gone";
}

}  // namespace

// Replaces the library's function.
extern "C" {

int32_t AnyDmlOrderCudaStreams(ID3D12Device*, void* before, void* after) {
  ExpectToExist(before);
  ExpectToExist(after);
  TheCuda().calls.push_back(Number(before) + " < " + Number(after));
  return TheCuda().ordering;
}

int32_t AnyDmlWaitForCudaStream(ID3D12Device*, void* stream) {
  ExpectToExist(stream);
  TheCuda().calls.push_back("wait for " + Number(stream));
  return S_OK;
}

int32_t AnyDmlDescribeCudaStream(ID3D12Device*, void* stream, AnyDmlCudaStreamInfo* info) {
  ExpectToExist(stream);
  const auto handle = reinterpret_cast<uintptr_t>(stream);
  *info = {handle == 2   ? t_own_stream
           : handle == 1 ? 1001
                         : TheCuda().ids[handle],
           TheCuda().capturing.contains(handle) ? 1 : 0};
  return S_OK;
}

int32_t AnyDmlMarkCudaStream(ID3D12Device*, void* stream, void** mark) {
  ExpectToExist(stream);
  TheCuda().calls.push_back("mark " + Number(stream));
  if (SUCCEEDED(TheCuda().marking)) *mark = stream;
  return TheCuda().marking;
}

int32_t AnyDmlWaitForCudaMark(ID3D12Device*, void* mark, void* stream) {
  ExpectToExist(stream);
  if (stream == nullptr) {
    TheCuda().calls.push_back("wait for " + Number(mark) + "!");
    return S_OK;
  }
  TheCuda().calls.push_back(Number(mark) + "! < " + Number(stream));
  return TheCuda().ordering;
}

int32_t AnyDmlFreeCudaMark(ID3D12Device*, void*) {
  ++TheCuda().freed_marks;
  return S_OK;
}

}  // extern "C"

namespace anydml::python {
namespace {

using Calls = std::vector<std::string>;

class MemoryPoolTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = std::make_shared<MemoryPool>(test::CpuDevice());
    TheCuda() = {.ids = {{10, 10}, {20, 20}, {30, 30}}};
  }

  Stream At(uintptr_t handle) {
    Stream stream;
    EXPECT_TRUE(pool_->Describe(handle, &stream).ok());
    return stream;
  }
  std::shared_ptr<Memory> Take(uintptr_t handle) {
    std::shared_ptr<Memory> memory;
    EXPECT_TRUE(pool_->Take(100, At(handle), &memory).ok());
    return memory;
  }
  std::shared_ptr<MemoryUse> Use(const std::shared_ptr<Memory>& memory, uintptr_t handle,
                                 bool exported = false) {
    std::shared_ptr<MemoryUse> use;
    EXPECT_TRUE(MemoryUse::Begin(memory, At(handle), exported, &use).ok());
    return use;
  }
  std::shared_ptr<MemoryUse> Export(const std::shared_ptr<Memory>& memory, uintptr_t handle) {
    return Use(memory, handle, true);
  }
  // Like an operator that does not wait.
  void Call(const std::shared_ptr<Memory>& memory, uintptr_t handle) {
    const auto use = Use(memory, handle);
    MemoryPool::MoveEnd(At(handle));
  }
  // Memory that a call in that stream has used.
  std::shared_ptr<Memory> TakeAndCall(uintptr_t handle) {
    auto memory = Take(handle);
    Call(memory, handle);
    return memory;
  }
  // In stream 20, and not ordered behind its use in stream 10.
  std::shared_ptr<Memory> UsedInTwoStreams() {
    auto memory = Take(10);
    const auto late = Use(memory, 10);
    Call(memory, 20);
    EXPECT_EQ(Asked(), (Calls{"mark 20", "mark 20"}));
    MemoryPool::MoveEnd(At(10));
    EXPECT_EQ(Asked(), Calls{"mark 10"});
    return memory;
  }
  // The requests to CUDA since the last call.
  Calls Asked() { return std::exchange(TheCuda().calls, {}); }

  std::shared_ptr<MemoryPool> pool_;
};

TEST_F(MemoryPoolTest, WhatAStreamGivesBackItTakesAgain) {
  const uintptr_t address = Take(10)->address();
  const auto other = Take(20);
  EXPECT_NE(other->address(), address);
  EXPECT_EQ(Take(10)->address(), address);
  EXPECT_EQ(Asked(), Calls{});
}

TEST_F(MemoryPoolTest, AUseInAnotherStreamComesBehind) {
  auto memory = TakeAndCall(10);
  const uintptr_t address = memory->address();
  EXPECT_EQ(Asked(), Calls{"mark 10"});
  Call(memory, 20);
  EXPECT_EQ(Asked(), (Calls{"10! < 20", "mark 20", "mark 20"}));
  Call(memory, 20);
  EXPECT_EQ(Asked(), Calls{"mark 20"});
  memory.reset();
  EXPECT_NE(Take(10)->address(), address);
  EXPECT_EQ(Take(20)->address(), address);
  EXPECT_EQ(Asked(), Calls{});
}

TEST_F(MemoryPoolTest, AnExportLivesOnInAnEarlierStream) {
  auto memory = TakeAndCall(10);
  const uintptr_t address = memory->address();
  auto exported = Export(memory, 20);
  EXPECT_EQ(Asked(), (Calls{"mark 10", "10! < 20", "mark 20"}));
  Call(memory, 30);  // the export's holder orders the work that it has enqueued since
  EXPECT_EQ(Asked(), (Calls{"20! < 30", "mark 30", "mark 30"}));
  EXPECT_TRUE(memory->OrderBefore(At(10)).ok());  // but the host sees it
  EXPECT_EQ(Asked(), (Calls{"wait for 0", "30! < 10"}));
  memory.reset();
  TheCuda().ids.erase(20);
  exported.reset();
  EXPECT_EQ(Asked(), Calls{});
  EXPECT_EQ(Take(30)->address(), address);  // after all that has completed
  EXPECT_EQ(Asked(), (Calls{"wait for 0", "mark 30"}));
  EXPECT_EQ(Take(30)->address(), address);
  EXPECT_EQ(Asked(), Calls{});
}

TEST_F(MemoryPoolTest, AnExportThatIsOver) {
  auto memory = Take(20);
  const uintptr_t address = memory->address();
  Export(memory, 20);
  memory.reset();
  EXPECT_EQ(Asked(), Calls{});
  memory = Take(20);  // behind it, since it was in the same stream
  EXPECT_EQ(memory->address(), address);
  EXPECT_EQ(Asked(), Calls{"mark 20"});
  Export(memory, 20);
  Use(memory, 20);
  EXPECT_EQ(Asked(), Calls{"mark 20"});
  Export(memory, 20);
  TheCuda().ids.erase(20);
  Call(memory, 30);
  EXPECT_EQ(Asked(), (Calls{"wait for 0", "mark 30", "mark 30"}));
  Export(memory, 30);
  TheCuda().ids.erase(30);
  memory.reset();
  pool_->Empty();
  EXPECT_EQ(Asked(), Calls{"wait for 0"});
}

TEST_F(MemoryPoolTest, TheDefaultStreamIsNeverGone) {
  auto memory = TakeAndCall(10);
  Export(memory, 1);
  EXPECT_EQ(Asked(), (Calls{"mark 10", "10! < 1"}));
  Call(memory, 30);
  EXPECT_EQ(Asked(), (Calls{"1 < 30", "mark 30", "mark 30"}));
  Call(memory, 1);
  memory.reset();
  pool_->Empty();
  EXPECT_EQ(Asked(), (Calls{"30! < 1", "wait for 1"}));
}

TEST_F(MemoryPoolTest, ACallThatIsNotEnqueuedYetWhenAnotherIs) {
  const uintptr_t address = UsedInTwoStreams()->address();
  EXPECT_EQ(Asked(), Calls{});
  EXPECT_NE(Take(10)->address(), address);
  EXPECT_EQ(Take(20)->address(), address);
  EXPECT_EQ(Asked(), (Calls{"10! < 20", "mark 20"}));
}

TEST_F(MemoryPoolTest, EveryThreadHasAStreamOfNumberTwo) {
  auto memory = Take(2);
  const uintptr_t address = memory->address();
  std::thread([&] {
    t_own_stream = 2002;
    Use(memory, 2);
    EXPECT_EQ(Asked(), Calls{"1 < 2"});  // the default stream is ordered after every thread's own stream
    memory.reset();
  }).join();
  EXPECT_NE(Take(2)->address(), address);
  std::thread([&] {
    t_own_stream = 2002;
    EXPECT_EQ(Take(2)->address(), address);
  }).join();
}

TEST_F(MemoryPoolTest, ANewStreamWithTheHandleOfOneThatIsGone) {
  const uintptr_t address = TakeAndCall(10)->address();
  const auto used = TakeAndCall(20);
  EXPECT_EQ(Asked(), (Calls{"mark 10", "mark 20"}));
  TheCuda().ids = {{10, 11}, {30, 30}};  // 10 is now another stream, 20 no longer exists
  EXPECT_NE(Take(10)->address(), address);
  EXPECT_TRUE(used->OrderBefore(At(30)).ok());
  EXPECT_EQ(Asked(), Calls{"20! < 30"});
  Call(used, 30);
  EXPECT_EQ(Asked(), (Calls{"20! < 30", "mark 30", "mark 30"}));
  pool_->Empty();
  EXPECT_EQ(Asked(), Calls{"wait for 10!"});
}

TEST_F(MemoryPoolTest, WhatCannotBeOrderedIsWaitedFor) {
  UsedInTwoStreams();
  TheCuda().ordering = E_FAIL;
  std::shared_ptr<Memory> memory;
  EXPECT_FALSE(pool_->Take(100, At(20), &memory).ok());
  EXPECT_EQ(Asked(), (Calls{"10! < 20", "wait for 20!", "wait for 10!"}));
}

TEST_F(MemoryPoolTest, AStreamThatCannotBeMarked) {
  auto memory = Take(10);
  TheCuda().marking = E_FAIL;
  Call(memory, 10);
  TheCuda().marking = S_OK;
  Call(memory, 20);
  EXPECT_EQ(Asked(), (Calls{"mark 10", "wait for 0", "mark 20", "mark 20"}));
}

TEST_F(MemoryPoolTest, Captures) {
  const uintptr_t address = UsedInTwoStreams()->address();
  TheCuda().capturing = {10, 20};
  auto memory = Take(20);
  EXPECT_NE(memory->address(), address);  // a graph cannot be ordered behind the present work in stream 10
  Call(memory, 20);
  Call(memory, 10);
  EXPECT_EQ(Asked(), (Calls{"mark 20", "20! < 10", "mark 10", "mark 10"}));
  TheCuda().capturing = {};
  EXPECT_TRUE(memory->OrderBefore(At(30)).ok());  // the graph may run in any stream
  EXPECT_EQ(Asked(), Calls{"wait for 0"});
}

TEST_F(MemoryPoolTest, ABoundedNumberIsKept) {
  std::vector<std::shared_ptr<Memory>> all;
  for (int i = 0; i < 257; ++i) all.push_back(Take(10));
  MemoryPool::MoveEnd(At(10));
  all.clear();
  EXPECT_EQ(Asked(), (Calls{"mark 10", "wait for 10!"}));  // once, for the older half
}

TEST_F(MemoryPoolTest, StreamsThatNothingIsKnownOfAreForgotten) {
  for (uintptr_t handle = 1000; handle < 1200; ++handle) {
    TheCuda().ids[handle] = handle;
    MemoryPool::MoveEnd(At(handle));
  }
  EXPECT_GT(TheCuda().freed_marks, 100);
}

}  // namespace
}  // namespace anydml::python
