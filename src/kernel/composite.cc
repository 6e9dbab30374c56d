#include "kernel/composite.h"

#include <algorithm>
#include <utility>

namespace anydml {

uint64_t CompositeKernel::temporary_bytes() const {
  uint64_t most = 0;
  for (const Part& part : parts_) most = std::max(most, part.kernel->temporary_bytes());
  return most == 0 ? scratch_.bytes() : SaturatingAdd(own_bytes(), most);
}

uint64_t CompositeKernel::initialization_temporary_bytes() const {
  uint64_t most = 0;
  for (const Part& part : parts_) most = std::max(most, part.kernel->initialization_temporary_bytes());
  return most == 0 ? 0 : SaturatingAdd(own_bytes(), most);
}

uint32_t CompositeKernel::AddPart(const std::string& implementation, std::unique_ptr<const Kernel> kernel) {
  const ScratchLayout::Piece persistent =
      persistent_.Add(implementation, kernel->persistent_bytes(), kAlignment);
  made_of_ += StrCat(made_of_.empty() ? "" : ", ", implementation);
  if (const std::string inner = kernel->made_of(); !inner.empty()) made_of_ += StrCat(" (", inner, ")");
  const uint32_t notes = kernel->note_count();
  parts_.push_back({std::move(kernel), persistent, note_count_});
  note_count_ += notes;
  return static_cast<uint32_t>(parts_.size() - 1);
}

KernelArguments CompositeKernel::ArgumentsOf(const Part& part, uint64_t temporary_bytes,
                                             const KernelArguments& arguments) const {
  KernelArguments own = arguments;
  own.temporary =
      temporary_bytes == 0 ? Buffer{} : Buffer{arguments.temporary.data + own_bytes(), temporary_bytes};
  own.persistent = part.persistent.bytes == 0 ? Buffer{} : part.persistent.In(arguments.persistent);
  if (!arguments.notes.empty()) {
    own.notes = arguments.notes.subspan(part.first_note, part.kernel->note_count());
  }
  return own;
}

Status CompositeKernel::RunPart(uint32_t part, const KernelArguments& arguments) const {
  return KernelOf(part).Run(ArgumentsToRun(part, arguments));
}

Status CompositeKernel::InitializePart(uint32_t part, const KernelArguments& arguments) const {
  const Kernel& kernel = *parts_[part].kernel;
  if (kernel.persistent_bytes() == 0) return {};
  return kernel.Initialize(ArgumentsOf(parts_[part], kernel.initialization_temporary_bytes(), arguments));
}

std::string CompositeKernel::Describe(uint32_t number, const DataErrorNote& note) const {
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
    if (number >= part->first_note) return part->kernel->Describe(number - part->first_note, note);
  }
  return {};
}

}  // namespace anydml
