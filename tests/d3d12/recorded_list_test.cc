// Which executions of a list are recorded and replayed, on a stream that supports it.
#include "d3d12/lists/recorded_list.h"

#include <gtest/gtest.h>

#include <string>

namespace anydml::d3d12 {
namespace {

// Records its calls.
class NotingStream final : public Stream {
 public:
  explicit NotingStream(bool records) : records_(records) {}
  Status Copy(std::byte*, const std::byte*, uint64_t) override { return {}; }
  Status Fill32(std::byte*, uint32_t value, uint64_t) override {
    notes_ += std::to_string(value);
    return {};
  }
  Status Run(const Kernel&, const KernelArguments&) override { return {}; }
  Status Initialize(const Kernel&, const KernelArguments&) override { return {}; }
  Status WriteTimestamp(uint64_t*) override { return {}; }
  Status Flush(std::function<void(const Status&)>) override { return {}; }
  void* native() const override { return nullptr; }
  void Close() override {}

  Status Record(const std::function<Status(Stream&)>& body, std::unique_ptr<Recording>* recording) override {
    recording->reset();
    if (!records_) return {};
    auto result = std::make_unique<Notes>();
    std::swap(notes_, result->text);
    const Status status = body(*this);
    std::swap(notes_, result->text);
    *recording = std::move(result);
    return status;
  }
  Status Replay(const Recording& recording) override {
    notes_ += "replay(" + static_cast<const Notes&>(recording).text + ")";
    return {};
  }

  std::string TakeNotes() { return std::exchange(notes_, {}); }

 private:
  struct Notes final : Recording {
    std::string text;
  };
  const bool records_;
  std::string notes_;
};

class FillCommand final : public Command {
 public:
  explicit FillCommand(uint32_t value) : value_(value) {}
  Status Execute(Stream& stream) const override { return stream.Fill32(nullptr, value_, 4); }
  bool IsSame(const Command& other) const override {
    return dynamic_cast<const FillCommand&>(other).value_ == value_;
  }

 private:
  const uint32_t value_;
};

class RecordedListTest : public ::testing::Test {
 protected:
  RecordedListTest() {
    for (const uint32_t value : {1, 2}) list_.commands.push_back(std::make_shared<FillCommand>(value));
    list_.Finish();
  }
  // With the second command replaced.
  std::string Execute(NotingStream& stream, uint32_t value) {
    std::vector<Replacement> replacements = {{1, std::make_shared<FillCommand>(value)}};
    return Execute(stream, std::make_shared<const std::vector<Replacement>>(std::move(replacements)));
  }
  std::string Execute(NotingStream& stream, const Replacements& replacements) {
    EXPECT_TRUE(list_.Execute(stream, replacements).ok());
    return stream.TakeNotes();
  }

  RecordedList list_;
};

TEST_F(RecordedListTest, WhatComesAgainIsReplayed) {
  NotingStream stream(true);
  EXPECT_EQ(Execute(stream, nullptr), "12");
  EXPECT_EQ(Execute(stream, nullptr), "replay(12)");
  EXPECT_EQ(Execute(stream, nullptr), "replay(12)");
}

TEST_F(RecordedListTest, OtherBindingsAreOtherRecordings) {
  NotingStream stream(true);
  EXPECT_EQ(Execute(stream, 3), "13");
  EXPECT_EQ(Execute(stream, 4), "14");
  EXPECT_EQ(Execute(stream, 3), "replay(13)");
  EXPECT_EQ(Execute(stream, 4), "replay(14)");
  EXPECT_EQ(Execute(stream, 5), "15");
  EXPECT_EQ(Execute(stream, 3), "replay(13)");
}

TEST_F(RecordedListTest, BindingsThatDidNotComeForLongAreForgotten) {
  NotingStream stream(true);
  Execute(stream, 3);
  EXPECT_EQ(Execute(stream, 3), "replay(13)");
  for (const uint32_t value : {4, 5, 6, 7}) EXPECT_EQ(Execute(stream, value), "1" + std::to_string(value));
  EXPECT_EQ(Execute(stream, 3), "13");
}

TEST_F(RecordedListTest, NothingIsReplayedWhereNothingIsRecorded) {
  NotingStream stream(false);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Execute(stream, 3), "13");
}

}  // namespace
}  // namespace anydml::d3d12
