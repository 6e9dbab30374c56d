#include <atomic>
#include <thread>

#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

class InfoQueueTest : public D3D12Test {
 protected:
  void SetUp() override {
    D3D12Test::SetUp();
    ASSERT_EQ(device()->QueryInterface(IID_PPV_ARGS(&queue_)), S_OK);
  }
  void TearDown() override {
    queue_.Reset();
    D3D12Test::TearDown();
  }
  void Say(const char* text, D3D12_MESSAGE_SEVERITY severity = D3D12_MESSAGE_SEVERITY_INFO) {
    EXPECT_EQ(queue_->AddApplicationMessage(severity, text), S_OK);
  }
  Ptr<ID3D12InfoQueue1> queue_;
};

TEST_F(InfoQueueTest, TwoCallProtocol) {
  Say("hello");
  ASSERT_EQ(queue_->GetNumStoredMessages(), 1u);
  SIZE_T size = 0;
  EXPECT_EQ(queue_->GetMessage(0, nullptr, &size), S_FALSE);
  ASSERT_EQ(size, sizeof(D3D12_MESSAGE) + 6);
  std::vector<char> bytes(size);
  auto* message = reinterpret_cast<D3D12_MESSAGE*>(bytes.data());
  SIZE_T small = size - 1;
  EXPECT_EQ(queue_->GetMessage(0, message, &small), E_INVALIDARG);
  EXPECT_EQ(small, size);
  ASSERT_EQ(queue_->GetMessage(0, message, &size), S_OK);
  EXPECT_STREQ(message->pDescription, "hello");
  EXPECT_EQ(message->DescriptionByteLength, 6u);
  EXPECT_EQ(message->Category, D3D12_MESSAGE_CATEGORY_APPLICATION_DEFINED);
  EXPECT_EQ(message->Severity, D3D12_MESSAGE_SEVERITY_INFO);
  EXPECT_EQ(message->ID, D3D12_MESSAGE_ID_STRING_FROM_APPLICATION);
  EXPECT_EQ(queue_->GetMessage(1, nullptr, &size), E_INVALIDARG);
  EXPECT_EQ(queue_->GetMessage(0, nullptr, nullptr), E_INVALIDARG);
  queue_->ClearStoredMessages();
  EXPECT_EQ(queue_->GetNumStoredMessages(), 0u);
}

