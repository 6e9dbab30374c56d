// A kernel that runs several kernels one after the other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernel/scratch_layout.h"

namespace anydml {

// Derived classes add their parts and their own scratch when they are created; their Run calls RunPart. All
// parts share one piece of scratch, which follows the composite's own; each part has its own notes and
// persistent memory.
class CompositeKernel : public Kernel {
 public:
  uint64_t temporary_bytes() const override;
  uint64_t persistent_bytes() const override { return persistent_.bytes(); }
  uint64_t initialization_temporary_bytes() const override;
  uint32_t note_count() const override { return note_count_; }
  std::string Describe(uint32_t number, const DataErrorNote& note) const override;
  std::string made_of() const override { return made_of_; }

 protected:
  // Returns the part's number. `implementation`: its name, for made_of.
  uint32_t AddPart(const std::string& implementation, std::unique_ptr<const Kernel> kernel);
  ScratchLayout::Piece AddScratch(const char* name, uint64_t bytes, uint64_t alignment = kAlignment) {
    return scratch_.Add(name, bytes, alignment);
  }

  // `arguments`: the composite's own, but with the part's inputs and outputs.
  Status RunPart(uint32_t part, const KernelArguments& arguments) const;
  // The kernel that RunPart runs, and its arguments.
  const Kernel& KernelOf(uint32_t part) const { return *parts_[part].kernel; }
  KernelArguments ArgumentsToRun(uint32_t part, const KernelArguments& arguments) const {
    return ArgumentsOf(parts_[part], KernelOf(part).temporary_bytes(), arguments);
  }
  // As RunPart, for Initialize; with the part's inputs.
  Status InitializePart(uint32_t part, const KernelArguments& arguments) const;
  // `input`: the part's number of it.
  bool PartPacksInput(uint32_t part, uint32_t input) const { return parts_[part].kernel->packs_input(input); }

 private:
  static constexpr uint64_t kAlignment = 256;

  struct Part {
    std::unique_ptr<const Kernel> kernel;
    ScratchLayout::Piece persistent;
    uint32_t first_note;
  };

  KernelArguments ArgumentsOf(const Part& part, uint64_t temporary_bytes,
                              const KernelArguments& arguments) const;
  uint64_t own_bytes() const { return SaturatingAlignUp(scratch_.bytes(), kAlignment); }

  std::vector<Part> parts_;
  ScratchLayout scratch_;
  ScratchLayout persistent_;
  uint32_t note_count_ = 0;
  std::string made_of_;
};

}  // namespace anydml
