// The thread's last error: its contents, and that it is valid while objects with static and thread-local
// storage are destroyed.
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "d3d12/d3d12_test.h"

namespace anydml::testing {
namespace {

constexpr char kSentence[] = "CreateCommandQueue: pDesc is null";

void MakeCallsFail(ID3D12Device* device) {
  for (int i = 0; i < 16; ++i) {
    void* queue = nullptr;
    device->CreateCommandQueue(nullptr, __uuidof(ID3D12CommandQueue), &queue);
    // Reuses memory that was freed wrongly: twice, or while still in use.
    std::free(std::malloc(16));
    std::free(std::malloc(48));
  }
}

class LastErrorTest : public D3D12Test {};
using LastErrorDeathTest = LastErrorTest;

struct FailsAtExit {
  ID3D12Device* device;
  ~FailsAtExit() {
    MakeCallsFail(device);
    std::fprintf(stderr, "at exit: %s\n", AnyDmlGetLastErrorMessage());
  }
};

TEST_F(LastErrorDeathTest, DestructorsOfStaticObjectsMayFail) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        static FailsAtExit object{device()};
        MakeCallsFail(device());
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), std::string("at exit: ") + kSentence);
}

struct FailsAtThreadExit {
  ID3D12Device* device = nullptr;
  std::string* text = nullptr;
  ~FailsAtThreadExit() {
    if (text == nullptr) return;
    MakeCallsFail(device);
    *text = AnyDmlGetLastErrorMessage();
  }
};

TEST_F(LastErrorTest, DestructorsOfThreadLocalObjectsMayFail) {
  std::string text;
  std::thread([&] {
    thread_local FailsAtThreadExit object;  // created first, destroyed last
    object = {device(), &text};
    MakeCallsFail(device());
  }).join();
  EXPECT_EQ(text, kSentence);
}

TEST_F(LastErrorTest, StaysUntilTheNextFailure) {
  MakeCallsFail(device());
  const char* const text = AnyDmlGetLastErrorMessage();
  CreateQueue(device());
  std::thread([&] {
    EXPECT_STREQ(AnyDmlGetLastErrorMessage(), "");
    device()->CreateDescriptorHeap(nullptr, __uuidof(ID3D12DescriptorHeap), nullptr);
  }).join();
  EXPECT_STREQ(text, kSentence);
  AnyDmlClearLastError();
  EXPECT_STREQ(AnyDmlGetLastErrorMessage(), "");
}

// A name can make the message arbitrarily long: its beginning is kept, in whole characters.
TEST_F(LastErrorTest, LongSentencesAreCut) {
  for (const size_t length : {1000u, 5000u, 5001u}) {
    const auto buffer = Buffer(64);
    std::wstring name(length, L'\u00e4');
    name[0] = length % 2 == 0 ? L'a' : L'\u00e4';  // so that one length cuts inside a character
    buffer->SetName(name.c_str());
    void* data = nullptr;
    EXPECT_EQ(buffer->Map(0, nullptr, &data), E_INVALIDARG);
    const std::string text = AnyDmlGetLastErrorMessage();
    EXPECT_TRUE(text.starts_with("ID3D12Resource::Map: the buffer '"));
    if (length == 1000) {
      EXPECT_TRUE(text.ends_with("can be mapped)")) << text;
      continue;
    }
    EXPECT_LE(text.size(), 4095u);
    EXPECT_GE(text.size(), 4094u);
    EXPECT_TRUE(text.ends_with("\u00e4...")) << text;
  }
}

}  // namespace
}  // namespace anydml::testing
