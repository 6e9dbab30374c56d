// The commands that Direct3D itself records.
#pragma once

#include <array>
#include <vector>

#include "d3d12/interop.h"

namespace anydml::d3d12 {

class CopyCommand final : public Command {
 public:
  CopyCommand(std::shared_ptr<ResourceState> target, uint64_t target_offset,
              std::shared_ptr<ResourceState> source, uint64_t source_offset, uint64_t bytes);
  Status Execute(Stream& stream) const override;
  uint64_t work_bytes() const override { return 2 * bytes_; }

 private:
  const uint64_t target_offset_;
  const uint64_t source_offset_;
  const uint64_t bytes_;
};

// Repeats a pattern of 4, 8 or 16 bytes over a range; the last repetition may be partial.
class FillCommand final : public Command {
 public:
  FillCommand(std::shared_ptr<ResourceState> target, uint64_t offset, uint64_t bytes,
              std::vector<uint32_t> pattern);
  Status Execute(Stream& stream) const override;
  uint64_t work_bytes() const override { return 2 * bytes_; }

 private:
  const uint64_t offset_;
  const uint64_t bytes_;
  const std::vector<uint32_t> pattern_;
};

class TimestampCommand final : public Command {
 public:
  TimestampCommand(std::shared_ptr<ResourceState> queries, uint32_t index);
  Status Execute(Stream& stream) const override;
  uint64_t work_bytes() const override { return 0; }

 private:
  const uint32_t index_;
};

}  // namespace anydml::d3d12