TEST_F(InfoQueueTest, LimitPushesOldMessagesOut) {
  EXPECT_EQ(queue_->GetMessageCountLimit(), 1024u);
  EXPECT_EQ(queue_->SetMessageCountLimit(2), S_OK);
  Say("a");
  Say("b");
  Say("c");
  EXPECT_EQ(Messages(device()), (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(queue_->GetNumMessagesDiscardedByMessageCountLimit(), 1u);
  queue_->SetMessageCountLimit(0);
  EXPECT_EQ(queue_->GetNumStoredMessages(), 0u);
  queue_->SetMessageCountLimit(UINT64_MAX);
  Say("d");
  EXPECT_EQ(queue_->GetNumStoredMessages(), 1u);
}

TEST_F(InfoQueueTest, StorageFilter) {
  D3D12_MESSAGE_SEVERITY info = D3D12_MESSAGE_SEVERITY_INFO;
  D3D12_INFO_QUEUE_FILTER filter{};
  filter.DenyList.NumSeverities = 1;
  filter.DenyList.pSeverityList = &info;
  EXPECT_EQ(queue_->PushStorageFilter(&filter), S_OK);
  EXPECT_EQ(queue_->GetStorageFilterStackSize(), 1u);
  Say("quiet");
  Say("loud", D3D12_MESSAGE_SEVERITY_ERROR);
  EXPECT_EQ(Messages(device()), (std::vector<std::string>{"loud"}));
  EXPECT_EQ(queue_->GetNumMessagesDeniedByStorageFilter(), 1u);
  EXPECT_EQ(queue_->GetNumMessagesAllowedByStorageFilter(), 1u);
  SIZE_T size = 0;
  ASSERT_EQ(queue_->GetStorageFilter(nullptr, &size), S_OK);
  std::vector<char> bytes(size);
  auto* read = reinterpret_cast<D3D12_INFO_QUEUE_FILTER*>(bytes.data());
  ASSERT_EQ(queue_->GetStorageFilter(read, &size), S_OK);
  ASSERT_EQ(read->DenyList.NumSeverities, 1u);
  EXPECT_EQ(read->DenyList.pSeverityList[0], info);
  EXPECT_EQ(read->AllowList.NumIDs, 0u);
  queue_->PushCopyOfStorageFilter();
  queue_->ClearStorageFilter();
  Say("quiet");
  EXPECT_EQ(queue_->GetNumStoredMessages(), 2u);
  queue_->PopStorageFilter();
  Say("quiet");
  EXPECT_EQ(queue_->GetNumStoredMessages(), 2u);
  queue_->PopStorageFilter();
  queue_->PopStorageFilter();  // one too many is harmless
  EXPECT_EQ(queue_->GetStorageFilterStackSize(), 0u);
  EXPECT_EQ(queue_->AddStorageFilterEntries(&filter), S_OK);
  Say("quiet");
  EXPECT_EQ(queue_->GetNumStoredMessages(), 2u);
}

TEST_F(InfoQueueTest, RetrievalFilter) {
  Say("one");
  Say("two", D3D12_MESSAGE_SEVERITY_WARNING);
  D3D12_MESSAGE_SEVERITY warning = D3D12_MESSAGE_SEVERITY_WARNING;
  D3D12_INFO_QUEUE_FILTER filter{};
  filter.AllowList.NumSeverities = 1;
  filter.AllowList.pSeverityList = &warning;
  EXPECT_EQ(queue_->PushRetrievalFilter(&filter), S_OK);
  EXPECT_EQ(queue_->GetNumStoredMessages(), 2u);
  EXPECT_EQ(queue_->GetNumStoredMessagesAllowedByRetrievalFilter(), 1u);
  EXPECT_EQ(Messages(device()), (std::vector<std::string>{"two"}));
  queue_->PushEmptyRetrievalFilter();
  EXPECT_EQ(queue_->GetNumStoredMessagesAllowedByRetrievalFilter(), 2u);
  EXPECT_EQ(queue_->GetRetrievalFilterStackSize(), 2u);
}

TEST_F(InfoQueueTest, NullFilters) {
  EXPECT_EQ(queue_->PushStorageFilter(nullptr), E_INVALIDARG);
  EXPECT_EQ(queue_->AddStorageFilterEntries(nullptr), E_INVALIDARG);
  EXPECT_EQ(queue_->GetStorageFilter(nullptr, nullptr), E_INVALIDARG);
  EXPECT_EQ(queue_->PushRetrievalFilter(nullptr), E_INVALIDARG);
  EXPECT_EQ(queue_->AddRetrievalFilterEntries(nullptr), E_INVALIDARG);
  EXPECT_EQ(queue_->GetRetrievalFilter(nullptr, nullptr), E_INVALIDARG);
  EXPECT_EQ(queue_->AddApplicationMessage(D3D12_MESSAGE_SEVERITY_INFO, nullptr), E_INVALIDARG);
  EXPECT_EQ(queue_->AddMessage(D3D12_MESSAGE_CATEGORY_EXECUTION, D3D12_MESSAGE_SEVERITY_INFO,
                               D3D12_MESSAGE_ID_UNKNOWN, nullptr),
            E_INVALIDARG);
}

TEST_F(InfoQueueTest, Switches) {
  EXPECT_EQ(queue_->GetMuteDebugOutput(), FALSE);
  queue_->SetMuteDebugOutput(TRUE);
  EXPECT_EQ(queue_->GetMuteDebugOutput(), TRUE);
  EXPECT_EQ(queue_->SetBreakOnSeverity(D3D12_MESSAGE_SEVERITY_ERROR, TRUE), S_OK);
  EXPECT_EQ(queue_->GetBreakOnSeverity(D3D12_MESSAGE_SEVERITY_ERROR), TRUE);
  EXPECT_EQ(queue_->SetBreakOnSeverity(D3D12_MESSAGE_SEVERITY_ERROR, FALSE), S_OK);
  EXPECT_EQ(queue_->GetBreakOnSeverity(D3D12_MESSAGE_SEVERITY_ERROR), FALSE);
  EXPECT_EQ(queue_->SetBreakOnID(D3D12_MESSAGE_ID_UNKNOWN, TRUE), S_OK);
  EXPECT_EQ(queue_->GetBreakOnID(D3D12_MESSAGE_ID_UNKNOWN), TRUE);
  EXPECT_EQ(queue_->SetBreakOnCategory(D3D12_MESSAGE_CATEGORY_EXECUTION, TRUE), S_OK);
  EXPECT_EQ(queue_->GetBreakOnCategory(D3D12_MESSAGE_CATEGORY_EXECUTION), TRUE);
  Say("broken", D3D12_MESSAGE_SEVERITY_ERROR);  // breaks nothing
}

struct Heard {
  std::atomic<int> count{0};
  std::string last;
};

void Listen(D3D12_MESSAGE_CATEGORY, D3D12_MESSAGE_SEVERITY, D3D12_MESSAGE_ID, LPCSTR text, void* context) {
  auto* heard = static_cast<Heard*>(context);
  ++heard->count;
  heard->last = text;
}

TEST_F(InfoQueueTest, Callbacks) {
  Heard heard, all;
  DWORD cookie = 0, all_cookie = 0;
  ASSERT_EQ(queue_->RegisterMessageCallback(Listen, D3D12_MESSAGE_CALLBACK_FLAG_NONE, &heard, &cookie), S_OK);
  ASSERT_EQ(queue_->RegisterMessageCallback(Listen, D3D12_MESSAGE_CALLBACK_IGNORE_FILTERS, &all, &all_cookie),
            S_OK);
  EXPECT_NE(cookie, all_cookie);
  Say("a");
  EXPECT_EQ(heard.last, "a");
  D3D12_MESSAGE_SEVERITY info = D3D12_MESSAGE_SEVERITY_INFO;
  D3D12_INFO_QUEUE_FILTER filter{};
  filter.DenyList.NumSeverities = 1;
  filter.DenyList.pSeverityList = &info;
  queue_->PushStorageFilter(&filter);
  Say("b");
  EXPECT_EQ(heard.count, 1);
  EXPECT_EQ(all.count, 2);
  EXPECT_EQ(queue_->UnregisterMessageCallback(cookie), S_OK);
  EXPECT_EQ(queue_->UnregisterMessageCallback(cookie), E_INVALIDARG);
  EXPECT_EQ(queue_->UnregisterMessageCallback(all_cookie), S_OK);
  EXPECT_EQ(queue_->RegisterMessageCallback(nullptr, D3D12_MESSAGE_CALLBACK_FLAG_NONE, nullptr, &cookie),
            E_INVALIDARG);
  EXPECT_EQ(queue_->RegisterMessageCallback(Listen, D3D12_MESSAGE_CALLBACK_FLAG_NONE, nullptr, nullptr),
            E_INVALIDARG);
}

TEST_F(InfoQueueTest, CallbackMayUnregisterItself) {
  struct Context {
    ID3D12InfoQueue1* queue;
    DWORD cookie;
    int count;
  } context = {queue_.get(), 0, 0};
  const auto once = [](D3D12_MESSAGE_CATEGORY, D3D12_MESSAGE_SEVERITY, D3D12_MESSAGE_ID, LPCSTR, void* data) {
    auto* c = static_cast<Context*>(data);
    ++c->count;
    c->queue->UnregisterMessageCallback(c->cookie);
  };
  ASSERT_EQ(
      queue_->RegisterMessageCallback(once, D3D12_MESSAGE_CALLBACK_FLAG_NONE, &context, &context.cookie),
      S_OK);
  Say("a");
  Say("b");
  EXPECT_EQ(context.count, 1);
}

TEST_F(InfoQueueTest, ManyThreads) {
  queue_->SetMessageCountLimit(100);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        Say("x");
        SIZE_T size = 0;
        queue_->GetMessage(0, nullptr, &size);
        if (i % 100 == 0) queue_->ClearStoredMessages();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LE(queue_->GetNumStoredMessages(), 100u);
}

}  // namespace
}  // namespace anydml::testing
