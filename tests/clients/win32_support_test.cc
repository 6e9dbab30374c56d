// The rest of the Win32 support: errors, strings, clocks, libraries, wil, WRL.
#include <windows.h>

#include <wil/resource.h>
#include <wil/result.h>
#include <wrl/client.h>

#include <string.h>

#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace {

TEST(LastError, IsPerThread) {
  SetLastError(5);
  std::thread([] { EXPECT_EQ(GetLastError(), ERROR_SUCCESS); }).join();
  EXPECT_EQ(GetLastError(), 5u);
}

TEST(Hresults, FromWin32) {
  EXPECT_EQ(HRESULT_FROM_WIN32(ERROR_SUCCESS), S_OK);
  EXPECT_EQ(HRESULT_FROM_WIN32(ERROR_OUTOFMEMORY), E_OUTOFMEMORY);
  EXPECT_EQ(HRESULT_FROM_WIN32(ERROR_INVALID_PARAMETER), E_INVALIDARG);
  EXPECT_EQ(HRESULT_FROM_WIN32(E_FAIL), E_FAIL);
  EXPECT_EQ(MAKE_HRESULT(SEVERITY_ERROR, 0x87a, 4), DXGI_ERROR_UNSUPPORTED);
}

TEST(Strings, RoundTrip) {
  const char* utf8 = "k\xc3\xbchl \xe2\x82\xac \xf0\x9f\x98\x80";
  const int wide_size = MultiByteToWideChar(CP_UTF8, 0, utf8, -1, nullptr, 0);
  ASSERT_EQ(wide_size, 9);
  std::wstring wide(wide_size, L'\0');
  EXPECT_EQ(MultiByteToWideChar(CP_UTF8, 0, utf8, -1, &wide[0], wide_size), 9);
  EXPECT_EQ(wide[1], 0xfc);
  EXPECT_EQ(wide[5], 0x20ac);
  EXPECT_EQ(wide[7], 0x1f600);
  char back[32];
  const int size = WideCharToMultiByte(CP_UTF8, 0, wide.c_str(), -1, back, sizeof(back), nullptr, nullptr);
  EXPECT_EQ(size, static_cast<int>(strlen(utf8)) + 1);
  EXPECT_STREQ(back, utf8);
}

TEST(Strings, BadUtf8BecomesReplacementCharacters) {
  // A lone continuation byte, an overlong '/', a truncated sequence.
  const char bad[] =
      "\x80"
      "\xc0\xaf"
      "\xe2\x82";
  const std::wstring wide = anydml_support::FromUtf8(bad, sizeof(bad) - 1);
  EXPECT_EQ(wide, L"\xfffd\xfffd\xfffd");
}

TEST(Strings, SmallBuffer) {
  wchar_t out[2];
  EXPECT_EQ(MultiByteToWideChar(CP_UTF8, 0, "abc", -1, out, 2), 0);
  EXPECT_EQ(GetLastError(), ERROR_INSUFFICIENT_BUFFER);
}

TEST(Clocks, CounterMatchesFrequency) {
  LARGE_INTEGER frequency, before, after;
  ASSERT_TRUE(QueryPerformanceFrequency(&frequency));
  ASSERT_TRUE(QueryPerformanceCounter(&before));
  Sleep(20);
  ASSERT_TRUE(QueryPerformanceCounter(&after));
  EXPECT_GE((after.QuadPart - before.QuadPart) * 1000 / frequency.QuadPart, 20);
}

TEST(Libraries, DllNamesBecomeSharedObjects) {
  using anydml_support::SharedObjectName;
  EXPECT_EQ(SharedObjectName("DirectML.dll"), "libdirectml.so");
  EXPECT_EQ(SharedObjectName("C:\\Windows\\D3D12.DLL"), "libd3d12.so");
  EXPECT_EQ(SharedObjectName("dxcore"), "libdxcore.so");
  EXPECT_EQ(LoadLibraryA("no such library"), nullptr);
  EXPECT_EQ(GetLastError(), ERROR_MOD_NOT_FOUND);
}

TEST(Libraries, FindsSymbols) {
  HMODULE module = LoadLibrary("libc.so.6");
  ASSERT_NE(module, nullptr);
  EXPECT_NE(GetProcAddress(module, "getpid"), nullptr);
  EXPECT_EQ(GetProcAddress(module, "no such symbol"), nullptr);
  EXPECT_EQ(GetLastError(), ERROR_PROC_NOT_FOUND);
  EXPECT_TRUE(FreeLibrary(module));
}

