#include "backend/cuda/note_pool.h"

#include <utility>

namespace anydml::cuda {
namespace {

constexpr uint64_t kNotesAtATime = 64;

}  // namespace

Status NotePool::Take(DataErrorNote** note) {
  std::lock_guard lock(mutex_);
  if (free_.empty()) {
    free_.reserve((memory_.size() + 1) * kNotesAtATime);
    std::shared_ptr<Memory> memory;
    ANYDML_RETURN_IF_ERROR(host_memory_.Allocate(kNotesAtATime * sizeof(DataErrorNote), &memory));
    auto* const notes = reinterpret_cast<DataErrorNote*>(memory->host());
    memory_.push_back(std::move(memory));
    for (uint64_t i = 0; i < kNotesAtATime; ++i) free_.push_back(notes + i);
  }
  *note = free_.back();
  free_.pop_back();
  **note = DataErrorNote{};
  return {};
}

void NotePool::Give(DataErrorNote* note) noexcept {
  std::lock_guard lock(mutex_);
  free_.push_back(note);
}

}  // namespace anydml::cuda
