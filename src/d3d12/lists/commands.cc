#include "d3d12/lists/commands.h"

#include <algorithm>

namespace anydml::d3d12 {
namespace {

// The number of these bytes that exist in the buffer's memory.
uint64_t Present(const ResourceState& buffer, uint64_t offset, uint64_t bytes) {
  return offset >= buffer.present ? 0 : std::min(bytes, buffer.present - offset);
}

}  // namespace

CopyCommand::CopyCommand(std::shared_ptr<ResourceState> target, uint64_t target_offset,
                         std::shared_ptr<ResourceState> source, uint64_t source_offset, uint64_t bytes)
    : target_offset_(target_offset),
      source_offset_(source_offset),
      bytes_(Present(*target, target_offset, Present(*source, source_offset, bytes))) {
  resources_ = {std::move(target), std::move(source)};
}

Status CopyCommand::Execute(Stream& stream) const {
  return stream.Copy(resources_[0]->device_data() + target_offset_,
                     resources_[1]->device_data() + source_offset_, bytes_);
}

FillCommand::FillCommand(std::shared_ptr<ResourceState> target, uint64_t offset, uint64_t bytes,
                         std::vector<uint32_t> pattern)
    : offset_(offset), bytes_(Present(*target, offset, bytes)), pattern_(std::move(pattern)) {
  resources_ = {std::move(target)};
}

Status FillCommand::Execute(Stream& stream) const {
  std::byte* const target = resources_[0]->device_data() + offset_;
  if (pattern_.size() == 1) return stream.Fill32(target, pattern_[0], bytes_);
  // Backends fill with single words only: write the pattern once, then double it.
  uint64_t filled = 0;
  for (const uint32_t word : pattern_) {
    const uint64_t count = std::min<uint64_t>(sizeof(word), bytes_ - filled);
    ANYDML_RETURN_IF_ERROR(stream.Fill32(target + filled, word, count));
    filled += count;
  }
  while (filled < bytes_) {
    const uint64_t count = std::min(filled, bytes_ - filled);
    ANYDML_RETURN_IF_ERROR(stream.Copy(target + filled, target, count));
    filled += count;
  }
  return {};
}

TimestampCommand::TimestampCommand(std::shared_ptr<ResourceState> queries, uint32_t index) : index_(index) {
  resources_ = {std::move(queries)};
}

Status TimestampCommand::Execute(Stream& stream) const {
  return stream.WriteTimestamp(reinterpret_cast<uint64_t*>(resources_[0]->device_data()) + index_);
}

}  // namespace anydml::d3d12
