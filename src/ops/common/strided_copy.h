// Copies the elements of one tensor to another of the same sizes and type, bit
// for bit, whatever the strides; bytes between the target's elements stay as they are.
#pragma once

#include <cstddef>

#include "ops/common/nest_copy.h"
#include "ops/common/nest_parts.h"

namespace anydml {

class StridedCopy {
 public:
  // Up to `threads` share the copy of a large tensor. `stays` when much of the target is
  // wanted in the caches afterwards.
  StridedCopy(const TensorDesc& from, const TensorDesc& to, uint32_t threads = 1, bool stays = false);

  // `from` and `to` are either apart or, when in_place() holds, may be the same:
  // then there is nothing to do.
  void Run(const std::byte* from, std::byte* to, Executor* executor = nullptr) const;

  bool in_place() const { return same_layout_; }
  uint64_t work_bytes() const { return copy_.work_bytes(); }  // for a WorkEstimate

 private:
  bool same_layout_;
  NestCopy copy_;
  uint32_t parts_;
};

}  // namespace anydml
