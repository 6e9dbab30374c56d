// Scratch layout and composite kernels.
#include <algorithm>

#include <gtest/gtest.h>

#include "kernel/composite.h"

namespace anydml {
namespace {

TEST(ScratchLayout, PiecesFollowEachOther) {
  ScratchLayout layout;
  const auto counts = layout.Add("counts", 5);
  const auto keys = layout.Add("keys", 32, 256);
  const auto rest = layout.Add("rest", 0);
  EXPECT_EQ(counts.offset, 0u);
  EXPECT_EQ(keys.offset, 256u);
  EXPECT_EQ(rest.offset, 288u);
  EXPECT_EQ(layout.bytes(), 288u);
  EXPECT_EQ(layout.ToString(), "counts: 0 to 5; keys: 256 to 288; rest: 288 to 288");
  alignas(256) std::byte memory[288];
  EXPECT_EQ(keys.In<uint32_t>({memory, sizeof(memory)}), reinterpret_cast<uint32_t*>(memory + 256));
  EXPECT_EQ(keys.In(Buffer{memory, sizeof(memory)}).size, 32u);
}

TEST(ScratchLayout, DoesNotWrap) {
  ScratchLayout layout;
  layout.Add("one", ~uint64_t{0} - 8);
  layout.Add("two", 64);
  EXPECT_EQ(layout.bytes(), ~uint64_t{0});
}

// Fills its temporary memory with its number, checks the result of its initialization, and records the
// number.
class TestPart final : public Kernel {
 public:
  TestPart(uint8_t number, uint64_t temporary_bytes, uint64_t persistent_bytes, uint32_t notes)
      : number_(number),
        temporary_bytes_(temporary_bytes),
        persistent_bytes_(persistent_bytes),
        notes_(notes) {}

  uint64_t temporary_bytes() const override { return temporary_bytes_; }
  uint64_t persistent_bytes() const override { return persistent_bytes_; }
  uint64_t initialization_temporary_bytes() const override { return persistent_bytes_; }
  uint32_t note_count() const override { return notes_; }
  std::string Describe(uint32_t number, const DataErrorNote& note) const override {
    return StrCat("part ", int{number_}, ", note ", number, ": ", note.position);
  }
  std::string made_of() const override { return number_ == 3 ? "cpu.inner" : ""; }

  Status Initialize(const KernelArguments& arguments) const override {
    EXPECT_EQ(arguments.temporary.size, persistent_bytes_);
    EXPECT_EQ(arguments.persistent.size, persistent_bytes_);
    std::fill_n(arguments.persistent.data, persistent_bytes_, std::byte{number_});
    return {};
  }
  Status Run(const KernelArguments& arguments) const override {
    EXPECT_EQ(arguments.temporary.size, temporary_bytes_);
    if (!arguments.notes.empty()) EXPECT_EQ(arguments.notes.size(), notes_);
    std::fill_n(arguments.temporary.data, temporary_bytes_, std::byte{number_});
    for (uint64_t i = 0; i < persistent_bytes_; ++i) {
      EXPECT_EQ(arguments.persistent.data[i], std::byte{number_});
    }
    for (DataErrorNote* note : arguments.notes) note->position = number_;
    return number_ == 9 ? Status(Code::kFail, "part 9 always fails") : Status();
  }

 private:
  const uint8_t number_;
  const uint64_t temporary_bytes_;
  const uint64_t persistent_bytes_;
  const uint32_t notes_;
};

class Composite final : public CompositeKernel {
 public:
  explicit Composite(bool fails) : own_(AddScratch("own", 10)) {
    AddPart("cpu.one", std::make_unique<TestPart>(1, 100, 3, 1));
    AddPart("cpu.two", std::make_unique<TestPart>(2, 0, 0, 0));
    AddPart("cpu.three", std::make_unique<TestPart>(3, 300, 40, 2));
    if (fails) AddPart("cpu.nine", std::make_unique<TestPart>(9, 0, 0, 0));
    parts_ = fails ? 4 : 3;
  }

  Status Initialize(const KernelArguments& arguments) const override {
    for (uint32_t part = 0; part < parts_; ++part) {
      ANYDML_RETURN_IF_ERROR(InitializePart(part, arguments));
    }
    return {};
  }
  Status Run(const KernelArguments& arguments) const override {
    std::fill_n(own_.In(arguments.temporary).data, own_.bytes, std::byte{77});
    for (uint32_t part = 0; part < parts_; ++part) {
      ANYDML_RETURN_IF_ERROR(RunPart(part, arguments));
    }
    for (uint64_t i = 0; i < own_.bytes; ++i) {
      EXPECT_EQ(own_.In(arguments.temporary).data[i], std::byte{77});
    }
    return {};
  }

 private:
  const ScratchLayout::Piece own_;
  uint32_t parts_;
};

TEST(Composite, PartsShareScratchAndHaveTheirOwnMemoryAndNotes) {
  const Composite composite(/*fails=*/false);
  EXPECT_EQ(composite.temporary_bytes(), 256u + 300u);
  EXPECT_EQ(composite.initialization_temporary_bytes(), 256u + 40u);
  EXPECT_EQ(composite.persistent_bytes(), 256u + 40u);
  EXPECT_EQ(composite.made_of(), "cpu.one, cpu.two, cpu.three (cpu.inner)");
  ASSERT_EQ(composite.note_count(), 3u);

  std::vector<std::byte> temporary(composite.temporary_bytes()), persistent(composite.persistent_bytes());
  DataErrorNote found[3];
  DataErrorNote* const notes[] = {&found[0], &found[1], &found[2]};
  KernelArguments arguments;
  arguments.temporary = {temporary.data(), temporary.size()};
  arguments.persistent = {persistent.data(), persistent.size()};
  ASSERT_TRUE(composite.Initialize(arguments).ok());
  arguments.notes = notes;
  ASSERT_TRUE(composite.Run(arguments).ok());
  EXPECT_EQ(composite.Describe(0, found[0]), "part 1, note 0: 1");
  EXPECT_EQ(composite.Describe(1, found[1]), "part 3, note 0: 3");
  EXPECT_EQ(composite.Describe(2, found[2]), "part 3, note 1: 3");
}

TEST(Composite, FailsWithItsPart) {
  const Composite composite(/*fails=*/true);
  std::vector<std::byte> temporary(composite.temporary_bytes()), persistent(composite.persistent_bytes());
  KernelArguments arguments;
  arguments.temporary = {temporary.data(), temporary.size()};
  arguments.persistent = {persistent.data(), persistent.size()};
  ASSERT_TRUE(composite.Initialize(arguments).ok());
  EXPECT_EQ(composite.Run(arguments).message(), "part 9 always fails");
}

}  // namespace
}  // namespace anydml
