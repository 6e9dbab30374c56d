// Limits for reading a model.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace anydml::onnx {

// A node takes two bytes of a file and hundreds of memory, so objects are counted; bytes of tensors are
// limited by the file's.
inline constexpr uint64_t kMaxObjects = uint64_t{1} << 23;
inline constexpr int kMaxGraphDepth = 32;

struct ReadLimits {
  uint64_t objects = 0;
  int depth = 0;

  Status Count(uint64_t count = 1) {
    objects += count;
    if (objects <= kMaxObjects) return {};
    return InvalidArgument("the model has more than ", kMaxObjects, " nodes, attributes and names");
  }
};

}  // namespace anydml::onnx
