// Copies the elements of one tensor to another of the same sizes and type, bit
// for bit, whatever the strides; bytes between the target's elements stay as they are.
#pragma once

#include <cstddef>

#include "ops/common/loop_nest.h"

namespace anydml {

class StridedCopy {
 public:
  StridedCopy(const TensorDesc& from, const TensorDesc& to);

  // `from` and `to` are either apart or, when in_place() holds, may be the same:
  // then there is nothing to do.
  void Run(const std::byte* from, std::byte* to) const;

  bool in_place() const { return same_layout_; }

 private:
  template <typename Element>
  void RunTyped(const std::byte* from, std::byte* to) const;

  DataType type_;
  bool same_layout_;
  LoopNest<2> outer_;
  LoopNest<2>::Loop inner_;
};

}  // namespace anydml