TEST(Memory, VirtualAllocIsZeroedAndAligned) {
  void* memory = VirtualAlloc(nullptr, 10000, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 4096, 0u);
  EXPECT_EQ(static_cast<char*>(memory)[9999], 0);
  EXPECT_TRUE(VirtualFree(memory, 0, MEM_RELEASE));
}

HRESULT ReturnsEarly(HRESULT hr) {
  RETURN_IF_FAILED(hr);
  return S_FALSE;
}

HRESULT CatchesEverything(int kind) try {
  if (kind == 0) THROW_HR(DXGI_ERROR_UNSUPPORTED);
  if (kind == 1) throw std::bad_alloc();
  if (kind == 2) throw 1;
  return S_OK;
}
CATCH_RETURN()

TEST(Wil, Results) {
  EXPECT_EQ(THROW_IF_FAILED(S_FALSE), S_FALSE);
  try {
    THROW_IF_FAILED(E_INVALIDARG);
    FAIL();
  } catch (const wil::ResultException& e) {
    EXPECT_EQ(e.GetErrorCode(), E_INVALIDARG);
    EXPECT_NE(strstr(e.what(), "0x80070057"), nullptr) << e.what();
  }
  EXPECT_EQ(ReturnsEarly(E_FAIL), E_FAIL);
  EXPECT_EQ(ReturnsEarly(S_OK), S_FALSE);
  EXPECT_EQ(CatchesEverything(0), DXGI_ERROR_UNSUPPORTED);
  EXPECT_EQ(CatchesEverything(1), E_OUTOFMEMORY);
  EXPECT_EQ(CatchesEverything(2), E_FAIL);
  EXPECT_EQ(CatchesEverything(3), S_OK);
}

HRESULT ReturnsWithoutPointer(const int* pointer) {
  RETURN_HR_IF_NULL_MSG(E_POINTER, pointer, "no pointer of %d", 1);
  return S_OK;
}

TEST(Wil, NullPointersWithMessages) {
  const int number = 3;
  const int* const missing = nullptr;
  EXPECT_EQ(THROW_HR_IF_NULL_MSG(E_POINTER, &number, "no number"), &number);
  EXPECT_THROW(THROW_HR_IF_NULL_MSG(E_POINTER, missing, "no number %d", 1), wil::ResultException);
  EXPECT_EQ(ReturnsWithoutPointer(&number), S_OK);
  EXPECT_EQ(ReturnsWithoutPointer(missing), E_POINTER);
}

TEST(Wil, UniqueHandle) {
  wil::unique_handle event(CreateEvent(nullptr, FALSE, TRUE, nullptr));
  EXPECT_TRUE(event);
  THROW_LAST_ERROR_IF_NULL(event);
  wil::unique_handle moved = std::move(event);
  EXPECT_FALSE(event);
  EXPECT_EQ(WaitForSingleObject(moved.get(), 0), WAIT_OBJECT_0);
  HANDLE raw = moved.get();
  moved.reset();
  EXPECT_FALSE(SetEvent(raw));
  SetLastError(ERROR_INVALID_HANDLE);
  EXPECT_THROW(THROW_LAST_ERROR_IF_NULL(moved), wil::ResultException);
}

TEST(Wil, ScopeExit) {
  int calls = 0;
  {
    auto guard = wil::scope_exit([&] { ++calls; });
    auto dropped = wil::scope_exit([&] { calls += 10; });
    dropped.release();
  }
  EXPECT_EQ(calls, 1);
}

// An object whose references are not counted.
struct Uncounted : IUnknown {
  HRESULT QueryInterface(REFIID, void**) override { return E_NOINTERFACE; }
  ULONG AddRef() override { return 1; }
  ULONG Release() override { return 1; }
};

TEST(Wrl, ComPtrsCompareAsPointers) {
  Uncounted a, b;
  Microsoft::WRL::ComPtr<IUnknown> one(&a), same(&a), other(&b), null;
  Microsoft::WRL::ComPtr<Uncounted> derived(&a);
  EXPECT_TRUE(one == same && !(one != same));
  EXPECT_TRUE(one != other && !(one == other));
  EXPECT_TRUE(one == derived && derived != other);
  EXPECT_TRUE(one != null && null == nullptr && one != nullptr);
  EXPECT_NE(one < other, other < one);
}

}  // namespace
