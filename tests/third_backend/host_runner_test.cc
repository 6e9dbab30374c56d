// Host kernels on the memory of a device that only a runner can access.
#include "backend/host_runner.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace anydml {
namespace {

// The device's memory is `bytes`, at addresses that must never be dereferenced.
class FakeDevice final : public HostRunner {
 public:
  std::byte* address(size_t offset) const { return reinterpret_cast<std::byte*>(kBase + offset); }
  Buffer At(size_t offset, size_t size) const { return {address(offset), size}; }

  std::string bytes = "abcdefghijklmnopqrstuvwxyz";
  size_t written = 0;

 private:
  static constexpr uintptr_t kBase = 0x1000;
  static size_t OffsetOf(const std::byte* address) { return reinterpret_cast<uintptr_t>(address) - kBase; }

  Status Read(std::byte* host, const std::byte* device, uint64_t size) override {
    std::memcpy(host, bytes.data() + OffsetOf(device), size);
    return {};
  }
  Status Write(std::byte* device, const std::byte* host, uint64_t size) override {
    std::memcpy(bytes.data() + OffsetOf(device), host, size);
    written += size;
    return {};
  }
};

class Body final : public Kernel {
 public:
  using Function = std::function<void(const KernelArguments&)>;
  explicit Body(Function run, uint64_t temporary = 0) : run_(std::move(run)), temporary_(temporary) {}
  Status Run(const KernelArguments& arguments) const override {
    run_(arguments);
    return {};
  }
  Status Initialize(const KernelArguments& arguments) const override { return Run(arguments); }
  uint64_t temporary_bytes() const override { return temporary_; }

 private:
  const Function run_;
  const uint64_t temporary_;
};

char& CharAt(const Buffer& buffer, size_t i) { return *reinterpret_cast<char*>(buffer.data + i); }

TEST(HostRunner, GapsOfAnOutputStay) {
  FakeDevice device;
  const Buffer inputs[] = {device.At(0, 3)}, outputs[] = {device.At(10, 5)};
  const Body every_second([](const KernelArguments& a) {
    for (size_t i = 0; i < 3; ++i) CharAt(a.outputs[0], 2 * i) = CharAt(a.inputs[0], i);
  });
  ASSERT_TRUE(device.RunOnHost(every_second, {.inputs = inputs, .outputs = outputs}, false).ok());
  EXPECT_EQ(device.bytes, "abcdefghijalbncpqrstuvwxyz");
}

TEST(HostRunner, OperandsThatShareBytesShareThem) {
  FakeDevice device;
  // Input 1 begins within input 0; the output is input 0.
  const Buffer inputs[] = {device.At(4, 6), device.At(8, 6)}, outputs[] = {device.At(4, 6)};
  const Body kernel([](const KernelArguments& a) {
    EXPECT_EQ(a.inputs[0].data, a.outputs[0].data);
    EXPECT_EQ(a.inputs[1].data, a.inputs[0].data + 4);
    EXPECT_EQ(CharAt(a.inputs[1], 5), 'n');
    CharAt(a.outputs[0], 0) = 'E';
  });
  ASSERT_TRUE(device.RunOnHost(kernel, {.inputs = inputs, .outputs = outputs}, false).ok());
  EXPECT_EQ(device.bytes, "abcdEfghijklmnopqrstuvwxyz");
}

TEST(HostRunner, AbsentTensorsAndScratch) {
  FakeDevice device;
  const Buffer inputs[] = {{}, device.At(0, 1)}, outputs[] = {device.At(1, 1), {}};
  const Body kernel(
      [](const KernelArguments& a) {
        EXPECT_EQ(a.inputs[0].data, nullptr);
        EXPECT_EQ(a.outputs[1].data, nullptr);
        ASSERT_EQ(a.temporary.size, 100u);
        std::memset(a.temporary.data, 1, 100);
        CharAt(a.outputs[0], 0) = CharAt(a.inputs[1], 0);
      },
      100);
  ASSERT_TRUE(device.RunOnHost(kernel, {.inputs = inputs, .outputs = outputs}, false).ok());
  EXPECT_EQ(device.bytes, "aacdefghijklmnopqrstuvwxyz");
}

TEST(HostRunner, InitializationWritesPersistentMemoryAlone) {
  FakeDevice device;
  const Buffer inputs[] = {device.At(0, 2)};
  const Body pack([](const KernelArguments& a) {
    std::memcpy(a.persistent.data, a.inputs[0].data, 2);
    CharAt(a.inputs[0], 0) = '!';  // of the copy
  });
  ASSERT_TRUE(device.RunOnHost(pack, {.inputs = inputs, .persistent = device.At(20, 4)}, true).ok());
  EXPECT_EQ(device.bytes, "abcdefghijklmnopqrstabwxyz");
  EXPECT_EQ(device.written, 4u);
}

}  // namespace
}  // namespace anydml
