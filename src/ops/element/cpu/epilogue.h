// A program of one FLOAT32 number, such as a fused activation, applied to numbers that are in the cache.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/data_type.h"
#include "ops/element/cpu/loops.h"
#include "ops/element/program.h"

namespace anydml {

// Whether comparisons of vectors keep numbers within these: +0 is larger than -0, which they do not know.
bool CompareAsLimits(float low, float high);

class Epilogue {
 public:
  // Of a program that changes register 0 and has no loads and stores.
  explicit Epilogue(const ElementProgram& program);

  bool empty() const { return steps_.empty(); }
  void Apply(float* numbers, uint64_t count) const;
  // Adds `bias` (-0 changes nothing) before, and puts what comes of it to `to`, which may be where the
  // numbers are, as FLOAT32 or FLOAT16. The numbers are scratch.
  void Finish(float* numbers, uint64_t count, float bias, DataType type, void* to) const;
  // All that it does, where that is CLIP, RELU or nothing: numbers are not below `low` nor above `high`, and
  // NaNs become the usual one.
  struct Limits {
    float low, high;
  };
  const std::optional<Limits>& limits() const { return limits_; }

 private:
  struct Step {
    Instruction instruction;
    ElementLoop loop;
  };
  std::vector<Step> steps_;
  std::optional<Limits> limits_;
};

}  // namespace anydml
