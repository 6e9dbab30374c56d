// Copies the elements of a tensor to another of the same sizes and type, bit for bit, with any strides; bytes
// between the target's elements do not change.
#pragma once

#include <cstddef>

#include "ops/common/nest_copy.h"
#include "ops/common/nest_parts.h"

namespace anydml {

class StridedCopy {
 public:
  // Up to `threads` share the copy of a large tensor. `stays`: much of the target is used from the caches
  // afterwards.
  StridedCopy(const TensorDesc& from, const TensorDesc& to, uint32_t threads = 1, bool stays = false);

  // `from` and `to` do not overlap, or, if in_place() is true, may be the same: then there is nothing to do.
  void Run(const std::byte* from, std::byte* to, Executor* executor = nullptr) const;

  bool in_place() const { return same_layout_; }
  uint64_t work_bytes() const { return copy_.work_bytes(); }  // for a WorkEstimate

 private:
  bool same_layout_;
  NestCopy copy_;
  uint32_t parts_;
};

}  // namespace anydml
